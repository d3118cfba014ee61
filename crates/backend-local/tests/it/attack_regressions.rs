//! Published vulnerabilities of similar systems, each with a test that it is
//! not present here.
//!
//! Some are tested elsewhere: searches that start processes in
//! `attack_no_process.rs`, hostile patterns and names in `attack_inputs.rs`,
//! killed writers in `attack_crash.rs`, swapped directories (CVE-2026-39861,
//! CVE-2026-88968, CVE-2026-34452, CVE-2026-44112) in `attack_race.rs`; endless
//! output, orphans and inherited secrets in `commands.rs` and the conformance
//! suite. No argument of an operation lowers the confinement (CVE-2026-42074):
//! it is fixed when the backend is opened.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::time::Duration;

use backend_core::ops::{
    Command, Content, Links, ReadOptions, ResolveOptions, WriteMode, WriteOptions,
};
use backend_core::{Backend as _, BackendExt as _, Error, ErrorKind, Sandbox as _, VPath};
use backend_local::{Commands, NameSpace, Supervisor};
use backend_testkit::fails;
use bytes::Bytes;

use crate::support::canary;
use crate::support::place::{Place, acting, all_fail, following, text};
use crate::support::snapshot;

const DENIED: &[ErrorKind] = &[ErrorKind::PermissionDenied];

/// Only a hang takes this long.
const SOON: Duration = Duration::from_secs(180);

/// CVE-2025-53110: a path that only shares the root's prefix was taken for one
/// inside it.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_53110_siblings_with_the_same_beginning() {
    let place = Place::new();
    let outer = place.directory.path().canonicalize().unwrap();
    for sibling in ["root-evil", "root..", "ROOT", "root ", "roo", "root.bak"] {
        fs::create_dir(outer.join(sibling)).unwrap();
        fs::write(outer.join(sibling).join("secret"), canary::TOKEN).unwrap();
    }
    place.write("file", "inside");
    let names = NameSpace::Host {
        allowed: Vec::new(),
    };
    let backend = place.builder().names(names).open().unwrap();
    let file = backend.path("file").unwrap();
    let before = snapshot::snapshot(&outer);
    for sibling in [
        "root-evil",
        "root..",
        "ROOT",
        "root ",
        "roo",
        "root.bak",
        "",
    ] {
        for name in ["", "secret", "new/deeper"] {
            let spelled = outer.join(sibling).join(name);
            let path = VPath::parse(text(&spelled)).unwrap();
            if path == backend.working_dir() {
                continue;
            }
            let what = path.to_string();
            all_fail(&what, DENIED, &following(&backend, &path).await);
            let refused = &[ErrorKind::PermissionDenied, ErrorKind::InvalidInput];
            all_fail(&what, refused, &acting(&backend, &path, &file).await);
        }
    }
    assert_eq!(snapshot::snapshot(&outer), before);
    for path in "../root-evil/secret /../root-evil/secret a/../../ROOT/secret".split(' ') {
        let read = place.builder().open().unwrap().read_bytes(path).await;
        assert_eq!(read.unwrap_err().kind(), ErrorKind::InvalidPath, "{path}");
    }
}

/// CVE-2025-53109: links in the root were followed out of it.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_53109_links_of_every_kind() {
    let place = Place::new();
    let outside = text(&place.canary.path).to_owned();
    let root = text(&place.root).to_owned();
    place.write("real/file", "inside");
    let directories = [
        ("absolute", outside.clone()),
        ("relative", "../outside".to_owned()),
        ("through-a-directory", "real/../../outside".to_owned()),
        (
            "over-the-root",
            format!("{}{}", "../".repeat(64), &outside[1..]),
        ),
        ("in-and-out", format!("{root}/../outside")),
        ("chain", "absolute".to_owned()),
        ("chain-of-chains", "./chain".to_owned()),
        ("dotted", format!("{root}/./real/../../root/../outside")),
    ];
    let others = [
        ("file", format!("{outside}/secret")),
        ("dangling", format!("{outside}/missing")),
        ("deep-dangling", "../outside/missing/deeper".to_owned()),
        ("beneath-a-link", "absolute/secret".to_owned()),
        ("parent", "..".to_owned()),
        ("slash", "/".to_owned()),
        ("working-directory", "/proc/self/cwd".to_owned()),
        ("magic-root", format!("/proc/self/root{outside}/secret")),
        ("descriptor", "/dev/fd/0".to_owned()),
        ("sibling", format!("{root}-evil")),
    ];
    for (name, target) in directories.iter().chain(&others) {
        symlink(target, place.root.join(name)).unwrap();
    }
    for (kind, backend) in place.backends() {
        let file = backend.path("real/file").unwrap();
        for (name, _) in directories.iter().chain(&others) {
            let path = backend.path(name).unwrap();
            let answers = following(&backend, &path).await;
            // Describing a link that leads outside may say that it is a link.
            let answers = answers.into_iter().filter(|(name, _)| *name != "stat");
            all_fail(&format!("{kind} {name}"), DENIED, &answers.collect());
        }
        for (name, _) in &directories {
            for beneath in ["secret", "sub", "sub/deep", "new", "new/deeper"] {
                let what = format!("{kind} {name}/{beneath}");
                let path = backend.path(format!("{name}/{beneath}")).unwrap();
                all_fail(&what, DENIED, &following(&backend, &path).await);
                all_fail(&what, DENIED, &acting(&backend, &path, &file).await);
            }
        }
        let found = backend.find_files("**").await.unwrap();
        assert_eq!(found.files.len(), 1, "{kind}");
        let listing = format!("{:?}", backend.list_dir(".").await.unwrap());
        assert!(!listing.contains(canary::ONLY));
    }
    place.canary.check();
}

/// CVE-2025-59532: the directory of a command became a new root.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_59532_the_directory_of_a_command_widens_nothing() {
    let place = Place::new();
    place.write("real/file", "inside");
    symlink(&place.canary.path, place.root.join("out")).unwrap();
    let program = env!("CARGO_BIN_EXE_agentbox-supervisor").into();
    let commands = Commands::default().supervisor(Supervisor::Program(program));
    let open = |names| {
        let builder = place.builder().names(names).enable_execute(true);
        builder.commands(commands.clone()).open().unwrap()
    };
    let host = open(NameSpace::Host {
        allowed: Vec::new(),
    });
    for directory in [
        &place.canary.path,
        place.directory.path(),
        "/".as_ref(),
        "/tmp".as_ref(),
    ] {
        let directory = VPath::parse(text(directory)).unwrap();
        let ran = host
            .execute(Command::new("pwd").directory(directory.clone()))
            .await;
        assert_eq!(
            ran.unwrap_err().kind(),
            ErrorKind::PermissionDenied,
            "{directory}"
        );
    }
    for backend in [host, open(NameSpace::Virtual)] {
        let out = backend.path("out").unwrap();
        let ran = backend
            .execute(Command::new("touch x").directory(out))
            .await;
        fails(ErrorKind::PermissionDenied, ran);
        let inside = backend.path("real").unwrap();
        backend
            .execute(Command::new("true").directory(inside))
            .await
            .unwrap();
        // The command has not moved the root.
        let read = backend.read_bytes("out/secret").await;
        fails(ErrorKind::PermissionDenied, read);
        assert!(backend.exists("real/file").await.unwrap());
    }
    place.canary.check();
}

/// CVE-2026-25725: paths that did not exist at the start were not protected
/// later.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_25725_names_that_did_not_exist_at_the_start() {
    let place = Place::new();
    place.write("file", "inside");
    let backends = place.backends();
    let read_only = place.builder().read_only(true).open().unwrap();
    symlink(&place.canary.path, place.root.join("later")).unwrap();
    symlink(
        place.canary.path.join("new"),
        place.root.join("dangling-later"),
    )
    .unwrap();
    for (kind, backend) in backends {
        let file = backend.path("file").unwrap();
        let path = backend.path("later/new").unwrap();
        all_fail(&kind, DENIED, &following(&backend, &path).await);
        all_fail(&kind, DENIED, &acting(&backend, &path, &file).await);
        let written = backend.write_file("dangling-later", "x").await;
        fails(ErrorKind::PermissionDenied, written);
    }
    for name in [".git/hooks/pre-commit", "new", "file"] {
        let path = read_only.path(name).unwrap();
        let written = read_only
            .write(&path, "x".into(), WriteOptions::default())
            .await;
        assert_eq!(
            written.unwrap_err().kind(),
            ErrorKind::PermissionDenied,
            "{name}"
        );
    }
    place.canary.check();
    // A missing allowed directory is an error. It is neither skipped nor
    // created.
    let allowed = vec![place.directory.path().join("not-yet")];
    let opened = place.builder().names(NameSpace::Host { allowed }).open();
    fails(ErrorKind::NotFound, opened);
}

/// CVE-2026-25724: a rule about a path was bypassed by a link to it.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_25724_what_was_judged_is_what_is_used() {
    let place = Place::new();
    place.write("private/key", "inside");
    place.write("public/other", "inside");
    symlink("../private", place.root.join("public/link")).unwrap();
    for (kind, backend) in place.backends() {
        let asked = backend.path("public/link/key").unwrap();
        let refuse = ReadOptions::default().links(Links::Refuse);
        let read = backend.read(&asked, refuse).await;
        assert_eq!(read.unwrap_err().kind(), ErrorKind::IsALink, "{kind}");
        let resolved = backend
            .resolve(&asked, ResolveOptions::default())
            .await
            .unwrap();
        assert_eq!(resolved, backend.path("private/key").unwrap());
        assert_eq!(
            &backend.read(&resolved, refuse).await.unwrap().data[..],
            b"inside"
        );
        // Between the check and the use, the checked directory becomes a link.
        fs::rename(place.root.join("private"), place.root.join("aside")).unwrap();
        symlink(&place.canary.path, place.root.join("private")).unwrap();
        let read = backend.read(&resolved, refuse).await;
        assert_eq!(read.unwrap_err().kind(), ErrorKind::IsALink, "{kind}");
        let options = WriteOptions::default().links(Links::Refuse);
        let written = backend.write(&resolved, "x".into(), options).await;
        assert_eq!(written.unwrap_err().kind(), ErrorKind::IsALink, "{kind}");
        fs::remove_file(place.root.join("private")).unwrap();
        fs::rename(place.root.join("aside"), place.root.join("private")).unwrap();
    }
    place.canary.check();
}

/// CVE-2026-39861: the parent is swapped in the middle of a write.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_39861_parent_swapped_in_the_middle_of_a_write() {
    let place = Place::new();
    for (kind, backend) in place.backends() {
        for mode in [WriteMode::Overwrite, WriteMode::CreateNew] {
            let _ = fs::remove_dir_all(place.root.join("dir"));
            place.write("dir/other", "inside");
            if mode == WriteMode::Overwrite {
                place.write("dir/secret", "old");
            }
            let (root, outside) = (place.root.clone(), place.canary.path.clone());
            let swapped = move |piece: usize| {
                if piece == 1 {
                    fs::rename(root.join("dir"), root.join("aside")).unwrap();
                    symlink(&outside, root.join("dir")).unwrap();
                }
                Ok::<_, Error>(Bytes::from_static(b"half"))
            };
            let pieces = futures::stream::iter((0..3).map(swapped));
            let path = backend.path("dir/secret").unwrap();
            let content = Content::Stream(Box::pin(pieces));
            let written = backend
                .write(&path, content, WriteOptions::default().mode(mode))
                .await;
            // Either the old directory was still open, or the swap was noticed.
            let landed = fs::read_to_string(place.root.join("aside/secret"));
            match written {
                Ok(_) => assert_eq!(landed.unwrap(), "halfhalfhalf", "{kind}"),
                Err(error) => assert!(landed.map_or(true, |old| old == "old"), "{kind}: {error}"),
            }
            place.canary.check();
            fs::remove_file(place.root.join("dir")).unwrap();
            fs::remove_dir_all(place.root.join("aside")).unwrap();
        }
    }
}

/// An outside file was written through a hard link.
#[tokio::test(flavor = "multi_thread")]
async fn hard_links_are_not_written_through() {
    let place = Place::new();
    let secret = place.canary.path.join("secret");
    let before = fs::read(&secret).unwrap();
    for (kind, backend) in place.backends() {
        fs::hard_link(&secret, place.root.join("hard")).unwrap();
        backend.write_file("hard", "overwritten").await.unwrap();
        fs::remove_file(place.root.join("hard")).unwrap();
        fs::hard_link(&secret, place.root.join("hard")).unwrap();
        backend
            .replace_text("hard", "canary", "edited")
            .await
            .unwrap();
        assert_eq!(fs::read(&secret).unwrap(), before, "{kind}");
        assert_eq!(fs::metadata(&secret).unwrap().nlink(), 1, "{kind}");
        fs::remove_file(place.root.join("hard")).unwrap();
    }
    place.canary.check();
}

/// A FIFO, a socket or a device blocked the process that opened it.
#[tokio::test(flavor = "multi_thread")]
async fn special_files_block_nothing() {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
    let place = Place::new();
    place.write("file", "needle");
    let mode = Mode::from_raw_mode(0o666);
    let mut names = vec!["fifo", ".gitignore", ".ignore", "socket"];
    for name in &names[..3] {
        mknodat(CWD, place.root.join(name), FileType::Fifo, mode, 0).unwrap();
    }
    let _socket = std::os::unix::net::UnixListener::bind(place.root.join("socket")).unwrap();
    // The device that never ends. Only the superuser can create one.
    let zero = mknodat(
        CWD,
        place.root.join("zero"),
        FileType::CharacterDevice,
        mode,
        makedev(1, 5),
    );
    match zero {
        Ok(()) => names.push("zero"),
        Err(error) => println!("skipped: no device can be made: {error}"),
    }
    for (kind, backend) in place.backends() {
        for name in &names {
            let what = format!("{kind} {name}");
            let path = backend.path(name).unwrap();
            let answers = tokio::time::timeout(SOON, following(&backend, &path)).await;
            let answers = answers.unwrap_or_else(|_| panic!("{what} blocks"));
            let wanted = |name: &str| !["resolve", "stat", "ls"].contains(&name);
            let answers = answers.into_iter().filter(|(name, _)| wanted(name));
            let kinds = [
                ErrorKind::InvalidInput,
                ErrorKind::NotADirectory,
                ErrorKind::AlreadyExists,
            ];
            all_fail(&what, &kinds, &answers.collect());
        }
        let search = async {
            let found = backend.search_text("needle").await.unwrap();
            (
                found.matches,
                backend.find_files("**").await.unwrap().files.len(),
            )
        };
        let found = tokio::time::timeout(SOON, search).await;
        assert_eq!(
            found.unwrap_or_else(|_| panic!("{kind}: a search blocks")),
            (1, 1)
        );
    }
}
