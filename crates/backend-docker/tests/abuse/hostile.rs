//! A container that lies: its agent is replaced by something else.

use backend_core::BackendExt as _;
use backend_docker::Delivery;

use crate::support::{Box, is_unavailable, resident};

/// What a hostile container runs instead of the agent, which it kept as `$0.real`.
const LIARS: &[(&str, &str)] = &[
    ("says nothing sensible", "echo 'HTTP/1.1 200 OK'; exit 0"),
    ("ends at once", "exit 0"),
    ("says what it hears", "exec cat"),
    ("never ends", "exec yes y"),
    ("sends zeros", "exec cat /dev/zero"),
    ("sends noise", "exec cat /dev/urandom"),
    (
        "changes what the agent says, later",
        r#""$0.real" "$@" | { dd bs=1 count=400 2>/dev/null; tr 'a-m' 'n-z'; }"#,
    ),
    (
        "loses bytes of what the agent says",
        r#""$0.real" "$@" | tr -d '\000'"#,
    ),
    (
        "cuts it off in the middle",
        r#""$0.real" "$@" | head -c 300"#,
    ),
];

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn an_agent_that_lies_is_an_error_that_says_so_and_no_harm() {
    let b = Box::with(|builder| builder.user("0:0").delivery(Delivery::Upload));
    b.works().await;
    let agent = b.exec_with("tr '\\0' '\\n' < /proc/$1/cmdline | head -n 1", &b.agent());
    b.exec_with("cp $1 $1.real", &agent);
    let running = b.agent();
    let before = resident();
    for (what, script) in LIARS {
        eprintln!("an agent that {what}");
        let place =
            format!("rm {agent}; printf '%s\\n' '#!/bin/sh' \"$1\" > {agent}; chmod 755 {agent}");
        b.exec_with(&place, script);
        b.exec_with("kill -9 $1 2>/dev/null || true", &running);
        let told = is_unavailable(b.sandbox.read_string("a.txt").await);
        assert!(told.contains("agent"), "{told}");
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{} MiB more", grown >> 20);
    b.exec_with("mv $1.real $1", &agent);
    b.works().await;
    b.end().await;
}
