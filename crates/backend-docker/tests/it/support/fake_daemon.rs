//! A daemon on loopback that gives prepared answers and records its requests.

use std::sync::{Arc, Mutex};

use backend_docker::Daemon;
use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The heads of all requests.
pub(crate) type Requests = Arc<Mutex<Vec<String>>>;

/// An answer of the daemon.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
    /// The API version.
    pub(crate) api: &'static str,
    /// Extra bytes in the content length that are never sent.
    pub(crate) promised: usize,
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<String>) -> Self {
        Self {
            status,
            body: body.into(),
            api: "1.41",
            promised: 0,
        }
    }
}

/// Starts a daemon that answers by the method and the path of a request. Also returns
/// the requests it gets.
pub(crate) async fn start(
    answer: impl Fn(String, String) -> BoxFuture<'static, Answer> + Send + Sync + 'static,
) -> (Daemon, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let requests = Requests::default();
    let seen = Arc::clone(&requests);
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (answer, seen) = (Arc::clone(&answer), Arc::clone(&seen));
            tokio::spawn(async move { serve(stream, &*answer, &seen).await });
        }
    });
    (Daemon::at(&address).unwrap(), requests)
}

async fn serve(
    mut stream: TcpStream,
    answer: &(dyn Fn(String, String) -> BoxFuture<'static, Answer> + Send + Sync),
    seen: &Requests,
) {
    let mut head = Vec::new();
    while !head.windows(4).any(|it| it == b"\r\n\r\n") {
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => head.extend_from_slice(&buffer[..count]),
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut words = head.split(' ');
    let method = words.next().unwrap().to_owned();
    let path = words.next().unwrap().split('?').next().unwrap().to_owned();
    seen.lock().unwrap().push(head);
    let Answer {
        status,
        body,
        api,
        promised,
    } = answer(method, path).await;
    let head = format!(
        "HTTP/1.1 {status} X\r\nApi-Version: {api}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len() + promised
    );
    // The client may have closed the connection.
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body.as_bytes()).await;
    let _ = stream.shutdown().await;
}
