//! The stand-in, an account of it, and shorthands.

use std::time::Duration;

use backend_core::ops::{Command, ExecuteOutcome, StopMode};
use backend_core::{Result, Sandbox as _};
use backend_daytona::{Account, AgentBinary, Attach, DaytonaBuilder, DaytonaSandbox, Mode};
use daytona_testkit::{Options, Standin};

/// The longest wait for anything. Only what never comes about takes this long.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks at a state that nothing announces.
const LOOK: Duration = Duration::from_millis(20);

/// A stand-in, and an account of it.
pub(crate) struct Place {
    pub(crate) standin: Standin,
    pub(crate) account: Account,
}

impl Place {
    pub(crate) async fn new() -> Self {
        Self::with(Options::default()).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        let standin = Standin::start_with(options).await.unwrap();
        let account = Account::builder()
            .api_key(standin.api_key())
            .url(standin.api_url())
            .build()
            .unwrap();
        Self { standin, account }
    }

    /// A builder for a sandbox that is served by its own tools.
    pub(crate) fn builder(&self) -> DaytonaBuilder {
        DaytonaSandbox::builder()
            .account(self.account.clone())
            .mode(Mode::Portable)
            .reap_leftovers(false)
    }

    /// The same, served by the agent.
    pub(crate) fn with_agent(&self) -> DaytonaBuilder {
        self.builder().agent(agent()).mode(Mode::Agent)
    }

    pub(crate) fn attach(&self, sandbox: &str) -> Attach {
        DaytonaSandbox::attach(sandbox)
            .account(self.account.clone())
            .mode(Mode::Portable)
    }

    /// The states of all sandboxes, also of those that are gone.
    pub(crate) fn states(&self) -> Vec<String> {
        let all = self.standin.sandboxes();
        let state = |one: &serde_json::Value| one["state"].as_str().unwrap_or_default().to_owned();
        all.iter().map(state).collect()
    }

    /// Waits until all sandboxes are gone.
    pub(crate) async fn until_empty(&self) {
        until("the end of all sandboxes", || {
            let states = self.states();
            let is_gone = |state: &String| state.starts_with("destroy");
            !states.is_empty() && states.iter().all(is_gone)
        })
        .await;
    }
}

/// A client for requests of other programs.
pub(crate) fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// The agent that `cargo xtask test-all` has built.
pub(crate) fn agent() -> AgentBinary {
    let path = std::env::var("SANDBOX_AGENT");
    let path = path.expect("SANDBOX_AGENT is not set; run cargo xtask test-all");
    AgentBinary::new(path).unwrap()
}

/// Polls until a condition holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let holding = async {
        while !holds() {
            tokio::time::sleep(LOOK).await;
        }
    };
    within(what, holding).await;
}

/// Awaits work that must not hang.
pub(crate) async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, work).await;
    done.unwrap_or_else(|_| panic!("{what} did not come about"))
}

pub(crate) async fn outcome(sandbox: &DaytonaSandbox, line: &str) -> Result<ExecuteOutcome> {
    within(line, sandbox.execute(Command::new(line))).await
}

/// Runs a command that must succeed, and returns its output.
pub(crate) async fn run(sandbox: &DaytonaSandbox, line: &str) -> String {
    let outcome = outcome(sandbox, line).await.unwrap();
    let (out, err) = (outcome.stdout.text(), outcome.stderr.text());
    assert!(
        outcome.status.success(),
        "{line}: {}: {out}{err}",
        outcome.status
    );
    out.trim_end().to_owned()
}

pub(crate) async fn purge(sandbox: &DaytonaSandbox) {
    let purged = within("a purge", sandbox.stop(StopMode::Purge)).await;
    purged.unwrap();
}
