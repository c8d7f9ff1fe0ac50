//! TcpServer: `stop` はすべての接続をクローズします。

use std::sync::Arc;
use std::time::Duration;

use mini_redis::App;
use mini_redis::server::TcpServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

#[tokio::test]
async fn stop_closes_every_connection() {
    let server = TcpServer::bind(("127.0.0.1", 0), App::new().client_handler()).await.unwrap();
    let server = Arc::new(server);
    let address = server.address().unwrap();
    let running = tokio::spawn({
        let server = server.clone();
        async move { server.run().await }
    });
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"*1\r\n$4\r\nPING\r\n").await.unwrap();
        let mut reply = [0; 7];
        let reading = timeout(Duration::from_secs(5), client.read_exact(&mut reply)).await;
        reading.expect("the server answers within 5 s").unwrap();
        assert_eq!(&reply, b"+PONG\r\n");
        clients.push(client);
    }
    server.stop().await;
    running.await.unwrap().unwrap();
    for client in &mut clients {
        let reading = timeout(Duration::from_secs(5), client.read(&mut [0; 1])).await;
        assert!(matches!(reading.expect("the connection is closed within 5 s"), Ok(0) | Err(_)));
    }
}
