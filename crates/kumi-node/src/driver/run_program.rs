//! A program of a `run` entry: kept running next to the node, with the URL of the store. It is begun when a store is known, and
//! begun again when the route to the store changes, because its environment has the URL.

use super::programs::{Launcher, Output, Program, ProgramState, RestartRule, RunningProgram};
use super::store_link::StoreLink;
use crate::config::Run;
use kumi_common::NameAndLife;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// One program, until `stop`.
pub(crate) struct KeptProgram {
    pub(crate) entry: Run,
    pub(crate) link: StoreLink,
    /// `name~life`, for its environment.
    pub(crate) node: NameAndLife,
    pub(crate) launcher: Launcher,
    pub(crate) output: Arc<dyn Output>,
    /// How it is, for status.
    pub(crate) state: watch::Sender<ProgramState>,
}

impl KeptProgram {
    pub(crate) async fn run(self, stop: CancellationToken) {
        loop {
            let route = tokio::select! {
                route = self.link.up() => route,
                () = stop.cancelled() => return,
            };
            let name = self.entry.name.to_string();
            let program =
                Program::new(&name, &self.entry.exec, &self.launcher, self.output.clone());
            let program =
                program.of_node(&self.entry.surroundings, self.node.as_str(), &route.app_url);
            let mut running = RunningProgram::start(program, RestartRule::of(&self.entry));
            let ending = async {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = self.link.left(&route) => {}
                }
            };
            tokio::pin!(ending);
            loop {
                self.state.send_replace(running.state());
                tokio::select! {
                    is_more = running.changed() => if !is_more {
                        // It is not started again, unless the route changes.
                        (&mut ending).await;
                        break;
                    },
                    () = &mut ending => break,
                }
            }
            let mut last = running.state();
            running.stop().await;
            last.pid = None;
            self.state.send_replace(last);
            if stop.is_cancelled() {
                return;
            }
        }
    }
}
