//! Listings on Redis: steps of `lua/browse.lua`, which goes through the queue's indexes.

use super::codec::{self, text};
use super::link::Repeat;
use super::{RedisQueue, script};
use crate::core::{
    Cursor, Filter, Forgotten, Holding, ID_PAGE_LIMIT, IdPage, IdPrefix, LOOK_LIMIT, Order,
    PAGE_LIMIT, Page, Paging, TURN_LIMIT, TaskId,
};
use crate::error::QueueError;
use crate::queue::Cancel;
use ::redis::Value;

/// Tasks that one step of a purge forgets.
const FORGET_LIMIT: usize = 200;

impl RedisQueue {
    pub(super) async fn list_page(
        &self,
        filter: &Filter,
        paging: &Paging,
    ) -> Result<Page, QueueError> {
        let limit = paging.limit.clamp(1, PAGE_LIMIT);
        let (cursor, looked, found) = self.page(filter, paging, limit, true).await?;
        let tasks = found.into_iter().filter_map(|task| {
            let record = codec::record(task);
            record.unwrap_or_else(|error| skipped(&error))
        });
        Ok(Page::new(tasks.collect(), looked, cursor))
    }

    pub(super) async fn list_id_page(
        &self,
        filter: &Filter,
        paging: &Paging,
    ) -> Result<IdPage, QueueError> {
        let limit = paging.limit.clamp(1, ID_PAGE_LIMIT);
        let (cursor, looked, found) = self.page(filter, paging, limit, false).await?;
        let ids = found.into_iter().filter_map(|id| {
            let id = codec::parsed::<TaskId>(id).map(Some);
            id.unwrap_or_else(|error| skipped(&error))
        });
        Ok(IdPage {
            ids: ids.collect(),
            looked,
            cursor,
        })
    }

    pub(super) async fn forget_some(
        &self,
        filter: &Filter,
        after: Option<&Cursor>,
    ) -> Result<Forgotten, QueueError> {
        let Some(filter) = filter.done() else {
            return Ok(Forgotten::default());
        };
        let head = vec![text("forget"), text(FORGET_LIMIT), text(LOOK_LIMIT)];
        let (cursor, looked, tasks) = self.browse(head, &filter, after).await?;
        Ok(Forgotten {
            tasks: usize::try_from(codec::integer(&tasks)?).unwrap_or(0),
            looked,
            cursor,
        })
    }

    pub(super) async fn cancel_many(&self, ids: &[TaskId]) -> Result<Vec<Cancel>, QueueError> {
        let mut replies = Vec::with_capacity(ids.len());
        for batch in ids.chunks(TURN_LIMIT) {
            let ids = batch.iter().copied().map(codec::id_text);
            let args = std::iter::once(text("cancel")).chain(ids).collect();
            let reply = self.shared.run(&script::BROWSE, args, Repeat::Yes).await?;
            for value in codec::array(reply)? {
                replies.push(codec::cancel(value)?);
            }
        }
        Ok(replies)
    }

    pub(super) async fn holdings(&self) -> Result<Vec<Holding>, QueueError> {
        let mut owners: Vec<Holding> = Vec::new();
        let mut after = String::new();
        loop {
            let page = self.holdings_after(&after).await?;
            match page.last() {
                Some((name, _)) => after.clone_from(name),
                None => return Ok(owners),
            }
            owners.extend(page.into_iter().filter_map(|(_, holding)| holding));
        }
    }

    /// Owners by name after this one, up to `OWNERS_PAGE` of them; those that cannot be read have no holding.
    pub(super) async fn holdings_after(
        &self,
        after: &str,
    ) -> Result<Vec<(String, Option<Holding>)>, QueueError> {
        let args = vec![text("owners"), text(after)];
        codec::holdings(self.shared.run(&script::BROWSE, args, Repeat::Yes).await?)
    }

    /// One step of the script that goes through the indexes: the next cursor, how many ids were looked at, and a third part.
    async fn browse(
        &self,
        head: Vec<Vec<u8>>,
        filter: &Filter,
        after: Option<&Cursor>,
    ) -> Result<(Option<Cursor>, u64, Value), QueueError> {
        filter.check()?;
        let position = match after {
            Some(cursor) => cursor.decode().ok_or_else(|| cursor.refused())?,
            None => String::new(),
        };
        let states = filter.listed_states();
        let letters: String = states.iter().map(|state| state.letter()).collect();
        let (first, last) = match filter.id_prefix.map(IdPrefix::range) {
            Some((first, last)) => (codec::id_text(first), codec::id_text(last)),
            None => (Vec::new(), Vec::new()),
        };
        let mut args = head;
        args.extend([
            text(letters),
            text(position),
            filter.task_type.as_deref().unwrap_or_default().into(),
            first,
            last,
            filter.text.as_deref().unwrap_or_default().into(),
        ]);
        let done = self.shared.run(&script::BROWSE, args, Repeat::Yes).await;
        match (done, after) {
            (Err(QueueError::Server(error)), Some(cursor)) if error.code() == Some("CURSOR") => {
                Err(cursor.refused().into())
            }
            (done, _) => codec::browsed(done?),
        }
    }

    async fn page(
        &self,
        filter: &Filter,
        paging: &Paging,
        limit: usize,
        is_whole: bool,
    ) -> Result<(Option<Cursor>, u64, Vec<Value>), QueueError> {
        let order = match paging.order {
            Order::Newest => "n",
            Order::Oldest => "o",
        };
        let head = vec![
            text("list"),
            text(order),
            text(limit),
            text(LOOK_LIMIT),
            text(u8::from(is_whole)),
        ];
        let (cursor, looked, found) = self.browse(head, filter, paging.after.as_ref()).await?;
        Ok((cursor, looked, codec::array(found)?))
    }
}

/// A task that a listing leaves out: another program gave it an id that is none here.
fn skipped<T>(error: &QueueError) -> Option<T> {
    tracing::warn!(
        error = error as &dyn std::error::Error,
        "a task is not listed: it cannot be read"
    );
    None
}
