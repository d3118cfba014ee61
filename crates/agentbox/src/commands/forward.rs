//! `agentbox forward [SANDBOX] PORT[:LOCAL]`: ports of a sandbox on this machine.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use backend_core::sync::lock;
use backend_core::{Backend, Connection, Error, Sandbox};
use bytes::Bytes;
use futures::StreamExt as _;
use permissions::{Access, Guarded};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::app::App;
use crate::approval;
use crate::backend::spec::BackendSpec;
use crate::exit::{Failure, environment, usage};
use crate::output;
use crate::signals::Interrupts;
use crate::system;

/// Connections that are open at once; further ones wait.
const CONNECTIONS: usize = 1_000;

/// Files that are open then: a socket here for each connection, for a local directory one
/// to the server as well, and some that the program needs anyway.
const OPEN_FILES: u64 = 2 * CONNECTIONS as u64 + 100;

/// Bytes read at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Options of `forward`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "agentbox forward [OPTIONS] [SANDBOX] <PORT[:LOCAL]>...")]
pub(crate) struct Args {
    /// The sandbox, as for --backend, which may be left out; then the ports: PORT in the
    /// sandbox, and with PORT:LOCAL another one here. 0 as LOCAL is any that is free.
    #[arg(required = true, value_name = "PORT[:LOCAL]")]
    targets: Vec<String>,
}

/// A port of the sandbox, and the one on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Forward {
    port: u16,
    local: u16,
}

impl Forward {
    /// Parses `PORT` or `PORT:LOCAL`. Returns `None` for anything else.
    fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse::<u16>().ok()).flatten()
        };
        let (port, local) = text.split_once(':').unwrap_or((text, text));
        let (port, local) = (number(port)?, number(local)?);
        (port > 0).then_some(Self { port, local })
    }
}

/// Separates the sandbox, if there is one, from the ports.
fn parse(targets: &[String]) -> Result<(Option<&str>, Vec<Forward>), Failure> {
    let (sandbox, ports) = match targets.split_first() {
        Some((first, rest)) if Forward::parse(first).is_none() && !rest.is_empty() => {
            (Some(first.as_str()), rest)
        }
        _ => (None, targets),
    };
    let forwards = ports.iter().map(|text| {
        Forward::parse(text).ok_or_else(|| {
            let text = backend_core::Quoted::new(text);
            usage!("{text} is not a port; write PORT or PORT:LOCAL, as in 8000:9000")
        })
    });
    Ok((sandbox, forwards.collect::<Result<_, _>>()?))
}

pub(crate) async fn run(mut app: App, args: Args) -> Result<ExitCode, Failure> {
    let interrupts = Interrupts::watch()?;
    let (sandbox, forwards) = parse(&args.targets)?;
    if let Some(sandbox) = sandbox {
        app.spec = BackendSpec::new(Some(sandbox), &app.config.backends)?;
    }
    let opened = interrupts.unless(app.open()).await??;
    system::allow_open_files(OPEN_FILES);
    let guarded = Guarded::builder(Arc::clone(&opened.backend))
        .policy(app.policy(&opened))
        .approver(approval::terminal(app.approval_advice(&opened)))
        .build();
    let ended = interrupts.unless(forward(guarded, &forwards)).await;
    opened.stop().await;
    match ended? {
        Ok(never) => match never {},
        Err(failure) => Err(failure),
    }
}

/// Asks for approval if needed, and forwards until it is dropped.
async fn forward<B: Backend>(
    guarded: Guarded<B>,
    forwards: &[Forward],
) -> Result<std::convert::Infallible, Failure> {
    let sandbox = guarded.as_sandbox().ok_or_else(no_commands)?;
    sandbox.start().await?;
    if !guarded.info().capabilities.ports {
        return Err(no_ports(&guarded.info().name));
    }
    let accesses = forwards.iter().map(|forward| Access::port(forward.port));
    let planned = guarded.plan(accesses.collect::<Vec<_>>()).await?;
    let ports: Vec<String> = forwards.iter().map(|to| to.port.to_string()).collect();
    let words = format!("forward port {}", ports.join(", "));
    let permit = planned.authorize(|asked| asked.description(words)).await?;
    let guarded = permit.into_iter().fold(guarded.clone(), |guarded, permit| {
        guarded.with_permit(permit)
    });
    let shared = Arc::new(Shared {
        backend: guarded,
        room: Arc::new(Semaphore::new(CONNECTIONS)),
        told: Mutex::default(),
    });
    let mut listeners = JoinSet::new();
    for forward in forwards {
        let listener = listen(forward.local).await?;
        let address = listener.local_addr().map_err(|error| no_listener(&error))?;
        output::print(&format!(
            "{address} is port {} of the sandbox; Ctrl-C ends",
            forward.port
        ))?;
        listeners.spawn(accept(listener, forward.port, Arc::clone(&shared)));
    }
    match listeners.join_next().await {
        Some(Ok(failure)) => Err(failure),
        _ => Err(Failure::environment("a port's task panicked; report this")),
    }
}

fn no_commands() -> Failure {
    Failure::environment("this backend runs no commands, so it has no ports; use --backend docker")
}

fn no_ports(name: &str) -> Failure {
    environment!("the ports of {name} cannot be reached; run a client there with agentbox run")
}

fn no_listener(error: &io::Error) -> Failure {
    environment!("no port can be opened here: {error}; try again")
}

/// Listens on the loopback interface, and nowhere else.
async fn listen(local: u16) -> Result<TcpListener, Failure> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, local));
    TcpListener::bind(address).await.map_err(|error| {
        environment!("{address} cannot be opened: {error}; choose another with PORT:LOCAL")
    })
}

/// The sandbox, for all connections.
struct Shared<B> {
    backend: Guarded<B>,
    room: Arc<Semaphore>,
    /// The last failure that was printed. A browser tries again and again.
    told: Mutex<String>,
}

impl<B: Backend> Shared<B> {
    async fn connect(&self, port: u16) -> Result<Connection, Error> {
        let sandbox: Option<&dyn Sandbox> = self.backend.as_sandbox();
        let sandbox = sandbox.ok_or_else(|| Error::unsupported("this backend has no ports"))?;
        sandbox.connect(port).await
    }

    /// Prints why a connection failed, unless that was printed last.
    fn tell(&self, failure: String) {
        let mut told = lock(&self.told);
        if *told != failure {
            output::note(&format!("agentbox: {failure}"));
            *told = failure;
        }
    }
}

/// Accepts connections until that fails.
async fn accept<B: Backend>(listener: TcpListener, port: u16, shared: Arc<Shared<B>>) -> Failure {
    let mut connections = JoinSet::new();
    loop {
        let Ok(room) = Arc::clone(&shared.room).acquire_owned().await else {
            return Failure::environment("connections are no longer counted; report this");
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((stream, _)) => {
                let shared = Arc::clone(&shared);
                connections.spawn(async move {
                    let _room = room;
                    if let Err(failure) = carry(stream, port, &shared).await {
                        shared.tell(failure);
                    }
                });
            }
            // The client has gone already.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            // Most likely too many files are open. The end of a connection makes room.
            Err(error) if !connections.is_empty() => {
                shared.tell(format!(
                    "no connection can be accepted: {error}; close some"
                ));
                connections.join_next().await;
            }
            Err(error) => return no_listener(&error),
        }
    }
}

/// Connects to the port, and carries bytes in both directions until both have ended.
async fn carry<B: Backend>(stream: TcpStream, port: u16, shared: &Shared<B>) -> Result<(), String> {
    let connected = shared.connect(port).await;
    let connection = connected.map_err(|error| error.chain().to_string())?;
    let _ = stream.set_nodelay(true);
    let (mut reader, mut writer) = stream.into_split();
    let (mut incoming, mut outgoing) = (connection.incoming, connection.outgoing);
    let mut inward = pin!(async {
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            match reader.read(&mut buffer).await {
                Ok(0) => return outgoing.finish().await.is_ok(),
                Ok(read) => {
                    let piece = Bytes::copy_from_slice(buffer.get(..read).unwrap_or_default());
                    // A program that reads no more may still have something to say.
                    if outgoing.send(piece).await.is_err() {
                        return true;
                    }
                }
                // The client is gone.
                Err(_) => return false,
            }
        }
    });
    let mut outward = pin!(async {
        while let Some(bytes) = incoming.next().await {
            let bytes = bytes.map_err(|error| error.chain().to_string())?;
            if writer.write_all(&bytes).await.is_err() {
                return Ok::<bool, String>(false);
            }
        }
        Ok(writer.shutdown().await.is_ok())
    });
    // Each says whether the other may go on.
    tokio::select! {
        goes_on = &mut inward => {
            if goes_on {
                outward.await?;
            }
        }
        goes_on = &mut outward => {
            if goes_on? {
                inward.await;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sandbox, and the ports there and here.
    type Parsed = (Option<String>, Vec<(u16, u16)>);

    fn parsed(targets: &[&str]) -> Result<Parsed, String> {
        let targets: Vec<String> = targets.iter().map(ToString::to_string).collect();
        let (sandbox, forwards) = parse(&targets).map_err(|failure| failure.to_string())?;
        let ports = forwards.iter().map(|to| (to.port, to.local)).collect();
        Ok((sandbox.map(str::to_owned), ports))
    }

    #[test]
    fn the_sandbox_may_be_left_out() {
        assert_eq!(parsed(&["80"]).unwrap(), (None, vec![(80, 80)]));
        let both = parsed(&["local:.", "80:0", "81"]).unwrap();
        assert_eq!(both, (Some("local:.".to_owned()), vec![(80, 0), (81, 81)]));
    }

    #[test]
    fn what_is_no_port_is_refused() {
        for text in [
            "0", "0:80", "65536", "80:", ":80", "80:x", "+80", "80:81:82", "docker",
        ] {
            let error = parsed(&[text]).unwrap_err();
            assert!(error.contains("is not a port"), "{text}: {error}");
        }
        assert!(parsed(&["docker", "web"]).is_err());
    }
}
