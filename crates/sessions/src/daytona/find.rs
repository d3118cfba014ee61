//! Which sandbox is that of a session, and what its labels say.

use std::time::UNIX_EPOCH;

use backend_core::{Error, ErrorKind, Quoted, Result};
use backend_daytona::InstanceState;
use backend_daytona::instances::{self, Instance};

use super::DaytonaEngine;
use crate::id::SessionId;
use crate::names::SPACE;
use crate::notes;
use crate::record::{Record, RecordState};

/// Returns the record of a session.
pub(super) fn record(found: &Instance, id: &SessionId) -> Record {
    let state = match found.state {
        InstanceState::Starting | InstanceState::Started | InstanceState::Unknown(_) => {
            RecordState::Running
        }
        _ => RecordState::Stopped,
    };
    let created = found.created.unwrap_or(UNIX_EPOCH);
    notes::record(&found.labels, id, created, state)
}

/// Whether a sandbox is no longer there, or about to be so.
pub(super) fn is_gone(found: &Instance) -> bool {
    matches!(
        found.state,
        InstanceState::Deleting | InstanceState::Missing
    )
}

impl DaytonaEngine {
    /// Finds the sandbox of a session, unless it is being deleted.
    pub(super) async fn find(&self, id: &SessionId) -> Result<Option<Instance>> {
        let name = self.0.names.session(id);
        let found = instances::find(&self.0.account, &name).await?;
        found.map(|found| self.own(id, found)).transpose()
    }

    /// Returns the result of work on a sandbox, or `None` if it failed because the session has
    /// ended or was opened anew meanwhile.
    pub(super) async fn unless_replaced<T>(
        &self,
        id: &SessionId,
        found: &Instance,
        result: Result<T>,
    ) -> Result<Option<T>> {
        let error = match result {
            Ok(value) => return Ok(Some(value)),
            Err(error) => error,
        };
        match self.find(id).await? {
            Some(again) if again.id == found.id => Err(error),
            _ => Ok(None),
        }
    }

    /// Refuses a sandbox that was not created for the session: others may have given it the name.
    fn own(&self, id: &SessionId, found: Instance) -> Result<Instance> {
        let space = found.labels.get(SPACE);
        let is_of_space = space.is_some_and(|space| space == self.0.names.space());
        if found.is_ours() && is_of_space && notes::is_of(&found.labels, id) {
            return Ok(found);
        }
        let message = format!(
            "the sandbox {} was not created for the session; delete it, or name another space",
            Quoted::new(&found.name)
        );
        Err(Error::new(ErrorKind::Conflict, message).about(id))
    }
}
