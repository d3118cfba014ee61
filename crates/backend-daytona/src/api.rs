//! The requests to the control plane.

use std::collections::BTreeMap;
use std::time::Duration;

use backend_core::{Error, Result};
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;
use serde_json::{Value, json};

use crate::account::Account;
use crate::client::{self, Call, Repeat};
use crate::instance::Instance;

/// The service waits for a sandbox for up to 30 s before it answers some requests.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(90);
/// Sandboxes on one page of a list.
const PAGE: usize = 100;
/// The size of all pages of a list in bytes.
const LIST_BYTES: usize = 64 * 1024 * 1024;
/// The most pages that are read.
const PAGES: usize = 1_000;

/// A change of a sandbox's state that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Start,
    Stop,
    Pause,
    Archive,
    Recover,
}

impl Change {
    fn path(self) -> &'static str {
        match self {
            Self::Start => "/start",
            Self::Stop => "/stop?force=false",
            Self::Pause => "/pause",
            Self::Archive => "/archive",
            Self::Recover => "/recover",
        }
    }
}

/// The characters that mean something in an address.
const MEANINGFUL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// Encodes a text as one part of an address.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, MEANINGFUL).to_string()
}

/// Reads an answer that must be a JSON document.
pub(crate) fn document(answer: &Bytes) -> Result<Value> {
    serde_json::from_slice(answer).map_err(|error| {
        let text = "the service sent an answer that cannot be read; see whether the URL is that of a Daytona API";
        Error::unavailable(text).with_source(error)
    })
}

fn instance(answer: &Bytes) -> Result<Instance> {
    let read = Instance::read(&document(answer)?);
    read.ok_or_else(|| {
        Error::unavailable("the service described a sandbox without an id; try again")
    })
}

impl Account {
    fn sandbox(&self, key: &str, path: &str) -> String {
        self.at(&format!("/sandbox/{}{path}", encoded(key)))
    }

    /// Asks for a new sandbox.
    pub(crate) async fn create(&self, body: &Value) -> Result<Instance> {
        let call = Call::new(Method::POST, self.at("/sandbox"), Repeat::Unperformed);
        let answer = self.call(call.json(body).timeout(CHANGE_TIMEOUT)).await?;
        instance(&answer)
    }

    /// Finds a sandbox by its id or name. `None` if there is none.
    pub(crate) async fn find(&self, key: &str) -> Result<Option<Instance>> {
        let answer = self.call(Call::get(self.sandbox(key, ""))).await;
        match answer {
            Ok(answer) => instance(&answer).map(Some),
            Err(error) if client::status(&error) == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists the sandboxes with these labels. The service's list is late: sandboxes may be
    /// missing, and deleted ones in it.
    pub(crate) async fn list(&self, labels: &BTreeMap<String, String>) -> Result<Vec<Instance>> {
        let labels = encoded(&json!(labels).to_string());
        let mut found = Vec::new();
        let (mut cursor, mut room) = (String::new(), LIST_BYTES);
        for _ in 0..PAGES {
            let path = format!("/sandbox?limit={PAGE}&labels={labels}{cursor}");
            let answer = self.call(Call::get(self.at(&path)).limit(room)).await?;
            room = room.saturating_sub(answer.len());
            let page = document(&answer)?;
            let items = page.get("items").and_then(Value::as_array);
            found.extend(items.into_iter().flatten().filter_map(Instance::read));
            let next = page.get("nextCursor").and_then(Value::as_str);
            let next = next.filter(|next| !next.is_empty());
            let next = next.map(|next| format!("&cursor={}", encoded(next)));
            match next {
                Some(next) if next != cursor => cursor = next,
                _ => return Ok(found),
            }
        }
        Err(Error::too_large(format!(
            "there are more than {} sandboxes; delete some",
            PAGES * PAGE
        )))
    }

    /// Asks for a change of state. The answer says only that it has begun.
    pub(crate) async fn change(&self, key: &str, change: Change) -> Result<()> {
        let url = self.sandbox(key, change.path());
        // Each is a wish for a state, so repeating it does no harm.
        let call = Call::new(Method::POST, url, Repeat::Safe).timeout(CHANGE_TIMEOUT);
        self.call(call).await.map(drop)
    }

    /// Asks for a deletion.
    pub(crate) async fn delete(&self, key: &str) -> Result<()> {
        let url = self.sandbox(key, "");
        let call = Call::new(Method::DELETE, url, Repeat::Safe).timeout(CHANGE_TIMEOUT);
        self.call(call).await.map(drop)
    }

    /// Replaces all labels.
    pub(crate) async fn set_labels(
        &self,
        key: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<()> {
        let url = self.sandbox(key, "/labels");
        let call = Call::new(Method::PUT, url, Repeat::Safe);
        self.call(call.json(&json!({"labels": labels})))
            .await
            .map(drop)
    }

    /// Says that a sandbox is used.
    pub(crate) async fn touch(&self, id: &str) -> Result<()> {
        let url = self.sandbox(id, "/last-activity");
        self.call(Call::new(Method::POST, url, Repeat::Safe))
            .await
            .map(drop)
    }

    /// Returns the address of the toolbox of a sandbox, with its id.
    pub(crate) async fn toolbox_url(&self, instance: &Instance) -> Result<String> {
        let named = match &instance.toolbox {
            Some(url) => url.clone(),
            None => {
                let url = self.sandbox(&instance.id, "/toolbox-proxy-url");
                let answer = document(&self.call(Call::get(url)).await?)?;
                let url = answer.get("url").and_then(Value::as_str);
                url.unwrap_or_default().to_owned()
            }
        };
        let url = self.trusted(&named)?;
        Ok(format!("{url}/{}", encoded(&instance.id)))
    }

    /// Returns the address of a port of a sandbox, and its token.
    pub(crate) async fn preview(&self, key: &str, port: u16) -> Result<(String, String)> {
        let url = self.sandbox(key, &format!("/ports/{port}/preview-url"));
        let answer = document(&self.call(Call::get(url)).await?)?;
        let text = |field: &str| {
            answer
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        Ok((self.trusted(text("url"))?, text("token").to_owned()))
    }
}
