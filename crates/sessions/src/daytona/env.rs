//! The variables of a session's commands, in a file of its sandbox.
//!
//! They are in no label, which all users of the organization can read. Commands of the session
//! can read the file, as they can read their variables; changing it concerns that session only.

use std::collections::BTreeMap;

use backend_core::{Error, Result};
use backend_daytona::instances::{self, Instance};

use super::DaytonaEngine;
use crate::notes::ENV;

/// The file, in a directory that all users can write to and that is kept over a restart.
const FILE: &str = "/var/tmp/.agentbox-session-env";

pub(super) type Env = BTreeMap<String, String>;

impl DaytonaEngine {
    /// Returns the variables of a session, for which its sandbox is started: a file can only be
    /// read in one that runs. Empty if the process that opened the session was killed before it
    /// wrote them.
    pub(super) async fn env_of(&self, found: &Instance) -> Result<Env> {
        if !found.labels.contains_key(ENV) {
            return Ok(Env::new());
        }
        let account = &self.0.account;
        instances::start(account, &found.id).await?;
        let json = instances::read_file(account, &found.id, FILE).await?;
        let env = json.and_then(|json| serde_json::from_slice(&json).ok());
        Ok(env.unwrap_or_default())
    }

    /// Keeps the variables of a session.
    pub(super) async fn keep_env(&self, instance: &str, env: &Env) -> Result<()> {
        let json = serde_json::to_vec(env).map_err(|source| {
            Error::internal("a session's variables could not be written").with_source(source)
        })?;
        let account = &self.0.account;
        instances::start(account, instance).await?;
        instances::write_file(account, instance, FILE, &json).await?;
        let marked = BTreeMap::from([(ENV.to_owned(), Some("true".to_owned()))]);
        instances::change_labels(account, instance, &marked)
            .await
            .map(drop)
    }
}
