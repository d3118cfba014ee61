//! The terminal over a websocket.

use examples::web::tester::{LONG, Server};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::APP;

pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

pub(crate) async fn connect(server: &Server, session: &str, origin: &str) -> Result<Socket, Error> {
    let url = format!(
        "ws://{}{session}/terminal?rows=24&columns=80",
        server.address
    );
    let mut request = url.into_client_request()?;
    request
        .headers_mut()
        .insert("origin", origin.parse().unwrap());
    Ok(connect_async(request).await?.0)
}

/// Reads output until it holds this text, and returns it.
pub(crate) async fn until(socket: &mut Socket, text: &str) -> String {
    let mut shown = String::new();
    let read = async {
        while !shown.contains(text)
            && let Some(Ok(message)) = socket.next().await
        {
            shown.push_str(&String::from_utf8_lossy(&message.into_data()));
        }
    };
    let _ = tokio::time::timeout(LONG, read).await;
    assert!(shown.contains(text), "no {text} in {shown}");
    shown
}

#[tokio::test]
async fn a_terminal_echoes_and_resizes() {
    let (_data, server) = APP.server().await;
    let session = server.session().await;
    let own = format!("http://{}", server.address);
    let mut socket = connect(&server, &session, &own).await.unwrap();
    let mut keys = async |keys: &'static str| {
        socket.send(Message::Binary(keys.into())).await.unwrap();
    };
    keys("stty size; tty >/dev/null && echo 'is a'' terminal'\r").await;
    let shown = until(&mut socket, "is a terminal").await;
    assert!(shown.contains("24 80\r\n"), "{shown}");
    let size = json!({"rows": 40, "columns": 132}).to_string();
    socket.send(Message::text(size)).await.unwrap();
    let keys = "stty size > size.txt; cat size.txt\r";
    socket.send(Message::Binary(keys.into())).await.unwrap();
    until(&mut socket, "40 132\r\n").await;
    // It is the sandbox whose files the page shows.
    assert_eq!(server.names(&session).await, ["size.txt"]);

    socket.send(Message::Binary("exit\r".into())).await.unwrap();
    let rest = async { while let Some(Ok(_)) = socket.next().await {} };
    tokio::time::timeout(LONG, rest).await.expect("it ends");
}

#[tokio::test]
async fn a_terminal_is_for_its_own_page() {
    let (_data, server) = APP.server().await;
    let session = server.session().await;
    let own = format!("http://{}", server.address);
    let unknown = format!("/sessions/{}", "0".repeat(32));
    for (session, origin, expected) in [
        (&session, "http://evil.example", 403),
        (&session, "null", 403),
        (&unknown, own.as_str(), 404),
    ] {
        match connect(&server, session, origin).await {
            Err(Error::Http(response)) => assert_eq!(response.status(), expected),
            other => panic!("{origin}: {other:?}"),
        }
    }
    // The number of terminals is limited, and one that ends makes room.
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(connect(&server, &session, &own).await.unwrap());
    }
    match connect(&server, &session, &own).await {
        Err(Error::Http(response)) => assert_eq!(response.status(), 503),
        other => panic!("{other:?}"),
    }
}
