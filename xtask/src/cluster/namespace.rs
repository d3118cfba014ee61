//! The namespaces of a cluster: its own network, its own process numbers, its own mounts.
//!
//! They exist as long as their first process, which does nothing but wait for others.
//! When it ends, the kernel ends all processes in them, and mounts and network
//! interfaces are gone. Settings of the machine that the kubelet would change, and
//! directories that daemons use outside their own, are covered by files of the cluster,
//! so that nothing has to be restored.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::cluster::layout::{BRIDGE, BRIDGE_MAC, Layout, NODE_IP, SERVICE_IP};
use crate::process;
use crate::workspace::Workspace;

/// Time limit for the namespaces to be ready, and to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// Settings that the kubelet writes. They are the machine's, not the namespace's.
const SETTINGS: &[&str] = &[
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
];

/// Directories that daemons write to although they were given another one.
const DIRECTORIES: &[&str] = &[
    "/run/containerd",
    "/var/lib/cni",
    "/var/lib/kubelet",
    "/var/log/containers",
];

/// How long a cluster lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// Until it is ended.
    Kept,
    /// At most as long as this process, however that ends.
    Bound,
}

/// The namespaces of a cluster that runs.
#[derive(Debug)]
pub(super) struct Namespace<'w> {
    workspace: &'w Workspace,
    layout: Layout,
    /// The process outside that waits for the first process inside.
    holder: u32,
    /// The same, if this process has started it.
    child: Option<Child>,
}

impl<'w> Namespace<'w> {
    /// Creates the namespaces. The directory of the cluster exists.
    pub(super) fn start(
        workspace: &'w Workspace,
        layout: &Layout,
        lifetime: Lifetime,
    ) -> Result<Self> {
        let script = layout.path("init");
        fs::write(&script, first_process(layout))?;
        let mut command = workspace.command("setsid")?;
        if lifetime == Lifetime::Bound {
            command.args(["setpriv", "--pdeathsig", "KILL", "--"]);
        }
        command.args(["unshare", "--net", "--pid", "--mount-proc", "--kill-child"]);
        command.args(["sh", &script]);
        let log = layout.log("namespace");
        let output = File::create(&log).with_context(|| format!("cannot write {log}"))?;
        command.stdout(output.try_clone()?).stderr(output);
        // Each of the programs becomes the next one.
        let child = command.stdin(Stdio::null()).spawn();
        let child = child.context("cannot start setsid")?;
        let holder = child.id();
        fs::write(layout.path("holder"), holder.to_string())?;
        let mut namespace = Self {
            workspace,
            layout: layout.clone(),
            holder,
            child: Some(child),
        };
        let ready = layout.path("ready");
        let is_ready = process::wait_for(PATIENCE, || {
            if let Some(child) = &mut namespace.child
                && child.try_wait()?.is_some()
            {
                bail!("cannot make namespaces: {}", last_line(&log));
            }
            Ok(fs::exists(&ready)?)
        })?;
        ensure!(is_ready, "the namespaces are not ready; see {log}");
        Ok(namespace)
    }

    /// Returns the namespaces of a cluster that was started earlier and still runs.
    pub(super) fn find(workspace: &'w Workspace, layout: &Layout) -> Option<Self> {
        let holder = fs::read_to_string(layout.path("holder")).ok()?;
        let namespace = Self {
            workspace,
            layout: layout.clone(),
            holder: holder.parse().ok()?,
            child: None,
        };
        namespace.is_alive().then_some(namespace)
    }

    /// Whether they still exist. Another process may have the number by now.
    fn is_alive(&self) -> bool {
        let line = fs::read(format!("/proc/{}/cmdline", self.holder)).unwrap_or_default();
        let script = self.layout.path("init");
        line.starts_with(b"unshare\0")
            && line
                .split(|byte| *byte == 0)
                .any(|word| word == script.as_bytes())
    }

    /// Whether a process inside runs. A zombie does not.
    pub(super) fn is_running(&self, pid: &str) -> bool {
        let file = format!("/proc/{}/root/proc/{}/stat", self.holder, pid.trim());
        fs::read_to_string(file).is_ok_and(|stat| runs(&stat))
    }

    /// Returns a command that does inside what `command` does: the same program with the
    /// same arguments, variables and directory.
    pub(super) fn inside(&self, command: &Command) -> Result<Command> {
        let mut inside = self.workspace.command("nsenter")?;
        let files = format!("/proc/{}/ns", self.holder);
        inside.arg(format!("--mount={files}/mnt"));
        inside.arg(format!("--net={files}/net"));
        inside.arg(format!("--pid={files}/pid_for_children"));
        // Entering the mounts leaves the current directory.
        let directory = command.get_current_dir();
        inside.args(["--", "env", "--chdir"]);
        inside.arg(directory.unwrap_or(self.workspace.root()));
        inside.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        Ok(inside)
    }

    /// Ends every process inside, and waits for that.
    pub(super) fn end(&mut self) -> Result<()> {
        if self.is_alive() {
            let mut end = self.workspace.command("sh")?;
            end.args(["-c", "kill -TERM 1"]);
            process::succeeds(&mut self.inside(&end)?);
        }
        if !process::wait_for(PATIENCE, || Ok(!self.is_alive()))? {
            let mut kill = self.workspace.command("kill")?;
            process::run(kill.args(["-KILL", &self.holder.to_string()]))?;
        }
        if let Some(child) = &mut self.child {
            child.wait()?;
        }
        Ok(())
    }
}

/// Returns the script of the first process.
fn first_process(layout: &Layout) -> String {
    let covers = layout.path("covers");
    let mut script = format!(
        "set -e\n\
         trap 'exit 0' TERM\n\
         ip link set lo up\n\
         ip link add {BRIDGE} address {BRIDGE_MAC} type bridge\n\
         ip addr add {NODE_IP}/16 dev {BRIDGE}\n\
         ip addr add {SERVICE_IP}/32 dev {BRIDGE}\n\
         ip link set {BRIDGE} up\n"
    );
    for setting in SETTINGS {
        let cover = format!("'{covers}/{}'", setting.replace('/', "."));
        script += &format!(
            "cat /proc/sys/{setting} >{cover}\n\
             mount --bind {cover} /proc/sys/{setting}\n"
        );
    }
    for directory in DIRECTORIES {
        let cover = format!("'{covers}/{}'", directory[1..].replace('/', "."));
        script += &format!(
            "mkdir {cover}\n\
             [ -d {directory} ] || {{ mkdir -p {directory}; echo {directory} >>'{made}'; }}\n\
             mount --bind {cover} {directory}\n",
            made = made(layout)
        );
    }
    // It collects the processes that others leave behind.
    script += &format!(
        ": >'{}'\n\
         sleep infinity &\n\
         while :; do wait; done\n",
        layout.path("ready")
    );
    script
}

/// Returns the file that lists the directories that were made to be covered.
fn made(layout: &Layout) -> String {
    layout.path("made")
}

/// Removes the directories that were made to be covered, unless they are in use.
pub(super) fn remove_made(layout: &Layout) {
    for directory in fs::read_to_string(made(layout)).unwrap_or_default().lines() {
        // Only an empty one is removed: others may use it by now.
        let _ = fs::remove_dir(directory);
    }
}

/// Whether a process with this `/proc/PID/stat` runs. Its command line would not tell: while
/// a process becomes another program, it is empty, like that of a zombie.
fn runs(stat: &str) -> bool {
    // The name before may have any characters.
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Returns the last line of a log, which says why its daemon ended.
pub(super) fn last_line(log: &str) -> String {
    let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    let last = last.unwrap_or("it says nothing").trim();
    last.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::scratch::Scratch;

    fn layout() -> Layout {
        Layout::at(Path::new("/c")).unwrap()
    }

    #[test]
    fn settings_and_directories_of_the_machine_are_covered() {
        let script = first_process(&layout());
        let setting = "cat /proc/sys/kernel/panic >'/c/run/covers/kernel.panic'\n\
                       mount --bind '/c/run/covers/kernel.panic' /proc/sys/kernel/panic\n";
        assert!(script.contains(setting), "{script}");
        let directory = "mount --bind '/c/run/covers/var.lib.cni' /var/lib/cni\n";
        assert!(script.contains(directory), "{script}");
    }

    #[test]
    fn a_number_that_is_not_the_holders_is_no_cluster() {
        let scratch = Scratch::temporary("holder").unwrap();
        let layout = Layout::at(&scratch).unwrap();
        let workspace = Workspace::discover().unwrap();
        assert!(Namespace::find(&workspace, &layout).is_none());
        fs::create_dir(layout.directory()).unwrap();
        for text in ["", "nonsense", "1", &std::process::id().to_string()] {
            fs::write(layout.path("holder"), text).unwrap();
            assert!(Namespace::find(&workspace, &layout).is_none(), "{text}");
        }
    }

    #[test]
    fn a_command_inside_keeps_its_directory_and_variables() {
        let workspace = Workspace::discover().unwrap();
        let namespace = Namespace {
            workspace: &workspace,
            layout: layout(),
            holder: 7,
            child: None,
        };
        let mut command = Command::new("program");
        command.arg("--x").current_dir("/d").env("A", "b");
        let inside = namespace.inside(&command).unwrap();
        let words: Vec<_> = inside
            .get_args()
            .map(|word| word.to_str().unwrap())
            .collect();
        let end = ["--", "env", "--chdir", "/d", "program", "--x"];
        assert!(words.ends_with(&end), "{words:?}");
        assert!(words.contains(&"--net=/proc/7/ns/net"), "{words:?}");
        let mut variables = inside.get_envs();
        assert!(variables.any(|it| it == ("A".as_ref(), Some("b".as_ref()))));
    }

    #[test]
    fn zombies_do_not_run() {
        assert!(runs("7 (a) S 1 7 7"));
        assert!(runs("7 (a) Z) R 1 7 7"));
        for stat in ["7 (a) R) Z 1 7 7", "7 (a) X 1", "7 (a", ""] {
            assert!(!runs(stat), "{stat}");
        }
    }

    #[test]
    fn a_log_ends_with_the_reason() {
        let scratch = Scratch::temporary("log").unwrap();
        let log = scratch.join("log").display().to_string();
        assert_eq!(last_line(&log), "it says nothing");
        fs::write(&log, "a\nno bridge\n\n").unwrap();
        assert_eq!(last_line(&log), "no bridge");
    }
}
