//! Checks for hosted sandboxes: the key, the service, the sandbox or its settings, leftovers of
//! earlier runs.

use std::time::Duration;

use backend_daytona::Account;

use super::UsedBackend;
use super::finding::Finding;
use crate::backend::daytona::{self, settings::DaytonaSettings};
use crate::backend::kind::Kind;
use crate::backend::spec::BackendSpec;
use crate::system;

/// Time allowed for the service to answer each question.
const SERVICE_TIMEOUT: Duration = Duration::from_secs(10);

/// Asks the service, if the backend uses it: it is not of this machine.
pub(super) async fn findings(backend: &UsedBackend) -> Vec<Finding> {
    if !backend.uses(Kind::Daytona) {
        return Vec::new();
    }
    let finding = Finding::new("daytona key", "hosted sandboxes").needed(true);
    let settings = DaytonaSettings::configured(&backend.tables);
    let account = settings.and_then(|settings| Ok((settings.account()?, settings)));
    let (account, settings) = match account {
        Ok(account) => account,
        Err(failure) => return vec![finding.wrong(&failure)],
    };
    let key = finding.ok(format!("is in {}", place_of_key(&settings)));
    let (service, leftovers) = tokio::join!(service(&account), leftovers(&account));
    // Without an answer there is nothing else to speak of.
    if !service.is_fine() {
        return vec![key, service];
    }
    let sandbox = sandbox(backend, account).await;
    let others = sandbox.into_iter().chain(leftovers);
    [key, service].into_iter().chain(others).collect()
}

/// Names where the key is, which itself is never shown.
fn place_of_key(settings: &DaytonaSettings) -> String {
    match &settings.api_key_file {
        Some(file) => file.display().to_string(),
        None => {
            let names = ["DAYTONA_API_KEY", "DAYTONA_JWT_TOKEN"];
            let set = names
                .into_iter()
                .find(|name| system::variable(name).is_some());
            set.unwrap_or("the environment").to_owned()
        }
    }
}

async fn service(account: &Account) -> Finding {
    let finding = Finding::new("daytona", "hosted sandboxes").needed(true);
    let url = account.url();
    let info = match tokio::time::timeout(SERVICE_TIMEOUT, account.info()).await {
        Ok(Ok(info)) => info,
        Ok(Err(error)) => return finding.wrong(&error),
        Err(_) => {
            let fix = "see whether it can be reached from here, or set DAYTONA_API_URL";
            return finding.missing(format!("{url} does not answer"), fix);
        }
    };
    let snapshot = match &info.default_snapshot {
        Some(snapshot) => format!(", default snapshot {snapshot}"),
        None => String::new(),
    };
    let version = &info.version;
    finding.ok(format!(
        "{url} accepts the key, version {version}{snapshot}"
    ))
}

/// Checks the settings of new sandboxes, or looks for the one to attach to. Parts of a tree are
/// left out.
async fn sandbox(backend: &UsedBackend, account: Account) -> Option<Finding> {
    let spec = BackendSpec::new(backend.spec.as_deref(), &backend.tables).ok()?;
    if spec.kind != Kind::Daytona {
        return None;
    }
    let finding = Finding::new("sandbox", "the hosted sandbox").needed(true);
    let tried = tokio::time::timeout(SERVICE_TIMEOUT, daytona::try_out(&spec, account));
    Some(match tried.await {
        Ok(Ok(found)) => finding.ok(found),
        Ok(Err(failure)) => finding.wrong(&failure),
        Err(_) => finding.missing("the service does not answer", "try again"),
    })
}

async fn leftovers(account: &Account) -> Option<Finding> {
    let finding = Finding::new(
        "left sandboxes",
        "hosted sandboxes of programs that crashed",
    );
    let found = backend_daytona::leftovers(account);
    let found = tokio::time::timeout(SERVICE_TIMEOUT, found).await.ok()?;
    Some(match found {
        Ok(found) if found.is_empty() => finding.ok("there are none"),
        Ok(found) => finding.doubtful(
            format!("there are {}", found.len()),
            "delete them with agentbox sandboxes reap --backend daytona; the next sandbox that is started does so too",
        ),
        Err(error) => finding.doubtful(error.chain().to_string(), "look at the dashboard of Daytona"),
    })
}
