//! [`Enclosure`]: where the processes of a running sandbox live.
//!
//! With namespaces, they have a root of their own and ids of their own, and the kernel
//! ends all of them with the first one, which ends when its input does: also if the
//! stand-in is killed. Where the machine refuses namespaces, they are ordinary processes,
//! found by a variable in their environment.

use std::io::{self, BufRead as _, BufReader};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStdin, Command as Blocking, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Signal, geteuid};
use tokio::process::Command;

use crate::processes;

/// Makes the directory `$1` the root, and waits for the end of its input.
///
/// The first process ignores `SIGCHLD`, so that no process that lost its parent stays as
/// a zombie.
const SETUP: &str = r#"
set -e
mount --bind "$1" "$1"
for name in bin etc lib lib32 lib64 libx32 nix opt sbin usr; do
    if [ -L "/$name" ]; then
        [ -L "$1/$name" ] || ln -s "$(readlink "/$name")" "$1/$name"
    elif [ -d "/$name" ]; then
        mkdir -p "$1/$name"
        mount --rbind "/$name" "$1/$name"
        mount -o remount,bind,ro "$1/$name"
    fi
done
mkdir -p "$1/dev" "$1/proc"
mount --rbind /dev "$1/dev"
mount -t proc proc "$1/proc"
env --ignore-signal=CHLD true
cd "$1"
pivot_root . .
umount -l .
cd /
echo ready
exec env --ignore-signal=CHLD cat
"#;

/// The processes of a sandbox from its start to its end. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct Enclosure {
    kind: Kind,
    root: OwnedFd,
}

#[derive(Debug)]
enum Kind {
    Namespaces {
        holder: Child,
        input: Option<ChildStdin>,
        first: u32,
    },
    Marked(String),
}

impl Enclosure {
    /// Starts an enclosure in namespaces, with this directory as its root. Blocks.
    pub(crate) fn private(directory: &Path) -> io::Result<Self> {
        let mut command = Blocking::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child"]);
        if !geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command.args(["sh", "-c", SETUP, "sh"]).arg(directory);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = command.stderr(Stdio::null()).spawn()?;
        let input = holder.stdin.take();
        let mut line = String::new();
        if let Some(output) = holder.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let first = processes::child_of(holder.id()).filter(|_| line == "ready\n");
        let Some(first) = first else {
            drop(input);
            holder.wait()?;
            return Err(io::Error::other("the machine allows no namespaces"));
        };
        Ok(Self {
            root: open_directory(&format!("/proc/{first}/root"))?,
            kind: Kind::Namespaces {
                holder,
                input,
                first,
            },
        })
    }

    /// Returns an enclosure of ordinary processes. All of them have the variable, as
    /// `NAME=VALUE`.
    pub(crate) fn marked(variable: String) -> io::Result<Self> {
        Ok(Self {
            root: open_directory("/")?,
            kind: Kind::Marked(variable),
        })
    }

    /// Returns a handle on the root that the processes see.
    pub(crate) fn root(&self) -> io::Result<OwnedFd> {
        self.root.try_clone()
    }

    /// Returns a command for a program and its arguments, in a directory that exists.
    pub(crate) fn command(&self, directory: &str, words: &[&str]) -> Command {
        let Kind::Namespaces { first, .. } = &self.kind else {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).current_dir(directory);
            return command;
        };
        let mut command = Command::new("nsenter");
        command.args(["--target", &first.to_string(), "--mount", "--pid"]);
        if !geteuid().is_root() {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.arg("env").arg(format!("--chdir={directory}"));
        command.args(words);
        command
    }
}

impl Drop for Enclosure {
    fn drop(&mut self) {
        match &mut self.kind {
            Kind::Namespaces { holder, input, .. } => {
                // The holder ends after the first process, and that after all others.
                drop(input.take());
                let _ = holder.wait();
            }
            Kind::Marked(variable) => loop {
                let ids = processes::with_variable(variable);
                if ids.is_empty() {
                    break;
                }
                processes::signal(&ids, Signal::KILL);
            },
        }
    }
}

fn open_directory(path: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}
