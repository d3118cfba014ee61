//! A directory in which the program creates sandboxes of a stand-in for Daytona.

use std::process::Command;
use std::time::{Duration, Instant};

use backend_daytona::Account;
use daytona_testkit::Standin;
use tokio::runtime::Runtime;

use super::{ProgramOutput, TestDir};

/// Time for a sandbox to end.
const REMOVAL: Duration = Duration::from_secs(60);

pub(crate) struct Hosted {
    pub(crate) dir: TestDir,
    pub(crate) standin: Standin,
    pub(crate) runtime: Runtime,
}

impl Hosted {
    pub(crate) fn new() -> Self {
        let dir = TestDir::new();
        dir.file(
            "config.toml",
            "backend = \"daytona:busybox\"\n[daytona]\nmode = \"portable\"\n",
        );
        let runtime = Runtime::new().unwrap();
        let standin = runtime.block_on(Standin::start()).unwrap();
        Self {
            dir,
            standin,
            runtime,
        }
    }

    pub(crate) fn account(&self) -> Account {
        let account = Account::builder().url(self.standin.api_url());
        account.api_key(self.standin.api_key()).build().unwrap()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_with("config.toml", arguments)
    }

    /// Returns the program's command with another config file.
    pub(crate) fn command_with(&self, config: &str, arguments: &[&str]) -> Command {
        let all = [&["--config", config], arguments].concat();
        let mut command = self.dir.command(&all);
        command.env("DAYTONA_API_URL", self.standin.api_url());
        command.env("DAYTONA_API_KEY", self.standin.api_key());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> ProgramOutput {
        ProgramOutput::new(self.command(arguments).output().unwrap())
    }

    /// Returns the names and states of the sandboxes that are not deleted.
    pub(crate) fn sandboxes(&self) -> Vec<(String, String)> {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let all = self.standin.sandboxes();
        let all = all
            .iter()
            .map(|one| (text(&one["name"]), text(&one["state"])));
        all.filter(|(_, state)| !state.starts_with("destroy"))
            .collect()
    }

    /// Waits until a sandbox is deleted.
    pub(crate) fn wait_for_end(&self, name: &str) {
        let begun = Instant::now();
        while self.sandboxes().iter().any(|(found, _)| found == name) {
            assert!(begun.elapsed() < REMOVAL, "{name} is still there");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
