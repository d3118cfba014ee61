//! Opens a stream to the agent that listens in a sandbox: a websocket through the proxy of
//! the toolbox, or else through the preview of its port.

use std::time::Duration;

use backend_core::{Error, ErrorKind, Result};
use reqwest::Upgraded;
use sandbox_wire::Process;
use sandbox_wire::websocket::{self, Handshake, Token};
use tokio::time::{Instant, timeout};

use crate::client::{Call, Client};
use crate::options::Connection;
use crate::refusal::{Refusal, RefusalKind};
use crate::toolbox::Toolbox;

/// The time for the service to answer the request for a stream.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// The pauses between attempts while nothing listens or the service fails.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_millis(500);

/// A stream to the agent.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) process: Process,
    pub(crate) connection: Connection,
}

/// The end of an attempt.
enum Attempt {
    Opened(Process),
    /// This way carries no streams.
    Refused,
}

/// Opens a stream to the agent on a port of the sandbox, by the way that worked before if
/// there is one. Returns `None` if no way carries streams.
///
/// # Errors
///
/// `Unavailable` if the sandbox does not answer for as long as `patience`.
pub(crate) async fn open(
    toolbox: &Toolbox,
    id: &str,
    port: u16,
    token: &Token,
    preferred: Option<Connection>,
    patience: Duration,
) -> Result<Option<Opened>> {
    let ways = match preferred {
        Some(Connection::Preview) => [Connection::Preview, Connection::Proxy],
        _ => [Connection::Proxy, Connection::Preview],
    };
    for connection in ways {
        let way = match connection {
            Connection::Preview => match preview(toolbox, id, port).await? {
                Some(way) => way,
                None => continue,
            },
            _ => proxy(toolbox, port),
        };
        match way.open(toolbox, token, patience).await? {
            Attempt::Opened(process) => {
                return Ok(Some(Opened {
                    process,
                    connection,
                }));
            }
            Attempt::Refused => tracing::debug!(?connection, "no stream to the agent this way"),
        }
    }
    Ok(None)
}

/// A way to a port of a sandbox.
struct Way {
    url: String,
    /// The token of a preview.
    preview_token: Option<String>,
}

fn proxy(toolbox: &Toolbox, port: u16) -> Way {
    Way {
        url: toolbox.at(&format!("/proxy/{port}/")),
        preview_token: None,
    }
}

async fn preview(toolbox: &Toolbox, id: &str, port: u16) -> Result<Option<Way>> {
    match toolbox.account().preview(id, port).await {
        Ok((url, token)) => Ok(Some(Way {
            url: format!("{url}/"),
            preview_token: Some(token).filter(|token| !token.is_empty()),
        })),
        // A service without previews is one way less.
        Err(error) if Refusal::of(&error).is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

impl Way {
    /// Opens the stream, and tries again while nothing listens yet.
    async fn open(&self, toolbox: &Toolbox, token: &Token, patience: Duration) -> Result<Attempt> {
        let began = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.attempt(toolbox, token).await {
                Ok(attempt) => return Ok(attempt),
                Err(error) => error,
            };
            if began.elapsed() >= patience {
                return Err(error);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    async fn attempt(&self, toolbox: &Toolbox, token: &Token) -> Result<Attempt> {
        let preview_token = self.preview_token.as_deref();
        let client = toolbox.account().client();
        let Some(upgraded) = upgrade(client, &self.url, preview_token).await? else {
            return Ok(Attempt::Refused);
        };
        match websocket::attach(upgraded, token).await {
            Ok(process) => Ok(Attempt::Opened(process)),
            // Another program has taken the port.
            Err(error) if error.kind() == ErrorKind::Auth => {
                Err(Error::unavailable(error.message().to_owned()))
            }
            // Something in between accepts streams and does not pass them on.
            Err(error) => {
                tracing::debug!("the stream did not reach the agent: {}", error.chain());
                Ok(Attempt::Refused)
            }
        }
    }
}

/// Asks for a websocket. Returns `None` if it is refused for good.
///
/// # Errors
///
/// `Unavailable` if the service or the sandbox does not answer.
pub(crate) async fn upgrade(
    client: &Client,
    url: &str,
    preview_token: Option<&str>,
) -> Result<Option<Upgraded>> {
    let handshake = Handshake::new();
    let mut call = Call::get(url.to_owned()).unnoticed();
    if preview_token.is_some() {
        // A preview ends at a program in the sandbox. Its token is enough.
        call = call.anonymous();
    }
    let mut request = client.request(&call);
    for (name, value) in handshake.headers() {
        request = request.header(name, value);
    }
    if let Some(token) = preview_token {
        request = request.header("x-daytona-preview-token", token);
    }
    let answered = timeout(ANSWER_TIMEOUT, request.send()).await;
    let answered = answered.map_err(|_| {
        let seconds = ANSWER_TIMEOUT.as_secs();
        Error::unavailable(format!(
            "the service did not open a stream into the sandbox in {seconds} s; try again"
        ))
    })?;
    let response = answered.map_err(|error| client.unanswered(error))?;
    let status = response.status().as_u16();
    if status != 101 {
        let error = client.refusal(response).await;
        let kind = Refusal::of(&error).map(|refusal| refusal.kind);
        // These pass. All others are those of something that knows no streams.
        return match kind {
            Some(RefusalKind::Server | RefusalKind::Auth | RefusalKind::RateLimited) => Err(error),
            _ => Ok(None),
        };
    }
    let accept = response.headers().get("sec-websocket-accept");
    let accept = accept
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    if handshake.check(status, accept.as_deref()).is_err() {
        return Ok(None);
    }
    let upgraded = response.upgrade().await;
    upgraded.map(Some).map_err(|error| client.unanswered(error))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::secret::Secret;

    /// Asks for a websocket where the answer is another one, which never ends. Returns the
    /// request.
    async fn refused(preview_token: Option<&str>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let client = Client::new(Secret::new("dtn_key"), None, false).unwrap();
        let answer = async {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                assert_ne!(connection.read_buf(&mut request).await.unwrap(), 0);
            }
            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
            connection.write_all(head).await.unwrap();
            (connection, String::from_utf8(request).unwrap())
        };
        let asked = upgrade(&client, &url, preview_token);
        let (upgraded, (_connection, request)) = tokio::join!(asked, answer);
        assert!(upgraded.unwrap().is_none());
        request
    }

    #[tokio::test]
    async fn an_answer_that_never_ends_is_a_refusal() {
        assert!(refused(None).await.contains("dtn_key"));
    }

    #[tokio::test]
    async fn a_preview_gets_its_token_and_not_the_credential() {
        let request = refused(Some("of-the-preview")).await;
        assert!(request.contains("of-the-preview"), "{request}");
        assert!(!request.contains("dtn_key"), "{request}");
    }
}
