//! `forward`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::thread;

use futures::future::join_all;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{TestDir, in_script};

/// Starts a server that sends back what it gets, and returns its port.
fn echo_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                let _ = std::io::copy(&mut stream.try_clone().unwrap(), &mut stream);
                let _ = stream.shutdown(Shutdown::Write);
            });
        }
    });
    port
}

/// Returns the address of the next line that the program prints.
fn address(out: &mut impl std::io::BufRead) -> SocketAddr {
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    line.split(' ').next().unwrap().parse().unwrap()
}

fn interrupt(mut child: Child) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    kill(pid, Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

fn echoed(to: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(to).unwrap();
    let mut reading = stream.try_clone().unwrap();
    let received = thread::spawn(move || {
        let mut received = Vec::new();
        reading.read_to_end(&mut received).unwrap();
        received
    });
    stream.write_all(bytes).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    received.join().unwrap()
}

#[test]
fn bytes_go_both_ways_on_loopback_only() {
    let (dir, port, other) = (TestDir::new(), echo_server(), echo_server());
    let (first, second) = (format!("{port}:0"), format!("{other}:0"));
    let mut child = dir.start(&["forward", "local:.", &first, &second]);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..2 {
        let here = address(&mut out);
        assert!(here.ip().is_loopback(), "{here}");
        let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
        assert!(echoed(here, &bytes) == bytes);
        // Each connection is its own.
        let many: Vec<_> = (0..50)
            .map(|number| thread::spawn(move || echoed(here, format!("{number}").as_bytes())))
            .collect();
        for (number, echo) in many.into_iter().enumerate() {
            assert_eq!(echo.join().unwrap(), format!("{number}").as_bytes());
        }
    }
    interrupt(child);
}

/// Connections that the program carries at once.
const CONNECTIONS: usize = 1_000;

/// Starts the program with a usual limit of open files.
fn start_limited(dir: &TestDir, arguments: &[&str]) -> Child {
    let script = "ulimit -Sn 1024; exec \"$0\" \"$@\"";
    let mut limited = in_script(&dir.command(arguments), script);
    limited.stdout(Stdio::piped()).stderr(Stdio::piped());
    limited.stdin(Stdio::null()).spawn().unwrap()
}

/// Serves connections with the bytes that they send, all at once.
async fn echo_all(listener: tokio::net::TcpListener) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let (mut reader, mut writer) = stream.split();
            let _ = tokio::io::copy(&mut reader, &mut writer).await;
        });
    }
}

/// Sends bytes and waits until they come back.
async fn exchange(stream: &mut tokio::net::TcpStream, bytes: &[u8]) {
    let (mut reader, mut writer) = stream.split();
    let mut received = vec![0; bytes.len()];
    let sent = writer.write_all(bytes);
    let (sent, read) = tokio::join!(sent, reader.read_exact(&mut received));
    sent.unwrap();
    read.unwrap();
    assert!(received == bytes, "bytes of another connection");
}

#[test]
fn a_thousand_connections_are_open_at_once() {
    // This process has both of their ends.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit {
        current: limit.maximum,
        ..limit
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
    let listener = listener.unwrap();
    let port = listener.local_addr().unwrap().port();
    runtime.spawn(echo_all(listener));
    let dir = TestDir::new();
    let mut child = start_limited(&dir, &["forward", "local:.", &format!("{port}:0")]);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let here = address(&mut out);
    let open = |number: usize| async move {
        let mut stream = tokio::net::TcpStream::connect(here).await.unwrap();
        exchange(&mut stream, format!("number {number}").as_bytes()).await;
        stream
    };
    runtime.block_on(async {
        let mut streams = join_all((0..CONNECTIONS).map(open)).await;
        let mut next = tokio::net::TcpStream::connect(here).await.unwrap();
        next.write_all(b"next").await.unwrap();
        let all = streams.iter_mut().enumerate();
        join_all(all.map(|(number, stream)| async move {
            let bytes: Vec<u8> = (0..20_000).map(|at| ((number + at) % 251) as u8).collect();
            exchange(stream, &bytes).await;
        }))
        .await;
        // One more is not served until another is closed.
        assert!(next.try_read(&mut [0; 4]).is_err());
        streams.pop();
        let mut answer = [0; 4];
        next.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"next");
    });
    interrupt(child);
}

/// A connection to a port without a server is closed, and the reason is told once.
#[test]
fn a_missing_server_is_told() {
    let dir = TestDir::new();
    // Nothing listens on it: it is reserved, and needs privileges.
    let mut child = dir.start(&["--backend", "local:.", "forward", "1:0"]);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let here = address(&mut out);
    for _ in 0..3 {
        assert_eq!(echoed(here, b""), b"");
    }
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    assert!(line.contains("nothing listens on port 1"), "{line}");
    interrupt(child);
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

#[test]
fn rules_decide_about_ports() {
    let (dir, port) = (TestDir::new(), echo_server().to_string());
    let text = "[connect]\ndefault = \"deny\"\nrules = [{ ports = \"1-9\", action = \"allow\" }]\n";
    let rules = dir.file("rules.toml", text).display().to_string();
    let files = dir.path("files");
    std::fs::create_dir(&files).unwrap();
    let backend = format!("local:{}", files.display());
    let run = |arguments: &[&str]| {
        dir.run(
            &[
                &["--permissions", &rules, "--backend", &backend][..],
                arguments,
            ]
            .concat(),
        )
    };
    run(&["forward", &port]).code(2).complains("port");
    // Without a terminal, an approval cannot be asked for.
    dir.run(&[
        "--permissions",
        "default",
        "--backend",
        "local:.",
        "forward",
        &port,
    ])
    .code(2)
    .complains("approval");
    let check = |port: &str| dir.run(&["check", &rules, "connect", port]);
    check("5").code(0);
    check("80").code(1);
    check("http").code(64);
}

#[test]
fn what_cannot_be_forwarded_is_refused() {
    let dir = TestDir::new();
    dir.run(&["forward", "state", "80"])
        .code(3)
        .complains("no commands");
    dir.run(&["--backend", "local:.", "forward", "http"])
        .code(64)
        .complains("is not a port");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let local = taken.local_addr().unwrap().port();
    dir.run(&["--backend", "local:.", "forward", &format!("80:{local}")])
        .code(3)
        .complains("choose another");
}
