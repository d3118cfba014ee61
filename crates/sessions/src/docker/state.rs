//! The changing facts about a session, in small files that its commands can neither read nor
//! change.
//!
//! With a root they are in `{root}/.state`, in a directory for each container; without one
//! they are in the container itself, which takes a daemon a hundred times as long. The
//! variables of commands are in the container in both cases: they may be secrets, and they
//! end with it.
//!
//! One file holds the record. The time of the last use is in one of several files, chosen
//! by the process: processes that use a session at once do not overwrite each other's
//! times, and the latest one counts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backend_core::{Error, ErrorKind, Result};
use backend_docker::containers::{self, Container};
use backend_docker::{ContainerState, Daemon};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::containers::blocking;
use super::files::{put_file, small_files};
use super::names;
use crate::id::SessionId;
use crate::record::{Record, RecordState};
use crate::request::OpenRequest;

/// The directory of the files in a container, outside every work directory.
const DIRECTORY: &str = "/.agentbox-session";
/// The file with the record.
const RECORD: &str = "record";
/// The file with the variables of commands.
const ENV: &str = "env";
/// The beginning of the names of the files with times.
const ACTIVE: &str = "active-";
/// The number of files with times. Two processes that share one can lose a few seconds
/// of use.
const SLOTS: u8 = 64;

/// A session as it is kept: its record, and the variables of its commands. They may be
/// secrets, so it is never shown.
pub(super) struct Kept {
    pub(super) record: Record,
    pub(super) env: BTreeMap<String, String>,
}

/// A record as it is written.
#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(flatten)]
    record: Record,
    /// Whether there are variables: to look for them takes long.
    #[serde(default)]
    has_env: bool,
}

/// Reads and writes the files of sessions, for one process.
#[derive(Debug, Clone)]
pub(super) struct States {
    daemon: Daemon,
    /// The directory of the directories for each container, if there is a root.
    directory: Option<PathBuf>,
    /// The file of this process.
    slot: u8,
}

impl States {
    pub(super) fn new(daemon: Daemon, directory: Option<PathBuf>) -> Self {
        Self {
            daemon,
            directory,
            slot: fastrand::u8(..SLOTS),
        }
    }

    /// Writes the record of a new session. Times of earlier uses are no longer those of
    /// this session, but there are none: a container serves one session.
    pub(super) async fn write(&self, container: &str, session: &Kept) -> Result<()> {
        let has_env = !session.env.is_empty();
        if has_env {
            let path = format!("{DIRECTORY}/{ENV}");
            let env = json(&session.env)?;
            containers::write_file(&self.daemon, container, &path, &env).await?;
        }
        let written = Written {
            record: session.record.clone(),
            has_env,
        };
        self.put(container, RECORD.to_owned(), json(&written)?, true)
            .await
    }

    /// Writes the time of a use.
    pub(super) async fn touch(&self, container: &str, at: SystemTime) -> Result<()> {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let text = since.as_millis().to_string().into_bytes();
        let name = format!("{ACTIVE}{}", self.slot);
        match self.put(container, name, text, false).await {
            // The session ended meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            written => written,
        }
    }

    /// Writes a file. Only for a new session may its directory be missing.
    async fn put(&self, container: &str, name: String, text: Vec<u8>, is_new: bool) -> Result<()> {
        let Some(directory) = &self.directory else {
            let path = format!("{DIRECTORY}/{name}");
            return containers::write_file(&self.daemon, container, &path, &text).await;
        };
        let directory = directory.join(container);
        blocking(move || put_file(&directory, &name, &text, is_new)).await
    }

    /// Reads what is known about the session of a container.
    pub(super) async fn read(&self, container: &Container, id: &SessionId) -> Result<Record> {
        Ok(self.read_written(container, id).await?.record)
    }

    /// Reads the same with the session's variables.
    pub(super) async fn read_all(&self, container: &Container, id: &SessionId) -> Result<Kept> {
        let written = self.read_written(container, id).await?;
        let mut env = BTreeMap::new();
        if written.has_env {
            let files = containers::read_files(&self.daemon, &container.id, DIRECTORY).await?;
            let found = files.get(ENV).map(|json| serde_json::from_slice(json));
            // It has none if the daemon has none: it is being removed.
            env = found.and_then(|found| found.ok()).unwrap_or_default();
        }
        let record = written.record;
        Ok(Kept { record, env })
    }

    async fn read_written(&self, container: &Container, id: &SessionId) -> Result<Written> {
        let files = match &self.directory {
            Some(directory) => {
                let directory = directory.join(&container.id);
                blocking(move || small_files(&directory)).await?
            }
            None => {
                let files = containers::read_files(&self.daemon, &container.id, DIRECTORY);
                match files.await {
                    // Commands as root have filled it. They must not keep the session from
                    // being ended.
                    Err(error) if error.kind() == ErrorKind::TooLarge => BTreeMap::new(),
                    files => files?,
                }
            }
        };
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

fn json(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|source| {
        Error::internal("a session's record could not be written").with_source(source)
    })
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
    let Written {
        mut record,
        has_env,
    } = written.unwrap_or_else(|| {
        let request = OpenRequest::new(id.clone());
        Written {
            record: Record::new(&request, created),
            has_env: false,
        }
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
    Written { record, has_env }
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
    fn a_record_says_whether_there_are_variables() {
        let id = SessionId::new("alice").unwrap();
        let record = Record::new(&OpenRequest::new(id.clone()), at(1));
        let has_env = true;
        let written = serde_json::to_vec(&Written { record, has_env }).unwrap();
        let files = [file(RECORD, written)].into();
        let found = combine(&id, at(1), None, ContainerState::Running, &files);
        assert!(found.has_env);
        assert_eq!(found.record.created, at(1));
    }
}
