//! Checks for hosted sandboxes: the key, the service, leftovers of earlier runs.

use std::time::Duration;

use backend_daytona::Account;

use super::UsedBackend;
use super::finding::Finding;
use crate::backend::daytona::settings::DaytonaSettings;
use crate::backend::kind::Kind;
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
    // Without an answer there are no leftovers to speak of.
    let leftovers = leftovers.filter(|_| service.is_fine());
    [key, service].into_iter().chain(leftovers).collect()
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
