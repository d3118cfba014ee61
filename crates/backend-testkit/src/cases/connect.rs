//! Connections to ports of commands.

use std::time::Duration;

use backend_core::ops::{Command, ShellId, ShellState, StopMode};
use backend_core::{Connection, ErrorKind, Outgoing};
use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::{join, join_all, try_join};

use crate::env::Env;
use crate::failure::{CaseResult, Failure};
use crate::{check, check_eq};

/// Longer than any operation here takes: a wait that lasts this long has failed.
const LONG: Duration = Duration::from_secs(50);

/// Listens on a port, prints it, and runs `./serve` for every connection. Perl chooses a
/// free port, which matters where commands share the host's ports. Busybox cannot.
const LISTEN: &str = r#"
chmod +x serve
if command -v perl >/dev/null 2>&1; then
    exec perl -MIO::Socket::INET -e '
        $| = 1;
        $SIG{CHLD} = "IGNORE";
        $s = IO::Socket::INET->new(Listen => 128, LocalAddr => "127.0.0.1") or die $!;
        print "port ", $s->sockport, "\n";
        while (1) {
            $c = $s->accept or next;
            if (fork) { close $c; next }
            close $s;
            $SIG{CHLD} = "DEFAULT";
            open STDIN, "<&", $c;
            open STDOUT, ">&", $c;
            close $c;
            exec "./serve";
        }'
fi
port=$((20000 + $$ % 40000))
echo "port $port"
exec nc -ll -p "$port" -e ./serve
"#;

/// A server in the sandbox.
struct Server {
    port: u16,
    shell: ShellId,
}

/// Starts a server that runs these lines for every connection, with the connection as
/// standard input and output.
async fn serve(t: &Env, lines: &str) -> Result<Server, Failure> {
    t.put("serve", format!("#!/bin/sh\n{lines}\n")).await?;
    let directory = t.path(".")?;
    let sandbox = t.sandbox()?;
    let command = Command::new(LISTEN).directory(directory);
    let shell = sandbox.shell_start(command).await?;
    let mut printed = String::new();
    while !printed.ends_with('\n') {
        let output = sandbox.shell_read(&shell.id, LONG).await?;
        printed.push_str(&String::from_utf8_lossy(&output.stdout));
        let failed = || format!("the server ended: {}", output.stderr.escape_ascii());
        check!(output.state == ShellState::Running, "{}", failed())?;
    }
    let port = printed.trim().strip_prefix("port ");
    let port = port.and_then(|port| port.parse().ok());
    let port = port.ok_or_else(|| Failure::new(format!("{printed:?} is not a port")))?;
    Ok(Server {
        port,
        shell: shell.id,
    })
}

/// Connects to a server, which may not listen yet.
async fn connect(t: &Env, server: &Server) -> Result<Connection, Failure> {
    let sandbox = t.sandbox()?;
    loop {
        match sandbox.connect(server.port).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let wait = Duration::from_millis(20);
                let output = sandbox.shell_read(&server.shell, wait).await?;
                check!(output.state == ShellState::Running, "the server ended")?;
            }
            connected => return Ok(connected?),
        }
    }
}

/// Sends bytes, and says that there are no more.
async fn send_all(mut outgoing: Box<dyn Outgoing>, bytes: &[u8]) -> CaseResult {
    for piece in bytes.chunks(100_000) {
        outgoing.send(Bytes::copy_from_slice(piece)).await?;
    }
    Ok(outgoing.finish().await?)
}

/// Receives bytes until the other side has sent everything.
async fn receive_all(
    mut incoming: futures::stream::BoxStream<'static, backend_core::Result<Bytes>>,
) -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    while let Some(bytes) = incoming.next().await {
        all.extend_from_slice(&bytes?);
    }
    Ok(all)
}

/// Sends everything and receives everything at once.
async fn exchange(connection: Connection, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    let sent = send_all(connection.outgoing, bytes);
    let (_, received) = try_join(sent, receive_all(connection.incoming)).await?;
    Ok(received)
}

/// Waits for a file that the server creates.
async fn wait_for(t: &Env, name: &str) -> CaseResult {
    let line = format!("until [ -e {name} ]; do sleep 0.05; done");
    let command = Command::new(line).directory(t.path(".")?).timeout(LONG);
    let outcome = t.sandbox()?.execute(command).await?;
    check!(outcome.status.success(), "there is no {name}")
}

/// A connection carries bytes to a server and back.
pub async fn reaches_a_server(t: &Env) -> CaseResult {
    let server = serve(t, "exec cat").await?;
    let mut connection = connect(t, &server).await?;
    connection.outgoing.send(Bytes::from_static(b"one")).await?;
    let first = connection.incoming.next().await;
    check!(
        matches!(&first, Some(Ok(bytes)) if &bytes[..] == b"one"),
        "{first:?}"
    )?;
    check_eq!(exchange(connection, b"two").await?, b"two")
}

/// A port that no command listens on is not found.
pub async fn nothing_listens(t: &Env) -> CaseResult {
    // Nothing can listen on it by chance: it is reserved, and needs privileges.
    let error = t.sandbox()?.connect(1).await.err();
    check_eq!(error.map(|error| error.kind()), Some(ErrorKind::NotFound))
}

/// Port 0 is not a port.
pub async fn zero_is_invalid(t: &Env) -> CaseResult {
    let error = t.sandbox()?.connect(0).await.err();
    check_eq!(
        error.map(|error| error.kind()),
        Some(ErrorKind::InvalidInput)
    )
}

/// The server learns that everything was sent, and can still answer.
pub async fn finish_leaves_the_other_direction(t: &Env) -> CaseResult {
    let server = serve(t, "wc -c").await?;
    let received = exchange(connect(t, &server).await?, b"12345").await?;
    check_eq!(String::from_utf8_lossy(&received).trim(), "5")
}

/// The stream ends when the server has sent everything.
pub async fn ends_with_the_server(t: &Env) -> CaseResult {
    let server = serve(t, "echo hello").await?;
    let connection = connect(t, &server).await?;
    check_eq!(receive_all(connection.incoming).await?, b"hello\n")
}

/// Bytes arrive as they were sent, whatever they are.
pub async fn bytes_are_exact(t: &Env) -> CaseResult {
    let server = serve(t, "exec cat").await?;
    let bytes: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    let received = exchange(connect(t, &server).await?, &bytes).await?;
    check!(received == bytes, "other bytes came back")
}

/// Much goes both ways at once.
pub async fn much_goes_both_ways(t: &Env) -> CaseResult {
    let server = serve(t, "exec cat").await?;
    let bytes: Vec<u8> = (0..4_u32 << 20).map(|at| (at % 251) as u8).collect();
    let received = exchange(connect(t, &server).await?, &bytes).await?;
    check_eq!(received.len(), bytes.len())?;
    check!(received == bytes, "other bytes came back")
}

/// A server whose bytes are not read waits, and ends when the connection is dropped.
pub async fn unread_bytes_wait(t: &Env) -> CaseResult {
    let server = serve(t, "cat /dev/zero\n: > ended").await?;
    let mut connection = connect(t, &server).await?;
    let first = connection.incoming.next().await;
    check!(matches!(&first, Some(Ok(_))), "{first:?}")?;
    check!(t.get("ended").await.is_err(), "it did not wait")?;
    drop(connection);
    wait_for(t, "ended").await
}

/// Dropping a connection closes it.
pub async fn dropped_is_closed(t: &Env) -> CaseResult {
    let server = serve(t, "cat > got\n: > ended").await?;
    let mut connection = connect(t, &server).await?;
    connection
        .outgoing
        .send(Bytes::from_static(b"all of it"))
        .await?;
    // It is there before the connection is dropped.
    let line = "until [ -s got ]; do sleep 0.05; done";
    let command = Command::new(line).directory(t.path(".")?).timeout(LONG);
    check!(t.sandbox()?.execute(command).await?.status.success())?;
    drop(connection);
    wait_for(t, "ended").await?;
    check_eq!(t.get("got").await?, b"all of it")
}

/// Sending to a server that is gone fails.
pub async fn sending_to_nothing_fails(t: &Env) -> CaseResult {
    let server = serve(t, "exit 0").await?;
    let mut connection = connect(t, &server).await?;
    let piece = Bytes::from(vec![0; 64 * 1024]);
    // Buffers on the way take some of it.
    for _ in 0..10_000 {
        if let Err(error) = connection.outgoing.send(piece.clone()).await {
            return check_eq!(error.kind(), ErrorKind::Unavailable);
        }
    }
    Err(Failure::new("600 MB went nowhere"))
}

/// Connections do not share bytes.
pub async fn connections_are_apart(t: &Env) -> CaseResult {
    let server = serve(t, "exec cat").await?;
    let (first, second) = join(connect(t, &server), connect(t, &server)).await;
    let exchanged = join(exchange(first?, b"first"), exchange(second?, b"second")).await;
    check_eq!(exchanged.0?, b"first")?;
    check_eq!(exchanged.1?, b"second")
}

/// Many connections are open at once.
pub async fn many_at_once(t: &Env) -> CaseResult {
    let server = serve(t, "exec cat").await?;
    let mut connections = Vec::new();
    for number in 0..40 {
        let text = format!("number {number}");
        let mut connection = connect(t, &server).await?;
        connection.outgoing.send(text.clone().into()).await?;
        // The answer shows that it was accepted. Busybox refuses more than one that waits
        // for that.
        let mut received = Vec::new();
        while received.len() < text.len() {
            let bytes = connection.incoming.next().await;
            let ended = || Failure::new(format!("it ended after {received:?}"));
            received.extend_from_slice(&bytes.ok_or_else(ended)??);
        }
        check_eq!(String::from_utf8_lossy(&received), text)?;
        connections.push(connection);
    }
    let exchanges = connections
        .into_iter()
        .enumerate()
        .map(|(number, connection)| async move {
            let text = format!("again {number}");
            let received = exchange(connection, text.as_bytes()).await?;
            check_eq!(String::from_utf8_lossy(&received), text)
        });
    join_all(exchanges).await.into_iter().collect()
}

/// Stopping the sandbox ends its connections.
pub(super) async fn stop_ends_connections(t: &Env) -> CaseResult {
    let server = serve(t, "echo up; exec sleep 1000").await?;
    let mut connection = connect(t, &server).await?;
    let first = connection.incoming.next().await;
    check!(matches!(&first, Some(Ok(_))), "{first:?}")?;
    t.sandbox()?.stop(StopMode::Keep).await?;
    // The server may have closed it before the sandbox was gone.
    while let Some(Ok(_)) = connection.incoming.next().await {}
    let sent = connection.outgoing.send(Bytes::from_static(b"x")).await;
    check_eq!(
        sent.err().map(|error| error.kind()),
        Some(ErrorKind::Unavailable)
    )
}

/// Killing the server ends the connection.
pub async fn killed_server_ends_it(t: &Env) -> CaseResult {
    let server = serve(t, "echo up; exec sleep 1000").await?;
    let mut connection = connect(t, &server).await?;
    let first = connection.incoming.next().await;
    check!(matches!(&first, Some(Ok(_))), "{first:?}")?;
    t.sandbox()?.shell_kill(&server.shell).await?;
    // Whether it is an end or an error depends on how the kernel closes it.
    while let Some(Ok(_)) = connection.incoming.next().await {}
    Ok(())
}
