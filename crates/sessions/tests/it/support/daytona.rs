//! Sessions in sandboxes of a stand-in for Daytona.

use std::sync::Arc;
use std::time::Duration;

use backend_daytona::{Account, DaytonaSandbox, Mode};
use daytona_testkit::Standin;
use sessions::{DaytonaEngine, DaytonaEngineBuilder, SessionManager};

/// The longest time of a change of labels: many times what it takes here.
pub(crate) const SETTLE: Duration = Duration::from_millis(300);

/// A service for one test.
pub(crate) struct Place {
    pub(crate) standin: Standin,
}

impl Place {
    pub(crate) async fn new() -> Self {
        Self {
            standin: Standin::start().await.unwrap(),
        }
    }

    pub(crate) fn account(&self) -> Account {
        account(&self.standin.api_url(), self.standin.api_key())
    }

    /// Returns the engine of one more process.
    pub(crate) fn engine(&self) -> DaytonaEngine {
        engine(self.account()).build().unwrap()
    }

    /// Returns the engine of a process that does not wait for the changes of this one: changes of
    /// labels by one process, at one address, wait for each other.
    pub(crate) fn engine_elsewhere(&self) -> DaytonaEngine {
        let url = self.standin.api_url().replace("127.0.0.1", "localhost");
        let account = account(&url, self.standin.api_key());
        engine(account).build().unwrap()
    }

    /// Returns the states of all sandboxes that are not deleted, by their names.
    pub(crate) fn states(&self) -> Vec<(String, String)> {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let all = self.standin.sandboxes();
        let all = all
            .iter()
            .map(|one| (text(&one["name"]), text(&one["state"])));
        all.filter(|(_, state)| !state.starts_with("destroy"))
            .collect()
    }

    /// Returns the state of the only sandbox.
    pub(crate) fn state(&self) -> String {
        let [(_, state)] = &self.states()[..] else {
            panic!("there is not one sandbox: {:?}", self.states());
        };
        state.clone()
    }
}

pub(crate) fn account(url: &str, key: &str) -> Account {
    Account::builder().url(url).api_key(key).build().unwrap()
}

pub(crate) fn engine(account: Account) -> DaytonaEngineBuilder {
    let template = DaytonaSandbox::builder()
        .mode(Mode::Portable)
        .reap_leftovers(false);
    DaytonaEngine::builder(account)
        .template(template)
        .settle_time(SETTLE)
}

pub(crate) fn manager(engine: &DaytonaEngine) -> SessionManager {
    let engine = Arc::new(engine.clone());
    SessionManager::builder().engine(engine).build().unwrap()
}
