//! 実装済み。`--port` を読み取り、サーバを起動し、Ctrl+C で停止します。

use std::process::ExitCode;

use mini_redis::server::TcpServer;
use mini_redis::{App, log};

#[tokio::main]
async fn main() -> ExitCode {
    log::use_for_panics();
    let port = match port_from(std::env::args().skip(1)) {
        Ok(port) => port,
        Err(message) => {
            log::error(&message);
            return ExitCode::from(2);
        }
    };
    let app = App::new();
    let server = match TcpServer::bind(("127.0.0.1", port), app.client_handler()).await {
        Ok(server) => server,
        Err(error) => {
            log::error(&format!("cannot listen on port {port}: {error}"));
            return ExitCode::FAILURE;
        }
    };
    app.start_active_expiry();
    let result = tokio::select! {
        result = server.run() => result,
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    server.stop().await;
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::error(&format!("the server stopped: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn port_from(mut arguments: impl Iterator<Item = String>) -> Result<u16, String> {
    match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => Ok(6379),
        (Some("--port"), Some(port)) => port.parse().map_err(|_| format!("not a port: {port}")),
        (Some(other), _) => Err(format!("usage: mini-redis [--port PORT] (got {other})")),
    }
}
