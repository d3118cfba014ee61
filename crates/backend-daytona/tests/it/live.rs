//! The real service, if `DAYTONA_API_KEY` is set. It costs money there.

use std::io::Write as _;
use std::time::Duration;

use backend_core::ops::{Command, CommandStatus};
use backend_core::{BackendExt as _, Sandbox as _};
use backend_daytona::{Account, AgentBinary, DaytonaSandbox, Mode};

use crate::support::{purge, run, within};

/// Returns the account of the environment, or tells that the test is left out.
fn account() -> Option<Account> {
    if std::env::var_os("DAYTONA_API_KEY").is_some() {
        return Some(Account::from_env().unwrap());
    }
    let line = "\nleft out: DAYTONA_API_KEY is not set, so nothing was tried on the real service\n";
    let _ = std::io::stderr().write_all(line.as_bytes());
    None
}

async fn works(mode: Mode) {
    let Some(account) = account() else {
        return;
    };
    let mut builder = DaytonaSandbox::builder()
        .account(account)
        .mode(mode)
        .auto_stop(Duration::from_secs(15 * 60))
        .ttl(Duration::from_secs(60 * 60));
    if let Some(agent) = AgentBinary::locate_from_env().unwrap() {
        builder = builder.agent(agent);
    }
    let sandbox = builder.build().unwrap();
    sandbox.write_file("live.txt", "one\n").await.unwrap();
    sandbox
        .replace_text("live.txt", "one", "two")
        .await
        .unwrap();
    assert_eq!(run(&sandbox, "cat live.txt").await, "two");
    let late = Command::new("echo begun; sleep 600").timeout(Duration::from_secs(5));
    let late = within("a timeout", sandbox.execute(late)).await.unwrap();
    assert_eq!(late.status, CommandStatus::TimedOut);
    assert_eq!(late.stdout.text(), "begun\n");
    println!("{:?} by {:?}", sandbox.name(), sandbox.connection());
    purge(&sandbox).await;
}

#[tokio::test]
async fn a_sandbox_of_the_real_service_with_its_own_tools() {
    works(Mode::Portable).await;
}

#[tokio::test]
async fn a_sandbox_of_the_real_service_with_the_agent_if_there_is_one() {
    works(Mode::Auto).await;
}
