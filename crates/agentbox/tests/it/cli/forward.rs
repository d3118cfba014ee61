//! `forward`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Child;
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::TestDir;

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
