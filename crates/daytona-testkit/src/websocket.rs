//! [`Upgrade`]: a request that becomes a websocket.

use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use crate::latency::Late;
use crate::refusal::Refusal;
use crate::service::Service;

/// An open websocket.
pub(crate) type Socket = WebSocketStream<Late<TokioIo<Upgraded>>>;

/// A request for a websocket.
#[derive(Debug)]
pub(crate) struct Upgrade {
    connection: OnUpgrade,
    key: String,
    /// The subprotocols that the client offers. None is ever chosen.
    pub(crate) protocols: Vec<String>,
}

impl<S: Sync> FromRequestParts<S> for Upgrade {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refusal> {
        let refusal = || Refusal::toolbox(StatusCode::BAD_REQUEST, "bad request: not a websocket");
        let key = parts.headers.get(SEC_WEBSOCKET_KEY);
        let key = key.and_then(|key| key.to_str().ok()).ok_or_else(refusal)?;
        let (key, protocols) = (key.to_owned(), protocols(&parts.headers));
        let connection = parts.extensions.remove::<OnUpgrade>();
        Ok(Self {
            connection: connection.ok_or_else(refusal)?,
            key,
            protocols,
        })
    }
}

impl Upgrade {
    /// Accepts the websocket, and serves it after the answer.
    pub(crate) fn accept<F>(
        self,
        service: &Service,
        serve: impl FnOnce(Socket) -> F + Send + 'static,
    ) -> Response
    where
        F: Future<Output = ()> + Send,
    {
        let (connection, latency) = (self.connection, service.latency.clone());
        service.spawn(async move {
            match connection.await {
                Ok(upgraded) => {
                    let (stream, _guard) = latency.late(TokioIo::new(upgraded));
                    serve(WebSocketStream::from_raw_socket(stream, Role::Server, None).await).await;
                }
                Err(error) => {
                    tracing::debug!(%error, "a client left before its websocket was open");
                }
            }
        });
        let headers = [
            (CONNECTION, "Upgrade".to_owned()),
            (UPGRADE, "websocket".to_owned()),
            (SEC_WEBSOCKET_ACCEPT, derive_accept_key(self.key.as_bytes())),
        ];
        (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
    }
}

/// Ends a websocket with a reason.
pub(crate) async fn close(socket: &mut Socket, code: u16, reason: &str) {
    let frame = CloseFrame {
        code: CloseCode::from(code),
        reason: reason.into(),
    };
    if let Err(error) = socket.close(Some(frame)).await {
        tracing::debug!(%error, "a client left before its websocket was closed");
    }
}

fn protocols(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter();
    let values = values.filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(|it| it.trim().to_owned())
        .collect()
}
