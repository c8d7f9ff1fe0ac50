//! Commands on their way: which node they go to, where they are sent on to, and who hears the replies.

use bytes::Bytes;
use futures_util::FutureExt;
use redis::aio::MultiplexedConnection;
use tokio::sync::oneshot;

use super::encode::{Trouble, pipeline, replies};
use super::engine::Engine;
use super::fleet::Address;
use crate::core::{Command, Lost, Replies, Reply, Token};

/// How often a pipeline follows a slot that moves.
const REDIRECT_LIMIT: u8 = 3;

/// Who waits for replies.
pub(super) enum Passenger {
    /// The core, under its token.
    Core(Token),
    /// A handle, for a command of its own.
    Handle(oneshot::Sender<Replies>),
}

/// A pipeline that came back.
pub(super) struct Landed {
    passenger: Passenger,
    commands: Vec<Command>,
    node: Option<(Address, u64)>,
    redirects: u8,
    result: Result<Vec<Reply>, Trouble>,
    /// The connection is gone, not just the replies.
    broken: bool,
}

impl Engine {
    /// Sends a pipeline to the node that has its keys.
    pub(super) fn launch(&mut self, passenger: Passenger, commands: Vec<Command>) {
        if !self.fleet.is_together(&commands) {
            return self.launch_scattered(passenger, commands);
        }
        let key = commands
            .first()
            .and_then(|command| super::encode::keys(command).first());
        match key.and_then(|key| self.fleet.owner(key)) {
            Some((address, connection)) => {
                self.launch_at(passenger, commands, address, connection, false, 0)
            }
            None => self.lose(passenger, commands),
        }
    }

    fn launch_at(
        &mut self,
        passenger: Passenger,
        commands: Vec<Command>,
        address: Address,
        mut connection: MultiplexedConnection,
        asking: bool,
        redirects: u8,
    ) {
        let generation = self
            .fleet
            .nodes
            .get(&address)
            .map_or(0, |node| node.generation);
        let packed = pipeline(&commands, asking);
        let count = commands.len() * if asking { 2 } else { 1 };
        let flight = async move {
            let (result, broken) = match connection.send_packed_commands(&packed, 0, count).await {
                Ok(values) => (replies(values, asking), false),
                Err(error) => (Err(Trouble::Lost), error.is_unrecoverable_error()),
            };
            Landed {
                passenger,
                commands,
                node: Some((address, generation)),
                redirects,
                result,
                broken,
            }
        };
        self.flights.push(flight.boxed());
    }

    /// The keys of a bare ID are spread over a cluster: each is asked for by itself, in order.
    fn launch_scattered(&mut self, passenger: Passenger, commands: Vec<Command>) {
        let single = |command: &Command| -> Vec<Command> {
            match command {
                Command::Values(keys) => keys
                    .iter()
                    .map(|key| Command::Values(vec![key.clone()]))
                    .collect(),
                Command::Exists(keys) => keys
                    .iter()
                    .map(|key| Command::Exists(vec![key.clone()]))
                    .collect(),
                other => vec![other.clone()],
            }
        };
        let mut parts = Vec::new();
        for (index, command) in commands.iter().enumerate() {
            for part in single(command) {
                let owner = super::encode::keys(&part)
                    .first()
                    .and_then(|key| self.fleet.owner(key));
                let Some((_, connection)) = owner else {
                    return self.lose(passenger, commands);
                };
                parts.push((index, part, connection));
            }
        }
        let flight = async move {
            let result = scattered(parts, commands.len()).await;
            Landed {
                passenger,
                commands,
                node: None,
                redirects: REDIRECT_LIMIT,
                result,
                broken: false,
            }
        };
        self.flights.push(flight.boxed());
    }

    fn lose(&mut self, passenger: Passenger, commands: Vec<Command>) {
        let result = Err(Trouble::Lost);
        let landed = Landed {
            passenger,
            commands,
            node: None,
            redirects: 0,
            result,
            broken: false,
        };
        self.flights.push(std::future::ready(landed).boxed());
    }

    pub(super) fn landed(&mut self, landed: Landed) {
        let Landed {
            passenger,
            commands,
            node,
            redirects,
            result,
            broken,
        } = landed;
        if let Some((address, generation)) = node.filter(|_| broken) {
            self.node_down(&address, generation);
        }
        let replies = match result {
            Ok(replies) => Ok(replies),
            Err(Trouble::Lost) => Err(Lost),
            Err(Trouble::Moved(address) | Trouble::Ask(address)) if redirects >= REDIRECT_LIMIT => {
                tracing::debug!(%address, "gave up following a slot");
                self.refresh_topology(true);
                Err(Lost)
            }
            Err(Trouble::Moved(address)) => {
                self.refresh_topology(true);
                return self.redirect(passenger, commands, &address, false, redirects);
            }
            Err(Trouble::Ask(address)) => {
                return self.redirect(passenger, commands, &address, true, redirects);
            }
        };
        match passenger {
            Passenger::Core(token) => {
                let now = self.now();
                self.core.handle_reply(token, replies, now);
            }
            Passenger::Handle(reply) => {
                let _ = reply.send(replies);
            }
        }
    }

    fn redirect(
        &mut self,
        passenger: Passenger,
        commands: Vec<Command>,
        to: &str,
        asking: bool,
        redirects: u8,
    ) {
        match self.fleet.at(to) {
            Some(connection) => {
                self.launch_at(
                    passenger,
                    commands,
                    to.into(),
                    connection,
                    asking,
                    redirects + 1,
                );
            }
            None => self.lose(passenger, commands),
        }
    }
}

/// Runs single-key commands one after the other and puts their replies together again.
async fn scattered(
    parts: Vec<(usize, Command, MultiplexedConnection)>,
    count: usize,
) -> Result<Vec<Reply>, Trouble> {
    let mut joined: Vec<Option<Reply>> = vec![None; count];
    for (index, command, mut connection) in parts {
        let packed = pipeline(std::slice::from_ref(&command), false);
        let values = connection
            .send_packed_commands(&packed, 0, 1)
            .await
            .map_err(|_| Trouble::Lost)?;
        let Some(reply) = replies(values, false)?.pop() else {
            return Err(Trouble::Lost);
        };
        joined[index] = Some(match (joined[index].take(), reply) {
            (Some(Reply::Values(mut values)), Reply::Values(more)) => {
                values.extend::<Vec<Option<Bytes>>>(more);
                Reply::Values(values)
            }
            (Some(Reply::Number(sum)), Reply::Number(more)) => Reply::Number(sum + more),
            (_, reply) => reply,
        });
    }
    joined
        .into_iter()
        .collect::<Option<_>>()
        .ok_or(Trouble::Lost)
}
