//! Sessions of a server's clients, and `sessions`.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::support::sessions::SessionServer;
use crate::support::{ProgramOutput, TestDir};

const ALICE: &str = "0123456789abcdef-alice";
const BOB: &str = "0123456789abcdef-bob";

/// A directory with a file of two tokens.
fn dir() -> TestDir {
    let dir = TestDir::new();
    tokens(&dir, &format!("# the team\nalice {ALICE}\nbob {BOB}\n"));
    dir
}

fn tokens(dir: &TestDir, text: &str) {
    let file = dir.file("tokens", text);
    std::fs::set_permissions(file, Permissions::from_mode(0o600)).unwrap();
}

fn serve(dir: &TestDir, flags: &[&str]) -> SessionServer {
    let all = ["mcp", "--http", "127.0.0.1:0", "--token-file", "tokens"];
    SessionServer::start(dir.command(&[&all, flags].concat()))
}

fn serve_files(dir: &TestDir) -> SessionServer {
    serve(dir, &["--workspaces", "files"])
}

fn sessions(dir: &TestDir, arguments: &[&str]) -> ProgramOutput {
    dir.run(&[&["sessions", "--workspaces", "files"], arguments].concat())
}

#[test]
fn two_clients_have_files_of_their_own_and_find_them_again() {
    let dir = dir();
    let server = serve_files(&dir);
    let alice = server.connect(ALICE, None).unwrap();
    let bob = server.connect(BOB, None).unwrap();
    alice.write("notes.md", "of alice\n");
    bob.write("notes.md", "of bob\n");
    alice.write("only.md", "secret\n");
    assert!(alice.read("notes.md").contains("of alice"));
    assert!(bob.read("notes.md").contains("of bob"));
    for path in [
        "only.md",
        "../../alice/workspace/only.md",
        "/alice/workspace/only.md",
    ] {
        let read = bob.read(path);
        assert!(!read.contains("secret"), "{path}: {read}");
    }
    // Neither do its commands reach them.
    let outside = dir.path("files/alice/workspace/only.md");
    let command = format!("cat {}; echo done", outside.display());
    let looked = bob.call("execute", json!({"command": command}));
    assert!(looked.contains("done"), "{looked}");
    assert!(!looked.contains("secret"), "{looked}");
    // A second client with the same token has the same files.
    let again = server.connect(ALICE, None).unwrap();
    assert!(again.read("only.md").contains("secret"));
    server.end();
    assert_eq!(dir.read("files/alice/workspace/only.md"), "secret\n");

    let server = serve_files(&dir);
    let alice = server.connect(ALICE, None).unwrap();
    assert!(alice.read("only.md").contains("secret"));
    let seen = alice.call("execute", json!({"command": "cat notes.md"}));
    assert!(seen.contains("of alice"), "{seen}");
    server.end();
}

#[test]
fn a_client_asks_for_sessions_of_its_own_only() {
    let dir = dir();
    let server = serve_files(&dir);
    let alice = server.connect(ALICE, None).unwrap();
    alice.write("a.txt", "main\n");
    let second = server.connect(ALICE, Some("alice.second")).unwrap();
    assert!(!second.read("a.txt").contains("main"));
    second.write("a.txt", "second\n");
    assert!(alice.read("a.txt").contains("main"));
    let refused = |session: &str| server.connect(BOB, Some(session)).err().unwrap();
    // The answer is the same for a session that exists and for one that does not.
    let (there, nowhere) = (refused("alice.second"), refused("alice.none"));
    assert!(there.contains(" 403 "), "{there}");
    assert!(there.contains("can name bob"), "{there}");
    assert_eq!(there, nowhere);
    assert_eq!(refused("alice"), there);
    for id in ["../alice", ""] {
        let wrong = refused(id);
        assert!(wrong.contains(" 400 "), "{wrong}");
        assert!(wrong.contains("is not the id of a session"), "{wrong}");
    }
    assert!(server.connect("0123456789abcdef", None).is_err());
    server.end();
    assert_eq!(dir.read("files/alice.second/workspace/a.txt"), "second\n");
    assert!(!dir.path("files/bob").exists());
}

#[test]
fn sessions_are_listed_shown_and_ended() {
    let dir = dir();
    let server = serve_files(&dir);
    let alice = server.connect(ALICE, None).unwrap();
    alice.write("src/main.rs", "fn main() {}\n");
    alice.write("big.txt", "0123456789");
    let bob = server.connect(BOB, None).unwrap();
    bob.write("b", "b");
    let used = sessions(&dir, &["list", "--json"]).code(0).json();
    assert_eq!(used[0]["id"], "alice");
    assert_eq!(used[0]["tenant"], "alice");
    assert_eq!(used[0]["state"], "running");
    assert_eq!(used[1]["id"], "bob");
    // What a server uses is not taken from it.
    sessions(&dir, &["purge", "alice", "--yes"])
        .code(3)
        .complains("release it first");
    sessions(&dir, &["chown", "alice", "alice"])
        .code(3)
        .complains("release it first");
    // It ends a session if it is asked to, and opens it again for its client.
    let released = sessions(&dir, &["release", "alice"]).code(0).out;
    assert_eq!(released, "alice has ended.\n");
    let used = sessions(&dir, &["list", "--json"]).code(0).json();
    assert_eq!(used[0]["state"], "stored");
    assert_eq!(used[1]["state"], "running");
    assert!(alice.read("big.txt").contains("0123456789"));
    server.end();

    let list = sessions(&dir, &["list"]).code(0).out;
    assert!(list.starts_with("SESSION  STATE   OWNER  USED\n"), "{list}");
    assert!(list.contains("\nalice    stored  alice  "), "{list}");
    assert!(list.contains("\nbob      stored  bob    "), "{list}");
    let shown = sessions(&dir, &["show", "alice"]).code(0).out;
    assert!(shown.contains("files     23 bytes\n"), "{shown}");
    let shown = sessions(&dir, &["show", "alice", "--json"]).code(0).json();
    assert_eq!(shown["id"], "alice");
    assert_eq!(shown["state"], "stored");
    assert_eq!(shown["usage"]["stored_bytes"], 23);
    sessions(&dir, &["show", "carol"])
        .code(1)
        .complains("no session carol");
    let released = sessions(&dir, &["release", "alice"]).code(0).out;
    assert_eq!(released, "alice does not run.\n");

    sessions(&dir, &["purge", "alice"])
        .code(64)
        .complains("--yes");
    assert!(dir.path("files/alice").exists());
    sessions(&dir, &["purge", "alice", "--yes"]).code(0);
    assert!(!dir.path("files/alice").exists());
    sessions(&dir, &["purge", "alice", "--yes"])
        .code(1)
        .complains("no session alice");
    let left = sessions(&dir, &["list", "--json"]).code(0).json();
    assert_eq!(left.as_array().unwrap().len(), 1, "{left}");
}

#[test]
fn stored_files_are_shown_without_a_server() {
    let dir = TestDir::new();
    dir.file("files/alice/workspace/src/main.rs", "fn main() {}\n");
    dir.file("files/alice/workspace/a.txt", "text\n");
    dir.file("outside", "secret\n");
    let link = dir.path("files/alice/workspace/link");
    std::os::unix::fs::symlink(dir.path("outside"), link).unwrap();
    let files = |arguments: &[&str]| sessions(&dir, &[&["files", "alice"], arguments].concat());
    assert_eq!(files(&[]).code(0).out, "a.txt\nlink\nsrc/\n  main.rs\n");
    assert_eq!(
        files(&["--depth", "1"]).code(0).out,
        "a.txt\nlink\nsrc/\n… and more\n"
    );
    let cut = files(&["--entries", "1", "--json"]).code(0).json();
    assert_eq!(cut["truncated"], true);
    assert_eq!(cut["entries"].as_array().unwrap().len(), 1);
    assert_eq!(files(&["src"]).code(0).out, "main.rs\n");
    assert_eq!(files(&["src/main.rs"]).code(0).out, "fn main() {}\n");
    for path in ["link", "none", "../../../outside"] {
        let ended = files(&[path]);
        assert_ne!(ended.code, 0, "{path}");
        assert!(!ended.out.contains("secret"), "{path}: {}", ended.out);
    }
    let missing = files(&["none"]).code(1).err.to_lowercase();
    let told = missing.matches("no such file").count();
    assert_eq!(told, 1, "{missing}");
    let entry = files(&["a.txt", "--json"]).code(0).json();
    assert_eq!(
        (&entry["kind"], &entry["size"]),
        (&json!("file"), &json!(5))
    );

    files(&["--tar", "alice.tar"]).code(0);
    let archive = std::fs::read(dir.path("alice.tar")).unwrap();
    let to_pipe = [
        "sessions",
        "--workspaces",
        "files",
        "files",
        "alice",
        "--tar",
        "-",
    ];
    let piped = dir.command(&to_pipe).output().unwrap();
    assert!(piped.status.success());
    assert_eq!(piped.stdout, archive);
    assert_eq!(archive.len() % 512, 0);
    let text = String::from_utf8_lossy(&archive);
    assert!(text.contains("src/main.rs") && text.contains("fn main() {}"));
    assert!(!text.contains("secret"));
    files(&["--tar", "no/where.tar"])
        .code(3)
        .complains("name another file");
    sessions(&dir, &["files", "bob"])
        .code(1)
        .complains("no files are stored");
    dir.run(&["sessions", "files", "../alice"]).code(64);
}

#[test]
fn sessions_of_state_are_in_the_memory_of_the_server() {
    let dir = dir();
    let server = serve(&dir, &["--backend", "state"]);
    let alice = server.connect(ALICE, None).unwrap();
    alice.write("a.txt", "kept\n");
    let bob = server.connect(BOB, None).unwrap();
    assert!(!bob.read("a.txt").contains("kept"));
    drop(alice);
    let again = server.connect(ALICE, None).unwrap();
    assert!(again.read("a.txt").contains("kept"));
    server.end();
    dir.run(&["--backend", "state", "sessions", "list"])
        .code(64)
        .complains("memory of their server");
}

#[test]
fn one_token_without_a_name_behaves_as_before() {
    let dir = dir();
    tokens(&dir, &format!("{ALICE}\n"));
    std::fs::create_dir(dir.path("work")).unwrap();
    let server = serve(&dir, &["--backend", "local:work"]);
    let client = server.connect(ALICE, None).unwrap();
    client.write("a.txt", "shared\n");
    assert_eq!(dir.read("work/a.txt"), "shared\n");
    let error = server.connect(ALICE, Some("other")).err().unwrap();
    assert!(error.contains(" 400 "), "{error}");
    assert!(error.contains("this server has no sessions"), "{error}");
    server.end();
    // With a directory of workspaces, it has any session that it asks for.
    let server = serve_files(&dir);
    server.connect(ALICE, None).unwrap().write("a.txt", "one\n");
    let other = server.connect(ALICE, Some("other")).unwrap();
    other.write("a.txt", "two\n");
    server.end();
    assert_eq!(dir.read("files/mcp/workspace/a.txt"), "one\n");
    assert_eq!(dir.read("files/other/workspace/a.txt"), "two\n");
}

#[test]
fn sessions_of_one_token_are_given_to_names() {
    let dir = dir();
    tokens(&dir, &format!("{ALICE}\n"));
    let server = serve_files(&dir);
    let asked = server.connect(ALICE, Some("bob")).unwrap();
    asked.write("a.txt", "for bob\n");
    let own = server.connect(ALICE, None).unwrap();
    own.write("a.txt", "shared\n");
    server.end();

    tokens(&dir, &format!("mcp {ALICE}\nbob {BOB}\n"));
    let server = serve_files(&dir);
    // The owner of what a token without a name has made is mcp.
    let own = server.connect(ALICE, None).unwrap();
    assert!(own.read("a.txt").contains("shared"));
    let refused = server.connect(BOB, None).err().unwrap();
    assert!(refused.contains("another tenant"), "{refused}");
    server.end();
    sessions(&dir, &["chown", "bob", "alice"])
        .code(64)
        .complains("could not use bob");
    sessions(&dir, &["chown", "carol", "carol"])
        .code(1)
        .complains("no session carol");
    sessions(&dir, &["chown", "bob", "not a name"]).code(64);
    let given = sessions(&dir, &["chown", "bob", "bob"]).code(0).out;
    assert_eq!(given, "bob belongs to bob.\n");
    let server = serve_files(&dir);
    let bob = server.connect(BOB, None).unwrap();
    assert!(bob.read("a.txt").contains("for bob"));
    server.end();
}

#[test]
fn the_config_file_limits_clients_and_sessions() {
    let dir = dir();
    let flags = ["--config", "config.toml", "--workspaces", "files"];
    dir.file(
        "config.toml",
        "[mcp]\nmax_sessions = 1\nidle_timeout = 3600\n",
    );
    let server = serve(&dir, &flags);
    let alice = server.connect(ALICE, None).unwrap();
    let full = server.connect(BOB, None).err().unwrap();
    assert!(full.contains(" 503 "), "{full}");
    drop(alice);
    server.end();
    for (key, value) in [
        ("max_sessions", "0"),
        ("idle_timeout", "0"),
        ("idle_timeout", "99999999999"),
    ] {
        dir.file("config.toml", &format!("[mcp]\n{key} = {value}\n"));
        let start = ["mcp", "--http", "127.0.0.1:0", "--token-file", "tokens"];
        let ended = dir.run(&[&start[..], &flags].concat()).code(64);
        ended.complains(key);
    }
}

#[test]
fn what_sessions_cannot_be_is_said_at_the_start() {
    let dir = dir();
    std::fs::create_dir_all(dir.path("work/keys")).unwrap();
    let serve = |flags: &[&str]| {
        let all = ["mcp", "--http", "127.0.0.1:0", "--token-file", "tokens"];
        dir.run(&[&all, flags].concat())
    };
    for (flags, about) in [
        (&[][..], "--workspaces DIR"),
        (
            &["--backend", "local:work"],
            "write --backend local --workspaces DIR, or --backend docker:IMAGE",
        ),
        (
            &["--backend", "local:work", "--workspaces", "files"],
            "write --backend local --workspaces DIR",
        ),
        (&["--backend", "state:a.json"], "one document for all"),
        (
            &["--backend", "state", "--workspaces", "files"],
            "are in memory",
        ),
        (&["--backend", "composite:a.toml"], "has no sessions"),
        (
            &["--workspaces", "files", "--allow-dir", "work"],
            "allowed_directories",
        ),
        (&["--workspaces", "."], "could read the token"),
    ] {
        serve(flags).code(64).complains(about);
    }
    dir.file("work/keys/rules.toml", "default = \"allow\"\n");
    let inside = [
        "--workspaces",
        "work",
        "--permissions",
        "work/keys/rules.toml",
    ];
    serve(&inside).code(64).complains("put it elsewhere");
    dir.run(&["mcp", "--workspaces", "files"])
        .code(64)
        .complains("--http");
    dir.run(&["sessions", "list"])
        .code(64)
        .complains("--workspaces DIR");
    dir.run(&["sessions", "list", "--workspaces", "none"])
        .code(3)
        .complains("no directory none");
    assert!(!dir.path("none").exists());
    tokens(&dir, &format!("alice {ALICE}\nAlice {BOB}\n"));
    let ended = serve(&["--workspaces", "files"]).code(64);
    ended.complains("lines 1 and 2 have the same name");
    assert!(!ended.err.contains("0123456789abcdef"), "{}", ended.err);
    tokens(&dir, &format!("alice {ALICE}\n"));
    std::fs::set_permissions(dir.path("tokens"), Permissions::from_mode(0o644)).unwrap();
    let ended = serve(&["--workspaces", "files"]).code(64);
    ended.complains("run chmod 600, and write new tokens");
    assert!(!ended.err.contains("remove"), "{}", ended.err);
}
