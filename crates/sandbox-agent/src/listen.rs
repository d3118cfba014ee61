//! Serves clients of a port, one after the other, for places that have a port and no
//! standard input.
//!
//! Every program in the sandbox can connect, and every client that is let through to its
//! ports. Only clients with the token are served. If another one with the token comes, the
//! first has lost its connection without notice, or is not wanted any more: it is ended,
//! with all it started, and the new one is served.

mod door;
mod files;

use std::net::Ipv4Addr;

use backend_core::{Error, Result};
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::arguments::{Arguments, Listen};
use crate::{Signals, complain, serve};
use door::Door;
use files::PortFile;

/// Serves until no client has come for some time, or a signal asks the program to end.
pub(crate) async fn run(
    arguments: &Arguments,
    listen: &Listen,
    signals: &mut Signals,
) -> Result<()> {
    // A directory that cannot be served is an error now, and not for the first client.
    serve::open(arguments)?;
    let token = files::take_token(&listen.token_file)?;
    let failed = |error| Error::unavailable("no port could be opened").with_source(error);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let _port_file = PortFile::write(&listen.token_file, port)?;
    let mut door = Door::new(listener, token);
    let mut next = None;
    loop {
        let client = match next.take() {
            Some(client) => client,
            None => tokio::select! {
                client = door.client() => client,
                () = signals.arrive() => return Ok(()),
                () = sleep(listen.wait) => {
                    complain(&format!("no client came for {} s", listen.wait.as_secs()));
                    return Ok(());
                }
            },
        };
        let mut signalled = false;
        let interrupted = async {
            tokio::select! {
                client = door.client() => next = Some(client),
                () = signals.arrive() => signalled = true,
            }
        };
        let (reader, writer) = tokio::io::split(client);
        let backend = serve::open(arguments)?;
        let served = serve::serve(backend, arguments, reader, writer, interrupted).await;
        if let Err(error) = served {
            complain(&error.chain().to_string());
        }
        if signalled {
            return Ok(());
        }
    }
}
