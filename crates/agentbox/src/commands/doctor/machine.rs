//! Checks of the kernel and the disk. Features are tried rather than looked up.

use std::path::Path;

use backend_core::ops::Command;
use backend_core::{
    Backend as _, BackendExt as _, BackendInfo, Containment, Enforcement, Sandbox as _,
};
use backend_local::{Commands, Confinement, Landlock, Limits, LocalBackend};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::process::PidfdFlags;

use super::UsedBackend;
use super::finding::Finding;
use crate::backend::kind::Kind;
use crate::backend::local::landlock;
use crate::backend::spec::WORKSPACE;
use crate::signals;

/// The next step if a limit names none.
const SEE_CONFINEMENT: &str = "see docs/confinement.md";

pub(super) async fn findings(backend: &UsedBackend) -> Vec<Finding> {
    let is_used = backend.uses(Kind::Local);
    let directory = match tempfile::tempdir() {
        Ok(directory) => directory,
        Err(error) => {
            let finding = Finding::new("temporary files", "trying things out").needed(true);
            let fix = "make room there, or set TMPDIR to a directory that can be written";
            return vec![finding.missing(error.to_string(), fix)];
        }
    };
    let directory = directory.path();
    signals::temporary(directory);
    let workspace = backend.spec.is_none().then(workspace);
    let tried = [
        files(directory)
            .await
            .needed(is_used || backend.uses(Kind::Mounts)),
        commands(directory).await.needed(is_used),
        openat2(),
        pidfd(),
        confinement(directory).await,
        path_rules(directory).await,
        limits(directory).await,
    ];
    workspace.into_iter().chain(tried).collect()
}

/// Checks that the default directory can be used.
fn workspace() -> Finding {
    let finding = Finding::new("workspace", "the directory that is used by default").needed(true);
    let is_there = Path::new(WORKSPACE).is_dir();
    let path = if is_there { WORKSPACE } else { "." };
    let writable = rustix::fs::accessat(
        CWD,
        path,
        rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK,
        AtFlags::EACCESS,
    );
    match (writable, is_there) {
        (Ok(()), true) => finding.ok(format!("{WORKSPACE} is there and can be written")),
        (Ok(()), false) => finding.ok(format!("{WORKSPACE} will be created here")),
        (Err(error), _) => finding.missing(
            format!("{path} cannot be written: {error}"),
            "go to a directory of your own, or use --backend local:DIR",
        ),
    }
}

async fn files(directory: &Path) -> Finding {
    let tried = async {
        let backend = LocalBackend::builder(directory).open()?;
        backend.write_file("file", "text").await?;
        backend.read_to_string("file").await
    };
    let tried = tried.await.map(|_| "works");
    let tried = tried.map_err(|error| error.chain().to_string());
    let finding = Finding::new("files", "reading, writing and searching a directory");
    finding.tried(tried, "make room, or set TMPDIR")
}

async fn commands(directory: &Path) -> Finding {
    let finding = Finding::new("commands", "running commands that leave nothing behind");
    let tried = attempt(directory, Commands::new()).await;
    match tried.map(|info| info.containment) {
        Ok(Containment::Supervised) => finding.ok("works, under a supervisor"),
        Ok(other) => finding.missing(
            format!("commands run, but without a supervisor ({other:?})"),
            "mount /proc, and let this program start itself again",
        ),
        Err(error) => finding.missing(error, "install /bin/sh, and mount /proc"),
    }
}

fn openat2() -> Finding {
    let opened = rustix::fs::openat2(
        CWD,
        ".",
        OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::BENEATH,
    );
    let tried = opened
        .map(|_| "works")
        .map_err(|error| format!("{error}; paths are followed step by step instead, as safely"));
    let fix = "Linux 5.6 or newer, and a seccomp profile that passes openat2";
    Finding::new("openat2", "fast paths that cannot leave the directory").tried(tried, fix)
}

fn pidfd() -> Finding {
    let opened = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty());
    let tried = opened.map(|_| "works").map_err(|error| {
        format!("{error}; processes are told apart by number and start time instead")
    });
    let fix = "Linux 5.3 or newer, and a seccomp profile that passes pidfd_open";
    Finding::new("pidfd", "ending exactly the right processes").tried(tried, fix)
}

async fn confinement(directory: &Path) -> Finding {
    let confined = Commands::new().confinement(Confinement::Landlock(Landlock::new()));
    let works = "works; switch it on with confinement = \"landlock\" under [local]";
    let tried = attempt(directory, confined).await.map(|_| works);
    let fix = "Linux 6.12 or newer with landlock among its lsm=, and in a container a seccomp \
               profile that passes landlock_*; or run agentbox in a container of its own";
    let purpose = "commands that cannot leave the directory either";
    Finding::new("landlock", purpose).tried(tried, fix)
}

async fn path_rules(directory: &Path) -> Finding {
    let finding = Finding::new(
        "path rules",
        "denied paths that commands cannot reach either",
    );
    let confined = Commands::new().confinement(Confinement::Landlock(landlock(true)));
    let (level, limit) = match attempt(directory, confined).await {
        Ok(info) => (info.enforcement, info.enforcement_limit),
        Err(_) => (Enforcement::Words, None),
    };
    let without = "confinement of commands is missing; see landlock".into();
    match (level, limit.unwrap_or(without)) {
        (Enforcement::View, _) => {
            finding.ok("kept by the kernel where confinement = \"landlock\" under [local]")
        }
        (level, limit) => {
            let (why, fix) = limit.split_once("; ").unwrap_or((&*limit, SEE_CONFINEMENT));
            finding.missing(format!("the level is {level}: {why}"), fix)
        }
    }
}

async fn limits(directory: &Path) -> Finding {
    let limited = Commands::new().limits(Limits::default().processes(64).cpu_seconds(60));
    let works = "works; set processes, memory_bytes and others under [local]";
    let tried = attempt(directory, limited).await.map(|_| works);
    let fix = "a user that is not root, or a cgroup with the pids controller that may be written";
    Finding::new("limits", "commands that cannot use everything up").tried(tried, fix)
}

/// Runs `true` in a sandbox, and returns what it says of itself.
async fn attempt(directory: &Path, commands: Commands) -> Result<BackendInfo, String> {
    let builder = LocalBackend::builder(directory).enable_execute(true);
    let backend = builder.commands(commands).open();
    let backend = backend.map_err(|error| error.chain().to_string())?;
    let done = backend.execute(Command::new("true")).await;
    let info = backend.info();
    let _ = backend.stop(backend_core::ops::StopMode::Purge).await;
    match done {
        Ok(done) if done.status.success() => Ok(info),
        Ok(done) => Err(format!("`true` failed: {}", done.status)),
        Err(error) => Err(error.chain().to_string()),
    }
}
