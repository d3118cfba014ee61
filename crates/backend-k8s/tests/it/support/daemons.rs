//! The daemons of the test cluster, which tests kill and start again.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::wait::until;

/// The directory of the cluster, if `cargo xtask cluster run` has started it on this host.
const DIRECTORY: &str = "TEST_CLUSTER_DIR";

/// Whether the cluster's only node is this host, and the cluster may be hurt. If not, the test
/// is left out, and the stage `k8s` reads the line that says so.
pub(crate) fn is_ours() -> bool {
    let is_ours = std::env::var_os(DIRECTORY).is_some();
    if !is_ours {
        // Output of a macro would be shown only if the test failed. A line may have been begun.
        let line = "\nleft out: it would hurt the cluster or needs files of the node\n";
        std::io::stdout().write_all(line.as_bytes()).unwrap();
    }
    is_ours
}

/// A daemon that a test may kill. It runs again in the end, whatever the test does.
pub(crate) struct Daemon {
    name: &'static str,
    /// The directory of the cluster.
    directory: PathBuf,
}

impl Daemon {
    pub(crate) fn new(name: &'static str) -> Self {
        let directory = std::env::var_os(DIRECTORY).unwrap().into();
        Self { name, directory }
    }

    fn pid(&self) -> String {
        let file = self.directory.join("pids").join(self.name);
        let text = std::fs::read_to_string(file).unwrap();
        text.trim().to_owned()
    }

    fn runs(&self) -> bool {
        // That of a process that has ended and was not reaped is empty.
        let line = std::fs::read(format!("/proc/{}/cmdline", self.pid()));
        line.is_ok_and(|line| !line.is_empty())
    }

    /// Ends it like a crash, and waits until it is gone.
    pub(crate) async fn kill(&self) {
        let killed = Command::new("kill").args(["-9", &self.pid()]).status();
        assert!(killed.unwrap().success());
        until("the end of a daemon", async || !self.runs()).await;
    }

    pub(crate) async fn start(&self) {
        self.launch();
        until("the start of a daemon", async || self.runs()).await;
    }

    fn launch(&self) {
        let script = self.directory.join("start").join(self.name);
        let launched = Command::new("sh")
            .arg(script)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(launched.unwrap().success(), "{}", self.name);
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if !self.runs() {
            self.launch();
        }
    }
}
