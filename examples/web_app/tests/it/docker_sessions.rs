//! Sessions in containers.

use examples::web::tester::Server;
use futures::SinkExt as _;
use reqwest::{Method, StatusCode};
use tokio_tungstenite::tungstenite::Message;

use crate::APP;
use crate::terminal::{connect, until};

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn each_session_has_a_container() {
    let data = tempfile::tempdir().unwrap();
    let image = std::env::var("TEST_IMAGE_PYTHON").expect("TEST_IMAGE_PYTHON");
    let backend = format!("docker:{image}");
    let start = async || {
        let mut program = APP.program(data.path());
        Server::launch(program.args(["--backend", &backend])).await
    };
    let server = start().await;
    let (one, other) = (server.session().await, server.session().await);
    server.execute(&one, "cp /etc/hostname mine").await;
    assert_eq!(server.names(&one).await, ["mine"]);
    assert_eq!(server.names(&other).await, Vec::<String>::new());
    let hostname = server.execute(&other, "cat /etc/hostname").await;
    let mine = server.get(&format!("{one}/files/mine")).await;
    assert_ne!(hostname["stdout"], mine.text().await.unwrap());
    // Only the working directory is shown, though the container has more.
    let outside = server
        .get(&format!("{one}/files/..%2Fetc%2Fhostname"))
        .await;
    assert_eq!(outside.status(), StatusCode::BAD_REQUEST);
    let own = format!("http://{}", server.address);
    let mut socket = connect(&server, &one, &own).await.unwrap();
    let keys = Message::Binary("ls; stty size\r".into());
    socket.send(keys).await.unwrap();
    until(&mut socket, "24 80").await;
    drop(socket);
    server.stop().await;

    let server = start().await;
    assert_eq!(server.names(&one).await, ["mine"]);
    for session in [&one, &other] {
        let delete = server.ask(Method::DELETE, session).send().await.unwrap();
        assert_eq!(delete.status(), StatusCode::NO_CONTENT);
    }
    server.stop().await;
}
