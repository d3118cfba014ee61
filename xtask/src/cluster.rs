//! `cargo xtask cluster`: a real Kubernetes cluster of one node, for tests.
//!
//! If `KUBECONFIG` is set, the cluster it names is used, and none is started. Otherwise
//! Kubernetes and the controller of agent-sandbox are compiled, once, and started with
//! containerd and runc of Debian, in namespaces of their own: no address of the cluster
//! is on the machine's network, and when the namespaces end, the kernel ends everything
//! in them. All files are in `$XTASK_CACHE/cluster/run`, which is removed with the
//! cluster. Beside it, containerd's images stay in `store`, and what the daemons printed
//! in `log` until the next one starts.
//!
//! A cluster that a command started for itself ends with that command, even if it is
//! killed; one that `up` started lives until `down`. Whatever a killed command leaves is
//! removed before the next cluster starts. One cluster runs at a time in each cache: a
//! command that would disturb another one waits for it.
//!
//! # For tests
//!
//! A command that `run` or the stage `k8s` starts is inside the namespaces and finds:
//!
//! | variable | meaning |
//! |---|---|
//! | `KUBECONFIG` | a client that may do everything |
//! | `TEST_CLUSTER_DIR` | the directory below; not set for a cluster of others |
//!
//! | in the directory | meaning |
//! |---|---|
//! | `pids/NAME` | the process number of a daemon, as text |
//! | `start/NAME` | a program that starts the daemon in the background, writes its new number and returns at once |
//! | `kubectl` | the program of that name, for this cluster |
//!
//! `NAME` is `etcd`, `apiserver`, `controllers`, `scheduler`, `kubelet`, `containerd` or
//! `agent-sandbox`. A test may end a daemon by its number and start it again. The daemon
//! must have ended before, and the test waits itself until the new one answers.

mod binary;
mod certificates;
mod configuration;
mod control_group;
mod daemons;
mod layout;
mod namespace;
mod running;
mod start;

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::cluster::binary::{Programs, Sources};
use crate::cluster::layout::Layout;
use crate::cluster::namespace::Lifetime;
use crate::cluster::running::Running;
use crate::flags::{self, ClusterCmd};
use crate::images::{BUSYBOX, Image, PAUSE, PYTHON};
use crate::lock::exclusive;
use crate::workspace::Workspace;
use crate::{process, provision, scratch};

/// The programs that a cluster is started with.
const PROGRAMS: &[&str] = &[
    "/usr/lib/cni/bridge",
    "containerd",
    "ctr",
    "ip",
    "nsenter",
    "runc",
    "setpriv",
    "setsid",
    "unshare",
];

/// The images that are in every cluster.
const IMAGES: [Image; 3] = [PAUSE, BUSYBOX, PYTHON];

/// Runs one of the commands.
pub(crate) fn run(flags: &flags::Cluster) -> Result<bool> {
    let workspace = Workspace::discover()?;
    match &flags.subcommand {
        ClusterCmd::Up(_) => up(&workspace),
        ClusterCmd::Down(_) => down(&workspace),
        ClusterCmd::Status(_) => status(&workspace),
        ClusterCmd::Kubectl(flags) => kubectl(&workspace, &flags.args),
        ClusterCmd::Run(flags) => run_command(&workspace, &flags.command),
    }
}

fn up(workspace: &Workspace) -> Result<bool> {
    if let Some(config) = given() {
        println!("KUBECONFIG is {}: nothing is started", config.display());
        return Ok(true);
    }
    Own::start(workspace, Lifetime::Kept)?;
    println!("`cargo xtask cluster run -- COMMAND` runs a command in it");
    Ok(true)
}

fn down(workspace: &Workspace) -> Result<bool> {
    let layout = Layout::new(workspace)?;
    let _lock = lock(&layout)?;
    clean(workspace, &layout)?;
    println!("no cluster is left");
    Ok(true)
}

/// Prints the daemons of the cluster. Returns whether it takes pods.
fn status(workspace: &Workspace) -> Result<bool> {
    let layout = Layout::new(workspace)?;
    let Some(running) = Running::find(workspace, &layout) else {
        println!("no cluster runs");
        return Ok(false);
    };
    println!("a cluster runs in {}", layout.directory());
    for daemon in daemons::ALL {
        let pid = running.pid(daemon);
        let pid = pid.as_deref().unwrap_or("does not run");
        println!("{daemon:13} {pid}");
    }
    let is_healthy = running.is_healthy()?;
    let healthy = if is_healthy { "takes" } else { "does not take" };
    println!("it {healthy} pods");
    Ok(is_healthy)
}

fn kubectl(workspace: &Workspace, args: &[OsString]) -> Result<bool> {
    let mut command = if given().is_some() {
        workspace.command("kubectl")?
    } else {
        let running = Running::find(workspace, &Layout::new(workspace)?);
        let running = running.context("no cluster runs; `cargo xtask cluster up` starts one")?;
        running.kubectl(&[])?
    };
    let status = command.args(args).status();
    Ok(status.context("cannot start kubectl")?.success())
}

/// Runs a command of the user in the current directory.
fn run_command(workspace: &Workspace, command: &[OsString]) -> Result<bool> {
    let [program, args @ ..] = command else {
        bail!("name a command: `cargo xtask cluster run -- COMMAND`");
    };
    let cluster = Cluster::start(workspace)?;
    let mut command = Command::new(program);
    command.args(args).current_dir(env::current_dir()?);
    let status = cluster.inside(command)?.status();
    Ok(status.context("cannot start the command")?.success())
}

/// Returns the value of `KUBECONFIG`, if there is one.
fn given() -> Option<OsString> {
    env::var_os("KUBECONFIG").filter(|value| !value.is_empty())
}

/// A cluster to run commands on.
#[derive(Debug)]
pub(crate) enum Cluster<'w> {
    /// The one that `KUBECONFIG` names.
    Given(&'w Workspace),
    Own(Own<'w>),
}

impl<'w> Cluster<'w> {
    /// Whether `KUBECONFIG` names a cluster.
    pub(crate) fn is_given() -> bool {
        given().is_some()
    }

    /// Returns why no cluster can be started here, if so. Programs are compiled only if
    /// `may_compile`.
    pub(crate) fn obstacle(workspace: &Workspace, may_compile: bool) -> Result<Option<String>> {
        // The entry is owned by the user of this process.
        if fs::metadata("/proc/self")?.uid() != 0 {
            let reason = "only root can start a cluster; set KUBECONFIG to use another one";
            return Ok(Some(reason.to_owned()));
        }
        let layout = Layout::new(workspace)?;
        for sources in Sources::read(workspace)? {
            if sources.is_compiled(&layout) {
                continue;
            }
            if !may_compile {
                return Ok(Some(format!(
                    "{} is not compiled yet: --full or `cargo xtask cluster up` does it, or set \
                     KUBECONFIG",
                    sources.name()
                )));
            }
            if let Some(obstacle) = sources.obstacle()? {
                return Ok(Some(obstacle));
            }
        }
        for program in PROGRAMS {
            if !workspace.has_program(program)? {
                let hint = if provision::knows(program) {
                    "; --provision installs it"
                } else {
                    ""
                };
                return Ok(Some(format!("{program} is not installed{hint}")));
            }
        }
        for image in IMAGES {
            if let Some(obstacle) = image.obstacle(workspace)? {
                return Ok(Some(obstacle));
            }
        }
        Ok(None)
    }

    /// Returns kwok, which makes fake nodes. It is compiled if it is missing.
    pub(crate) fn kwok(workspace: &Workspace) -> Result<PathBuf> {
        let layout = Layout::new(workspace)?;
        let _lock = lock(&layout)?;
        binary::kwok(workspace, &layout)
    }

    /// Returns the given cluster or the one that runs, else starts one that ends with
    /// the returned value.
    pub(crate) fn start(workspace: &'w Workspace) -> Result<Self> {
        if Self::is_given() {
            return Ok(Self::Given(workspace));
        }
        Own::start(workspace, Lifetime::Bound).map(Self::Own)
    }

    /// Returns a command that does what `command` does, where the cluster can be reached.
    pub(crate) fn inside(&self, command: Command) -> Result<Command> {
        match self {
            Self::Given(_) => Ok(command),
            Self::Own(own) => own.running.inside(&command),
        }
    }

    /// Loads an image, given by its archive. A cluster of others cannot be given any.
    pub(crate) fn load_image(&self, archive: &Path) -> Result<()> {
        if let Self::Own(own) = self {
            let mut import = own.running.containerd(&["images", "import"])?;
            process::output(import.arg(archive))?;
        }
        Ok(())
    }

    pub(crate) fn kubectl(&self, args: &[&str]) -> Result<Command> {
        match self {
            Self::Given(workspace) => {
                let mut command = workspace.command("kubectl")?;
                command.args(args);
                Ok(command)
            }
            Self::Own(own) => own.running.kubectl(args),
        }
    }
}

/// A cluster of this cache. If it was started with this value, it ends with it.
#[derive(Debug)]
pub(crate) struct Own<'w> {
    running: Running<'w>,
    lifetime: Lifetime,
    /// Held while the cluster is in use.
    _lock: File,
}

impl<'w> Own<'w> {
    /// Returns the cluster that runs and is healthy, else starts one.
    fn start(workspace: &'w Workspace, lifetime: Lifetime) -> Result<Self> {
        if let Some(obstacle) = Cluster::obstacle(workspace, true)? {
            bail!("{obstacle}");
        }
        let layout = Layout::new(workspace)?;
        let lock = lock(&layout)?;
        if let Some(running) = Running::find(workspace, &layout) {
            if running.is_healthy()? {
                println!("a cluster already runs in {}", layout.directory());
                return Ok(Self {
                    running,
                    lifetime: Lifetime::Kept,
                    _lock: lock,
                });
            }
            println!("a cluster that does not work is ended");
        }
        clean(workspace, &layout)?;
        let programs = Programs::compile(workspace, &layout)?;
        let mut images = Vec::new();
        for image in IMAGES {
            images.push((image.name, image.archive(workspace)?));
        }
        let begin = Instant::now();
        let started = start::start(workspace, &layout, &programs, &images, lifetime);
        let running = match started {
            Ok(running) => running,
            Err(error) => {
                clean(workspace, &layout)?;
                // It may be the reason, and is made anew.
                scratch::empty(Path::new(&layout.store()))?;
                return Err(error.context("the cluster does not start"));
            }
        };
        let seconds = begin.elapsed().as_secs_f64();
        println!("a cluster takes pods after {seconds:.1} s");
        Ok(Self {
            running,
            lifetime,
            _lock: lock,
        })
    }
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        if self.lifetime == Lifetime::Bound
            && let Err(error) = self.running.end()
        {
            eprintln!("error: cannot end the cluster: {error:#}");
        }
    }
}

/// Waits until no other command uses the cluster of this cache.
fn lock(layout: &Layout) -> Result<File> {
    fs::create_dir_all(layout.beside(""))?;
    exclusive(&layout.beside("lock"))
}

/// Ends the cluster of this cache, and removes what a killed command has left.
fn clean(workspace: &Workspace, layout: &Layout) -> Result<()> {
    match Running::find(workspace, layout) {
        Some(mut running) => running.end(),
        None => running::remove(layout),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_can_be_installed_is() {
        for program in PROGRAMS {
            let is_of_the_system = ["nsenter", "setpriv", "setsid", "unshare"].contains(program);
            assert!(is_of_the_system || provision::knows(program), "{program}");
        }
    }
}
