//! The record of a session, in the notes on an object: short texts by name, which are the
//! annotations of a pod or the labels of a hosted sandbox.
//!
//! One note holds the record, another one the time of the last use, because only that changes.
//! The variables of commands are in none: they may be secrets.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backend_core::{Error, Result};

use crate::id::SessionId;
use crate::record::{Record, RecordState};
use crate::request::OpenRequest;

/// The id of the session.
const ID: &str = "sessions.agentbox.dev/id";
/// The record, as JSON.
pub(crate) const RECORD: &str = "sessions.agentbox.dev/record";
/// The time of the last use, in milliseconds since 1970.
pub(crate) const ACTIVE: &str = "sessions.agentbox.dev/last-activity";
/// Whether variables of commands are kept.
pub(crate) const ENV: &str = "sessions.agentbox.dev/env";

pub(crate) type Notes = BTreeMap<String, String>;

/// Returns the notes that make an object that of a session.
pub(crate) fn of(record: &Record) -> Result<Notes> {
    let json = serde_json::to_string(record).map_err(|source| {
        Error::internal("a session's record could not be written").with_source(source)
    })?;
    let all = [
        (ID, record.id.to_string()),
        (RECORD, json),
        (ACTIVE, millis(record.last_activity)),
    ];
    Ok(all.map(|(key, value)| (key.to_owned(), value)).into())
}

/// Returns the session that an object belongs to.
pub(crate) fn session(notes: &Notes) -> Option<SessionId> {
    SessionId::new(notes.get(ID)?).ok()
}

/// Whether an object belongs to a session.
pub(crate) fn is_of(notes: &Notes, id: &SessionId) -> bool {
    notes.get(ID).is_some_and(|found| found == id.as_str())
}

/// Reads a record. One that cannot be read is that of a session without options.
pub(crate) fn record(
    notes: &Notes,
    id: &SessionId,
    created: SystemTime,
    state: RecordState,
) -> Record {
    let written = notes.get(RECORD);
    let written = written.and_then(|json| serde_json::from_str::<Record>(json).ok());
    let mut record = written.unwrap_or_else(|| Record::new(&OpenRequest::new(id.clone()), created));
    record.id = id.clone();
    record.state = state;
    if let Some(active) = active(notes) {
        record.last_activity = record.last_activity.max(active);
    }
    record
}

/// Returns the time of the last use.
pub(crate) fn active(notes: &Notes) -> Option<SystemTime> {
    let millis = notes.get(ACTIVE)?.parse().ok()?;
    UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}

/// Returns a time as it is written.
pub(crate) fn millis(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_record_is_read_as_it_was_written_with_the_latest_use() {
        let id = SessionId::new("Alice").unwrap();
        let request = OpenRequest::new(id.clone()).tenant("acme");
        let written = Record::new(&request, at(10));
        let mut notes = of(&written).unwrap();
        assert_eq!(session(&notes), Some(id.clone()));
        assert!(is_of(&notes, &id));
        let read = record(&notes, &id, at(1), RecordState::Running);
        assert_eq!(read, written);
        notes.insert(ACTIVE.to_owned(), millis(at(30)));
        let read = record(&notes, &id, at(1), RecordState::Stored);
        assert_eq!((read.created, read.last_activity), (at(10), at(30)));
        assert_eq!(read.state, RecordState::Stored);
        notes.insert(ACTIVE.to_owned(), millis(at(2)));
        let read = record(&notes, &id, at(1), RecordState::Running);
        assert_eq!(read.last_activity, at(10), "never earlier");
    }

    #[test]
    fn an_object_without_a_record_has_one() {
        let id = SessionId::new("alice").unwrap();
        let broken = [
            (RECORD.to_owned(), "{".to_owned()),
            (ACTIVE.to_owned(), "-".to_owned()),
        ];
        for notes in [Notes::new(), broken.into()] {
            let read = record(&notes, &id, at(5), RecordState::Running);
            assert_eq!((read.id.as_str(), read.tenant), ("alice", None));
            assert_eq!((read.created, read.last_activity), (at(5), at(5)));
            assert_eq!(session(&notes), None);
        }
    }

    #[test]
    fn no_object_passes_for_another_session() {
        let (id, other) = (SessionId::new("a").unwrap(), SessionId::new("b").unwrap());
        let notes = of(&Record::new(&OpenRequest::new(other), at(1))).unwrap();
        assert!(!is_of(&notes, &id));
        let read = record(&notes, &id, at(1), RecordState::Running);
        assert_eq!(read.id, id);
    }
}
