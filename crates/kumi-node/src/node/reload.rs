//! Changes of a running node: what of another configuration can be applied, and another key file.

use super::Node;
use super::error::NodeError;
use crate::config::{Change, NodeConfig, Section, StoreSection};
use crate::driver::keys::KeySet;
use crate::driver::state_dir::ReloadRecord;
use crate::driver::store;
use crate::driver::{JoinError, StoreError};
use kumi_common::Chain;
use std::path::Path;
use std::sync::Arc;

impl Node {
    /// Applies what can be applied of another configuration while the node runs, reads the key file again, and records what
    /// came of it in the state directory. What needs a restart stays as it was.
    ///
    /// Workers, units and programs whose entries changed are stopped, and begin again when they have ended. Two calls at once
    /// are carried out one after the other. Dropping the future may leave a part of it undone.
    pub async fn reload(&self, to: &NodeConfig) -> ReloadRecord {
        let mut current = self.changeable.config.lock().await;
        let changes = current.changes(to);
        let mut record = ReloadRecord {
            restart: changes.restart.iter().map(Change::to_string).collect(),
            ..ReloadRecord::default()
        };
        let (of_store, others): (Vec<&Change>, Vec<&Change>) = changes
            .live
            .iter()
            .partition(|change| change.section == Section::Store);
        for change in of_store {
            match self.set_directive(change, to).await {
                Ok(()) => {
                    record.applied.push(change.to_string());
                    take_directive(&mut current, to, &change.name);
                }
                Err(why) => record.refused.push(format!("{change}: {why}")),
            }
        }
        record
            .applied
            .extend(others.iter().map(|change| change.to_string()));
        current.node.log_level = to.node.log_level;
        current.node.stop_within = to.node.stop_within;
        current.http.allow_hosts.clone_from(&to.http.allow_hosts);
        current.work.clone_from(&to.work);
        current.serve.clone_from(&to.serve);
        current.run.clone_from(&to.run);
        current.cron.clone_from(&to.cron);
        match self.reload_keys(&current).await {
            Ok(true) => record.applied.push("key file: changed".into()),
            Ok(false) => {}
            Err(error) => record.refused.push(format!("key file: {}", Chain(&error))),
        }
        let names = current.http.allow_hosts.iter().map(String::as_str);
        self.changeable
            .hosts
            .replace(names.chain(self.changeable.own_host.as_deref()));
        // Schedules that are the same are not declared again.
        self.changeable.schedules.send_if_modified(|schedules| {
            let is_other = *schedules != current.cron;
            schedules.clone_from(&current.cron);
            is_other
        });
        let stop_within = super::start::stop_within(&current);
        self.changeable
            .work
            .lock()
            .await
            .apply(&current, stop_within);
        if let Err(error) = self.state.write_reload(record.clone()) {
            tracing::error!(error = %Chain(&error), "what the reload came to is not recorded");
        }
        record
    }

    /// What of its configuration is in force: what it was started with, and what reloads have applied.
    pub async fn config(&self) -> NodeConfig {
        self.changeable.config.lock().await.clone()
    }

    /// Sets one directive of the node's own store, as CONFIG SET does, to the value that a start would give it.
    async fn set_directive(&self, change: &Change, to: &NodeConfig) -> Result<(), String> {
        let name = change.name.clone();
        let StoreSection::Here(here) = &to.store else {
            return Err("the configuration has no store".into());
        };
        let value = match here.directives.get(&name) {
            Some(flags) if name == "notify-keyspace-events" => store::with_events(flags),
            Some(value) => value.clone(),
            None => secret_of(here.secret_files.get(&name).map(AsRef::as_ref))?,
        };
        let Some(server) = self.store() else {
            return Err("this node runs no store".into());
        };
        let (handle, trust) = (server.clone(), self.keys.now().trust.clone());
        // It waits for the server.
        let set = tokio::task::spawn_blocking(move || {
            store::set_directives(&handle, &[(name, value)], trust.as_deref())
        });
        set.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Reads the key file again. Both keys of a file are accepted, the first is used. False if they are the same, and all
    /// that follows from them was done.
    async fn reload_keys(&self, config: &NodeConfig) -> Result<bool, NodeError> {
        let before = self.keys.now();
        // A key that the program handed over is not in a file; certificates are read again by themselves.
        if self.changeable.has_given_key || before.trust.is_none() {
            return Ok(false);
        }
        let path = config.node.key_file.clone();
        let path = path.unwrap_or_else(|| self.state.key_file());
        if !path.exists() {
            // A start would make a new key.
            let source = std::io::ErrorKind::NotFound.into();
            return Err(NodeError::File { path, source });
        }
        let now = KeySet::read(config, None, &self.state)?;
        let mut replaced = self.changeable.replaced_keys.lock().await;
        if now.clusters == before.clusters && replaced.is_empty() {
            return Ok(false);
        }
        // They stay if a step fails or the future is dropped: the next reload takes all steps again.
        replaced.extend(&before.clusters);
        let (security, trust) = (now.security.clone(), now.trust.clone());
        let is_removed = replaced.iter().any(|id| !now.clusters.contains(id));
        self.keys.replace(now);
        let set = self.running.cluster.set_security(security).await;
        set.map_err(|error| NodeError::Join(JoinError::Driver(error)))?;
        self.changeable.certificate.renew()?;
        if let (Some(server), Some(trust)) = (&self.running.store, trust) {
            let (handle, identity) = (
                server.handle().clone(),
                self.changeable.certificate.identity(),
            );
            let users = store::users(&trust);
            let changed = tokio::task::spawn_blocking(move || {
                handle.replace_identity(identity)?;
                handle.set_users(users)
            });
            let changed = changed.await.map_err(|_| StoreError::Panicked)?;
            changed.map_err(StoreError::from)?;
        }
        self.renew_releaser().await;
        if is_removed {
            self.running.cluster.close_connections();
        }
        replaced.clear();
        Ok(true)
    }

    /// Lets the releaser know the clusters of the present keys. A new one finds by itself which nodes have departed.
    async fn renew_releaser(&self) {
        let mut releaser = self.changeable.releaser.lock().await;
        let cluster = &self.running.cluster;
        let new = super::start::releaser(&self.keys.now(), cluster, &self.queues);
        let shown = &self.changeable.shown_releaser;
        shown.send_replace(Arc::downgrade(&new));
        let old = std::mem::replace(&mut *releaser, new);
        if let Some(old) = super::alone(old).await {
            old.stop().await;
        }
    }
}

/// Takes over one directive of another configuration.
fn take_directive(current: &mut NodeConfig, to: &NodeConfig, name: &str) {
    let StoreSection::Here(here) = &mut current.store else {
        return;
    };
    here.directives.remove(name);
    here.secret_files.remove(name);
    if let StoreSection::Here(to) = &to.store {
        let value = to.directives.get_key_value(name);
        here.directives
            .extend(value.map(|(name, value)| (name.clone(), value.clone())));
        let file = to.secret_files.get_key_value(name);
        here.secret_files
            .extend(file.map(|(name, file)| (name.clone(), file.clone())));
    }
}

fn secret_of(file: Option<&Path>) -> Result<String, String> {
    let file = file.ok_or("the configuration has no such directive")?;
    let named = |error| format!("{}: {error}", file.display());
    store::secret(file).map_err(named)
}
