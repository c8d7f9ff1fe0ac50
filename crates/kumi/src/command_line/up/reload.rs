//! SIGHUP: the node reads `kumi.kdl` and its key file again. What came of it is in the log, and recorded for `kumi reload`.

use super::Up;
use super::plan::redis_level;
use kumi_node::Node;
use kumi_node::config::NodeConfig;
use kumi_node::driver::state_dir::{ReloadRecord, StateDir};
use kumi_store::config::LogLevel;

impl Up {
    pub(super) async fn reload(&self, node: &Node) {
        let record = match self.plan.read_again() {
            Ok(config) => {
                self.set_log_level(&config);
                node.reload(&config).await
            }
            Err(failure) => {
                let mut record = ReloadRecord::default();
                record.failure = Some(failure.to_string());
                // Without the record the command that asked says that there is no answer.
                if let Ok(state) = StateDir::at(node.state_dir()) {
                    let _ = state.write_reload(record.clone());
                }
                record
            }
        };
        match &record.failure {
            Some(failure) => tracing::warn!("Reload: nothing was changed: {failure}"),
            None => {
                for line in record.to_string().lines() {
                    tracing::warn!("Reload: {line}");
                }
            }
        }
    }

    /// The log is the process's, and not the node's.
    fn set_log_level(&self, config: &NodeConfig) {
        let (Some(log), Some(level)) = (&self.log, config.node.log_level) else {
            return;
        };
        log.set(match redis_level(level) {
            "debug" => LogLevel::Debug,
            "verbose" => LogLevel::Verbose,
            "notice" => LogLevel::Notice,
            _ => LogLevel::Warning,
        });
    }
}
