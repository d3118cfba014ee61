//! `mcp-config` for a server whose tokens have names.

use super::{CLIENTS, TOKEN, config};
use crate::support::TestDir;

#[test]
fn where_tokens_have_names_a_client_gets_its_own_and_the_server_starts() {
    let dir = TestDir::new();
    dir.file(
        "tokens",
        "alice never-shown-0123456789\nbob never-shown-9876543210\n",
    );
    let flags = ["--http", "127.0.0.1:8000", "--token-file", "tokens"];
    let with = ["--workspaces", "files"];
    for client in CLIENTS.iter().filter(|client| **client != "claude-desktop") {
        let ended = config(&dir, client, &[&flags[..], &with].concat()).code(0);
        let said = &ended.err;
        assert!(said.contains("own token"), "{client}: {said}");
        assert!(!said.contains("$(cat"), "{client}: {said}");
        let line = format!(
            "mcp --backend local --http 127.0.0.1:8000 --token-file {} --workspaces {}",
            dir.path("tokens").display(),
            dir.path("files").display()
        );
        assert!(said.contains(&line), "{client}: {said}");
        assert!(!(ended.out + said).contains("never-shown"), "{client}");
    }
    let said = config(&dir, "cursor", &[&flags[..], &with].concat()).err;
    let export = format!("export {TOKEN}=THE-TOKEN-OF-ONE-NAME");
    assert!(said.contains(&export), "{said}");
    let local = ["--backend", "local"];
    let same = config(&dir, "cursor", &[&flags[..], &with, &local].concat());
    assert_eq!(same.code(0).err, said);
    let state = config(&dir, "zed", &[&flags[..], &["--backend", "state"]].concat());
    assert!(state.code(0).err.contains("--backend state --http"));
    // A line that does not work is not printed.
    let refused = config(&dir, "zed", &flags);
    refused.code(64).complains("--workspaces DIR");
    let one = ["--backend", "local:."];
    let refused = config(&dir, "zed", &[&flags[..], &with, &one].concat());
    refused.code(64).complains("one directory for all");
    let alone = config(&dir, "zed", &with);
    alone.code(64).complains("--http");
}
