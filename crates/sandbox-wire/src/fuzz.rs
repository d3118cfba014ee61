//! Feeds arbitrary bytes to both ends of the protocol, for fuzzing.

mod echo;

use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use backend_core::ops::{
    Command, GlobQuery, GrepQuery, LsOptions, ReadOptions, ShellId, Signal, StatOptions,
    TerminalSize, TextOptions, WatchQuery,
};
use backend_core::{Capabilities, VPath};
use backend_run::Activity;
use futures::{AsyncWriteExt as _, StreamExt as _};
use tokio::io::DuplexStream;
use yamux::{Connection, Mode};

use crate::channel::{Channel, ChannelError, ChannelSetup, start};
use crate::fuzz::echo::Echoing;
use crate::handshake::{AgentInfo, ClientHello, greet_agent, greet_host};
use crate::message::{REQUEST_BYTES, Reply, Request, encode, receive};
use crate::socket::Socket;
use crate::{ServeOptions, client, engine, serve};

type Io = Socket<tokio::io::ReadHalf<DuplexStream>, tokio::io::WriteHalf<DuplexStream>>;

const HEARTBEAT: Duration = Duration::from_secs(5);
const HELLO: ClientHello = ClientHello {
    heartbeat: HEARTBEAT,
};

fn socket(pipe: DuplexStream) -> Io {
    let (reader, writer) = tokio::io::split(pipe);
    Socket::new(reader, writer)
}

/// Serves `backend` to a host that sends these bytes: instead of its greeting,
/// after its greeting, as a call, as one message, or after the beginning of a call that
/// stays open. Its commands send back what they get.
pub fn server(bytes: &[u8], backend: Arc<dyn backend_core::Backend>) {
    // A stream without any bytes is not opened.
    let Some((mode, bytes @ [_, ..])) = bytes.split_first() else {
        return;
    };
    let Ok(engine) = engine::handle() else { return };
    let backend = Arc::new(Echoing(backend));
    engine.block_on(async {
        let (host, agent) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(agent);
        let served = serve(reader, writer, backend, ServeOptions::default());
        let say = async {
            let mut socket = socket(host);
            if mode % 5 > 0 {
                let _ = greet_agent(&mut socket, HELLO).await;
            }
            if mode % 5 < 2 {
                let _ = socket.write_all(bytes).await;
                let _ = socket.close().await;
                return;
            }
            let mut connection = Connection::new(socket, yamux::Config::default(), Mode::Client);
            let opened = std::future::poll_fn(|cx| connection.poll_new_outbound(cx)).await;
            let Ok(mut stream) = opened else { return };
            let next = |cx: &mut Context<'_>| connection.poll_next_inbound(cx);
            let call = async {
                let _ = stream.write_all(&first(*mode, bytes)).await;
                let _ = stream.close().await;
                crate::message::ended(&mut stream).await;
            };
            tokio::select! { () = call => {}, _ = std::future::poll_fn(next) => {} }
        };
        let _ = futures::join!(served, say);
    });
}

/// Returns the bytes of a call.
fn first(mode: u8, bytes: &[u8]) -> Vec<u8> {
    match (mode % 5, bytes) {
        (3, _) => {
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            [&length.to_le_bytes(), bytes].concat()
        }
        (4, [call, rest @ ..]) => {
            let shell = || ShellId::new("bg_1");
            let request = match call % 5 {
                0 => Request::Connect(80),
                1 => Request::ShellAttach(shell()),
                2 => Request::ShellResize(shell(), TerminalSize::default()),
                3 => Request::ShellSignal(shell(), Signal::Interrupt),
                _ => Request::Watch(WatchQuery::new(VPath::root())),
            };
            let mut all = encode(&request).unwrap_or_default();
            all.extend_from_slice(rest);
            all
        }
        _ => bytes.to_vec(),
    }
}

/// Makes calls to an agent that answers with these bytes: instead of its
/// greeting, after its greeting, or to every call.
pub fn client(bytes: &[u8]) {
    let Some(([mode, call], bytes)) = bytes.split_first_chunk() else {
        return;
    };
    if let Ok(reply) = postcard::from_bytes::<Reply>(bytes) {
        let _ = format!("{reply:?}");
    }
    let Ok(engine) = engine::handle() else { return };
    let bytes = bytes.to_vec();
    engine.block_on(async {
        let (host, agent) = tokio::io::duplex(64 * 1024);
        let agent = tokio::spawn(lie(socket(agent), *mode, bytes));
        if let Some(channel) = connect(host).await {
            ask(&Arc::new(channel), *call).await;
        }
        let _ = agent.await;
    });
}

/// Reads these bytes as the other side of a websocket: instead of a request, after it,
/// after the token, or from an agent.
#[cfg(feature = "websocket")]
pub fn websocket(bytes: &[u8]) {
    use crate::websocket::{Token, accept, attach};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    /// A message with the token, and a mask of zeros.
    const TOKEN: &[u8] = b"\x82\xa0\x00\x00\x00\x000123456789abcdef0123456789abcdef";

    let Some((mode, bytes)) = bytes.split_first() else {
        return;
    };
    let token = Token::new("0123456789abcdef".repeat(2));
    let (Ok(engine), Ok(token)) = (engine::handle(), token) else {
        return;
    };
    let first = match mode % 4 {
        1 => vec![REQUEST],
        2 => vec![REQUEST, TOKEN],
        _ => Vec::new(),
    };
    let said = [first.concat(), bytes.to_vec()].concat();
    engine.block_on(async {
        let (ours, mut theirs) = tokio::io::duplex(64 * 1024);
        let say = async {
            let _ = theirs.write_all(&said).await;
            let _ = theirs.shutdown().await;
        };
        let read = async {
            if mode % 4 == 3 {
                if let Ok(mut process) = attach(ours, &token).await {
                    while let Some(Ok(_)) = process.output.next().await {}
                }
                return;
            }
            let (reader, writer) = tokio::io::split(ours);
            let accepted = accept(reader, writer, &token).await;
            assert!(mode % 4 != 2 || accepted.is_ok(), "the token is right");
            if let Ok(mut connection) = accepted {
                let _ = connection.read_to_end(&mut Vec::new()).await;
            }
        };
        futures::join!(say, read);
    });
}

async fn lie(mut socket: Io, mode: u8, bytes: Vec<u8>) {
    let info = AgentInfo {
        pid: 1,
        uid: None,
        capabilities: Capabilities::default(),
        working_dir: VPath::root(),
    };
    if mode % 3 > 0 {
        let _ = greet_host(&mut socket, &info).await;
    }
    if mode % 3 < 2 {
        let _ = socket.write_all(&bytes).await;
        let _ = socket.close().await;
        return;
    }
    let mut connection = Connection::new(socket, yamux::Config::default(), Mode::Server);
    let next = |cx: &mut Context<'_>| connection.poll_next_inbound(cx);
    let mut streams = futures::stream::poll_fn(next);
    while let Some(Ok(mut stream)) = streams.next().await {
        let bytes = bytes.clone();
        tokio::spawn(async move {
            match receive(&mut stream, REQUEST_BYTES).await {
                Ok(Request::Control) => crate::message::ended(&mut stream).await,
                _ => drop(stream.write_all(&bytes).await),
            }
        });
    }
}

async fn connect(host: DuplexStream) -> Option<Channel> {
    let mut socket = socket(host);
    let info = greet_agent(&mut socket, HELLO).await.ok()?;
    let setup = ChannelSetup {
        received: socket.received(),
        socket,
        busy: Box::new(|| {}),
        info,
        heartbeat: HEARTBEAT,
        patience: HEARTBEAT,
        calls: 1,
        explain: Box::new(|what| Box::pin(async { ChannelError::new(what) })),
    };
    start(engine::handle().ok()?, setup).ok()
}

/// Makes one call and reads everything that comes back.
async fn ask(channel: &Arc<Channel>, call: u8) {
    let root = VPath::root();
    let glob = GlobQuery::new("*", root.clone()).limit(10);
    let grep = GrepQuery::new("x", root.clone()).max_matches(10);
    let (ls, text) = (LsOptions::default().limit(10), TextOptions::default());
    let command = Command::new("x");
    let read = ReadOptions::default().max_bytes(1 << 20);
    let watch = WatchQuery::new(root.clone());
    let shell = ShellId::new("bg_1");
    let request = match call % 14 {
        0 => Request::Stat(root.clone(), StatOptions::default()),
        1 => Request::Ls(root.clone(), ls.clone()),
        2 => Request::Read(root.clone(), read),
        3 => Request::ReadText(root.clone(), text),
        4 => Request::Glob(glob.clone()),
        5 => Request::Grep(grep.clone()),
        6 => Request::Execute(command.clone()),
        7 => Request::Stream(command.clone()),
        8 => Request::Connect(80),
        9 => Request::ShellList,
        10 => Request::Watch(watch.clone()),
        11 => Request::ShellAttach(shell),
        12 => Request::ShellResize(shell, TerminalSize::default()),
        _ => Request::ShellSignal(shell, Signal::Interrupt),
    };
    let Ok(Some(mut sent)) = channel.call(&request).await else {
        return;
    };
    let shown = match call % 14 {
        0 => format!("{:?}", client::entry(&mut sent, &root).await),
        1 => format!("{:?}", client::listing(&mut sent, &root, &ls).await),
        2 => format!("{:?}", client::read(&mut sent, &read).await),
        3 => format!("{:?}", client::text(&mut sent, &text).await),
        4 => format!("{:?}", client::glob(&mut sent, &glob).await),
        5 => format!("{:?}", client::grep(&mut sent, &grep).await),
        6 => format!("{:?}", client::executed(&mut sent, &command).await),
        7 => match client::events(sent, &command, (), |error| error).await {
            Ok(events) => format!("{:?}", events.collect::<Vec<_>>().await),
            Err(error) => format!("{error:?}"),
        },
        8 | 11 => match client::connection(sent, Activity::default()).await {
            Ok(connection) => format!("{:?}", talk(connection).await),
            Err(error) => format!("{error:?}"),
        },
        9 => format!("{:?}", client::shells(&mut sent).await),
        12 | 13 => format!("{:?}", client::done(&mut sent).await),
        _ => match client::changes(sent, watch, |error| error).await {
            Ok(changes) => format!("{:?}", changes.collect::<Vec<_>>().await),
            Err(error) => format!("{error:?}"),
        },
    };
    drop(shown);
}

/// Sends something, and returns everything that comes back.
async fn talk(connection: backend_core::Connection) -> Vec<backend_core::Result<bytes::Bytes>> {
    let (incoming, mut outgoing) = (connection.incoming, connection.outgoing);
    let send = async {
        // It fails if the agent closes the stream first.
        let _ = outgoing.send(vec![0; 300_000].into()).await;
        let _ = outgoing.finish().await;
    };
    let (received, ()) = futures::join!(incoming.collect::<Vec<_>>(), send);
    received
}
