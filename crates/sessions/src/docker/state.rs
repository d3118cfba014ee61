//! The changing facts about a session, in small files of its container that only root can read.
//!
//! One file holds the record. The time of the last use is in one of several files, chosen
//! by the process: processes that use a session at once do not overwrite each other's
//! times, and the latest one counts.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backend_core::{Error, ErrorKind, Result};
use backend_docker::containers::{self, Container};
use backend_docker::{ContainerState, Daemon};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::names;
use crate::id::SessionId;
use crate::record::{Record, RecordState};
use crate::request::OpenRequest;

/// The directory of the files, outside every work directory.
const DIRECTORY: &str = "/.agentbox-session";
/// The file with the record.
const RECORD: &str = "record";
/// The beginning of the names of the files with times.
const ACTIVE: &str = "active-";
/// The number of files with times. Two processes that share one can lose a few seconds
/// of use.
const SLOTS: u8 = 64;

/// A record as it is written. The variables are no part of it elsewhere: records are shown,
/// and these may be secrets.
#[derive(Serialize, Deserialize)]
pub(super) struct Written {
    #[serde(flatten)]
    pub(super) record: Record,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
}

/// Reads and writes the files of sessions, for one process.
#[derive(Debug, Clone)]
pub(super) struct States {
    daemon: Daemon,
    /// The file of this process.
    slot: u8,
}

impl States {
    pub(super) fn new(daemon: Daemon) -> Self {
        let slot = fastrand::u8(..SLOTS);
        Self { daemon, slot }
    }

    /// Writes the record of a new session. Times of earlier uses are no longer those of
    /// this session, but there are none: a container serves one session.
    pub(super) async fn write(&self, container: &str, session: &Written) -> Result<()> {
        let json = serde_json::to_vec(session).map_err(|source| {
            Error::internal("a session's record could not be written").with_source(source)
        })?;
        let path = format!("{DIRECTORY}/{RECORD}");
        containers::write_file(&self.daemon, container, &path, &json).await
    }

    /// Writes the time of a use.
    pub(super) async fn touch(&self, container: &str, at: SystemTime) -> Result<()> {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let text = since.as_millis().to_string();
        let path = format!("{DIRECTORY}/{ACTIVE}{}", self.slot);
        let written = containers::write_file(&self.daemon, container, &path, text.as_bytes());
        match written.await {
            // The session ended meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            written => written,
        }
    }

    /// Reads what is known about the session of a container.
    pub(super) async fn read(&self, container: &Container, id: &SessionId) -> Result<Record> {
        Ok(self.read_all(container, id).await?.record)
    }

    /// Reads the same with the session's variables.
    pub(super) async fn read_all(&self, container: &Container, id: &SessionId) -> Result<Written> {
        let files = containers::read_files(&self.daemon, &container.id, DIRECTORY).await?;
        let runtime = container.labels.get(names::RUNTIME);
        Ok(combine(
            id,
            container.created,
            runtime,
            container.state,
            &files,
        ))
    }
}

/// Combines the files of a container into a record. The container's name and labels count
/// more than its files.
fn combine(
    id: &SessionId,
    created: SystemTime,
    runtime: Option<&String>,
    state: ContainerState,
    files: &BTreeMap<String, Bytes>,
) -> Written {
    let written = files.get(RECORD);
    let written = written.and_then(|json| serde_json::from_slice::<Written>(json).ok());
    let Written { mut record, env } = written.unwrap_or_else(|| {
        let request = OpenRequest::new(id.clone());
        let record = Record::new(&request, created);
        let env = BTreeMap::new();
        Written { record, env }
    });
    record.id = id.clone();
    if let Some(runtime) = runtime {
        record.runtime = Some(runtime.clone());
    }
    record.state = match state {
        ContainerState::Running | ContainerState::Paused => RecordState::Running,
        _ => RecordState::Stopped,
    };
    let times = files.iter().filter(|(name, _)| name.starts_with(ACTIVE));
    let latest = times.filter_map(|(_, text)| parse_time(text)).max();
    if let Some(latest) = latest {
        record.last_activity = record.last_activity.max(latest);
    }
    Written { record, env }
}

fn parse_time(text: &[u8]) -> Option<SystemTime> {
    let millis = std::str::from_utf8(text).ok()?.parse().ok()?;
    UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn file(name: &str, content: impl Into<Bytes>) -> (String, Bytes) {
        (name.to_owned(), content.into())
    }

    #[test]
    fn the_latest_use_by_any_process_counts() {
        let id = SessionId::new("alice").unwrap();
        let request = OpenRequest::new(id.clone()).tenant("acme");
        let json = serde_json::to_vec(&Record::new(&request, at(10))).unwrap();
        let files = [
            file(RECORD, json),
            file("active-3", "20000"),
            file("active-4", "30000"),
            file("active-5", "garbage"),
            file("other", "99000"),
        ];
        let runtime = "py@1".to_owned();
        let state = ContainerState::Stopped;
        let found = combine(&id, at(1), Some(&runtime), state, &files.into());
        let record = found.record;
        assert_eq!(record.tenant.as_deref(), Some("acme"));
        assert_eq!(record.runtime.as_deref(), Some("py@1"));
        assert_eq!(record.created, at(10));
        assert_eq!(record.last_activity, at(30));
        assert_eq!(record.state, RecordState::Stopped);
    }

    #[test]
    fn a_container_without_files_has_a_record() {
        let id = SessionId::new("alice").unwrap();
        for files in [vec![], vec![file(RECORD, "{")]] {
            let files = files.into_iter().collect();
            let record = combine(&id, at(5), None, ContainerState::Running, &files).record;
            assert_eq!((record.id.as_str(), record.tenant), ("alice", None));
            assert_eq!((record.created, record.last_activity), (at(5), at(5)));
            assert_eq!(record.state, RecordState::Running);
        }
    }

    #[test]
    fn no_container_passes_for_another_session() {
        let (id, other) = (SessionId::new("a").unwrap(), SessionId::new("b").unwrap());
        let json = serde_json::to_vec(&Record::new(&OpenRequest::new(other), at(1))).unwrap();
        let files = [file(RECORD, json)].into();
        let record = combine(&id, at(1), None, ContainerState::Running, &files).record;
        assert_eq!(record.id, id);
    }

    #[test]
    fn variables_are_kept_with_the_record() {
        let id = SessionId::new("alice").unwrap();
        let request = OpenRequest::new(id.clone()).env("TOKEN", "abc");
        let session = Written {
            record: Record::new(&request, at(1)),
            env: request.env.clone(),
        };
        let files = [file(RECORD, serde_json::to_vec(&session).unwrap())].into();
        let found = combine(&id, at(1), None, ContainerState::Running, &files);
        assert_eq!(found.record, session.record);
        assert_eq!(found.env, request.env);
    }
}
