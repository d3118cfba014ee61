//! Tests that path rules apply to commands that use the host's own paths. The commands
//! run in a real shell on a real directory, and none of them may print the secret.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use backend_core::ops::Command;
use backend_core::{Error, ErrorKind, Sandbox as _};
use backend_local::{Commands, Environment, LocalBackend, NameSpace, Supervisor};
use permissions::{Guarded, Policy, Ruleset};

use crate::support::corpus::corpus;

const SECRET: &str = "the-secret-text";

/// A `work/project` directory with `vault/k`, which must not be read, and links to it.
struct Place {
    _directory: tempfile::TempDir,
    above: PathBuf,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let above = directory.path().canonicalize().unwrap().join("work");
        let root = above.join("project");
        std::fs::create_dir_all(root.join("vault")).unwrap();
        std::fs::create_dir_all(root.join("src/deep")).unwrap();
        std::fs::write(root.join("vault/k"), SECRET).unwrap();
        std::fs::write(root.join("notes.txt"), "notes").unwrap();
        std::fs::write(root.join("src/a.txt"), "source").unwrap();
        std::fs::write(above.join("other.txt"), "outside").unwrap();
        symlink("vault/k", root.join("src/innocent")).unwrap();
        symlink("../vault", root.join("src/dir")).unwrap();
        symlink(&root, root.join("src/deep/root")).unwrap();
        symlink(&root, above.join("alias")).unwrap();
        symlink("../project/vault/k", root.join("src/around")).unwrap();
        symlink(above.join("alias/vault/k"), root.join("src/far")).unwrap();
        symlink("/proc/self/cwd/vault/k", root.join("src/self")).unwrap();
        symlink("../notes.txt", root.join("src/harmless")).unwrap();
        Self {
            _directory: directory,
            above,
            root,
        }
    }

    fn guarded(&self, root: &Path, names: NameSpace, rule: &str) -> Guarded<LocalBackend> {
        let environment = Environment::empty().set("HOME", &self.above);
        let commands = Commands::default()
            .supervisor(Supervisor::None)
            .environment(environment.set("PROJECT", &self.root));
        let backend = LocalBackend::builder(root)
            .names(names)
            .enable_execute(true)
            .commands(commands)
            .open()
            .unwrap();
        let text = format!(
            r#"{{
                "default": "allow",
                "read": {{"default": "allow", "rules": [{{"pattern": "{rule}", "action": "deny"}}]}},
                "execute": {{"default": "allow", "opaque": "allow"}}
            }}"#
        );
        let ruleset: Ruleset = serde_json::from_str(&text).unwrap();
        let policy =
            Policy::builder().ruleset(&ruleset, &backend_core::Backend::working_dir(&backend));
        Guarded::builder(backend).policy(policy.build()).build()
    }

    /// Fills in the paths of this machine.
    fn line(&self, line: &str) -> String {
        line.replace("ROOT", self.root.to_str().unwrap())
            .replace("ABOVE", self.above.to_str().unwrap())
    }
}

/// Runs a command and returns its output.
async fn run(guarded: &Guarded<LocalBackend>, line: &str) -> Result<String, Error> {
    let outcome = guarded.execute(Command::new(line)).await?;
    let printed = [outcome.stdout.text(), outcome.stderr.text()];
    Ok(printed.join("\n"))
}

#[tokio::test]
async fn no_name_of_the_host_evades_a_rule() {
    let place = Place::new();
    let guarded = place.guarded(&place.root, NameSpace::Virtual, "/vault/**");
    let spellings = corpus("host_names.txt");
    assert_eq!(spellings.len(), 119);
    let mut told = Vec::new();
    for (_, line) in spellings {
        let line = place.line(&line);
        match run(&guarded, &line).await {
            Ok(output) if output.contains(SECRET) => told.push(line),
            Ok(_) => {}
            Err(error) => {
                let kind = error.kind();
                let refused = [ErrorKind::PermissionDenied, ErrorKind::ApprovalRequired];
                assert!(refused.contains(&kind), "{line}: {error}");
            }
        }
    }
    assert!(told.is_empty(), "{} told:\n{}", told.len(), told.join("\n"));
}

#[tokio::test]
async fn a_root_behind_a_link_is_the_same_root() {
    let place = Place::new();
    let alias = place.above.join("alias");
    let guarded = place.guarded(&alias, NameSpace::Virtual, "/vault/**");
    for line in [
        "cat vault/k",
        "cat ABOVE/alias/vault/k",
        "cat ROOT/vault/k",
        "cat ../alias/vault/k",
        "cat ../project/vault/k",
        "cd ABOVE/alias && cat vault/k",
    ] {
        let output = run(&guarded, &place.line(line)).await;
        assert!(!output.unwrap_or_default().contains(SECRET), "{line}");
    }
}

#[tokio::test]
async fn names_of_the_host_are_followed_too() {
    let place = Place::new();
    let rule = place.line("ROOT/vault/**");
    let names = NameSpace::Host {
        allowed: vec![place.above.join("alias")],
    };
    let guarded = place.guarded(&place.root, names, &rule);
    for line in [
        "cat vault/k",
        "cat ABOVE/alias/vault/k",
        "cat ROOT/vault/k",
        "cat ../project/vault/k",
        "cat src/innocent",
        "cat /proc/self/cwd/vault/k",
        "cd ..; cat project/vault/k",
    ] {
        let output = run(&guarded, &place.line(line)).await;
        assert!(!output.unwrap_or_default().contains(SECRET), "{line}");
    }
}

#[tokio::test]
async fn what_is_not_denied_still_runs() {
    let place = Place::new();
    let guarded = place.guarded(&place.root, NameSpace::Virtual, "/vault/**");
    for (line, expected) in [
        ("cat notes.txt", "notes"),
        ("cat ./src/../notes.txt", "notes"),
        ("cat ROOT/notes.txt", "notes"),
        ("cat ../project/notes.txt", "notes"),
        ("cat /proc/self/cwd/notes.txt", "notes"),
        ("cat $PWD/notes.txt", "notes"),
        ("cat src/harmless", "notes"),
        ("cat src/*.txt", "source"),
        ("cat s*/a.txt", "source"),
        ("cat ../other.txt", "outside"),
        ("cd src && cat a.txt", "source"),
        ("cd src/deep && cat ../a.txt", "source"),
        ("cd ABOVE && cat other.txt", "outside"),
        ("env -C src cat a.txt", "source"),
        ("for f in src/a.txt notes.txt; do cat $f; done", "notes"),
        ("echo notes.txt | xargs cat", "notes"),
        ("find src -name a.txt -exec cat {} \\;", "source"),
        ("echo said > out.txt; cat out.txt 2>/dev/null", "said"),
        ("echo loud > /dev/stderr 2>&1; echo on /dev/stdout", "on"),
        ("ls *.txt", "notes.txt"),
        ("wc -l < notes.txt", "0"),
    ] {
        let line = place.line(line);
        let output = run(&guarded, &line).await;
        let output = output.unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(output.contains(expected), "{line}: {output}");
    }
}
