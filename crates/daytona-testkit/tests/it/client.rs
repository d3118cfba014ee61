//! A client of the stand-in.

use std::time::Duration;

use daytona_testkit::{Options, Standin};
use reqwest::multipart::{Form, Part};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::Role;

/// The version that official clients of this protocol level send.
const VERSION: &str = "0.226.1";

/// Enough for anything that ends at all.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A command that runs long, and whose processes can be told from others.
pub(crate) const HOLD: &str = "flock held sleep 600";

/// A stand-in, its client, and the id of a started sandbox.
pub(crate) struct Client {
    pub(crate) standin: Standin,
    pub(crate) http: reqwest::Client,
    pub(crate) id: String,
}

pub(crate) type Socket = WebSocketStream<TcpStream>;

impl Client {
    pub(crate) async fn new() -> Self {
        Self::with(Options::default()).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        let standin = Standin::start_with(options).await.unwrap();
        // Other crates of the workspace make TLS a part of reqwest, without a library for it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = Self {
            standin,
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            id: String::new(),
        };
        client.id = client.create(json!({})).await;
        client
    }

    /// Returns a request to the control plane.
    pub(crate) fn api(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.standin.api_url());
        self.http
            .request(method, url)
            .bearer_auth(self.standin.api_key())
    }

    /// Returns a request to the toolbox.
    pub(crate) fn toolbox(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, self.url(path))
            .bearer_auth(self.standin.api_key())
            .header("x-daytona-sdk-version", VERSION)
    }

    /// Returns the URL of the toolbox with a path.
    pub(crate) fn url(&self, path: &str) -> String {
        let url = self.standin.api_url();
        let origin = url.trim_end_matches("/api");
        format!("{origin}/toolbox/{}{path}", self.id)
    }

    /// Creates a sandbox and returns its id.
    pub(crate) async fn create(&self, request: Value) -> String {
        let sent = self.api(Method::POST, "/sandbox").json(&request).send();
        let sandbox = json(sent.await.unwrap()).await;
        sandbox["id"].as_str().unwrap().to_owned()
    }

    /// Returns the sandbox.
    pub(crate) async fn sandbox(&self) -> Response {
        let path = format!("/sandbox/{}", self.id);
        self.api(Method::GET, &path).send().await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.toolbox(Method::GET, path).send().await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Response {
        let request = self.toolbox(Method::POST, path).json(&body);
        request.send().await.unwrap()
    }

    pub(crate) async fn delete(&self, path: &str) -> Response {
        self.toolbox(Method::DELETE, path).send().await.unwrap()
    }

    /// Runs a command and returns its exit code and output.
    pub(crate) async fn run(&self, command: &str) -> (i64, String) {
        let answer = json(
            self.post("/process/execute", json!({"command": command}))
                .await,
        )
        .await;
        let output = answer["result"].as_str().unwrap().to_owned();
        (answer["exitCode"].as_i64().unwrap(), output)
    }

    /// Waits until a process that [`HOLD`] started runs, or until none does.
    pub(crate) async fn until_held(&self, is_held: bool) {
        let wait = async { while (self.run("flock -n held true").await.0 != 0) != is_held {} };
        tokio::time::timeout(LONG, wait).await.unwrap();
    }

    /// Uploads a file.
    pub(crate) async fn upload(&self, path: &str, content: &[u8]) -> Response {
        let part = Part::bytes(content.to_vec()).file_name("file");
        let form = Form::new().text("files[0].path", path.to_owned());
        let form = form.part("files[0].file", part);
        let request = self.toolbox(Method::POST, "/files/bulk-upload");
        request.multipart(form).send().await.unwrap()
    }

    /// Opens a websocket. The service chooses none of the protocols, and clients in Python
    /// take that; the handshake of tungstenite does not.
    pub(crate) async fn socket(&self, url: &str, protocols: &[&str]) -> Socket {
        let rest = url.strip_prefix("http://").unwrap();
        let (authority, path) = rest.split_once('/').unwrap();
        let mut request = format!(
            "GET /{path} HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {}\r\n\
             Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: {}\r\n",
            self.standin.api_key(),
            generate_key()
        );
        if !protocols.is_empty() {
            let offered = protocols.join(", ");
            request.push_str(&format!("Sec-WebSocket-Protocol: {offered}\r\n"));
        }
        request.push_str("\r\n");
        let mut stream = TcpStream::connect(authority).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(stream.read_u8().await.unwrap());
        }
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
        WebSocketStream::from_raw_socket(stream, Role::Client, None).await
    }
}

/// Returns the JSON of a successful answer.
pub(crate) async fn json(response: Response) -> Value {
    let status = response.status();
    let text = response.text().await.unwrap();
    assert!(status.is_success(), "{status}: {text}");
    serde_json::from_str(&text).unwrap()
}

/// Returns the status of an answer and its body.
pub(crate) async fn refused(response: Response) -> (u16, String) {
    let status = response.status();
    assert_ne!(status, StatusCode::OK);
    (status.as_u16(), response.text().await.unwrap())
}
