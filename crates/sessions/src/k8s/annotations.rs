//! The record of a session, in the annotations of an object.
//!
//! One annotation holds the record, another one the time of the last use, because only that
//! changes. The variables of commands are in none: they may be secrets.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backend_core::{Error, Result};

use crate::id::SessionId;
use crate::record::{Record, RecordState};
use crate::request::OpenRequest;

/// The id of the session.
const ID: &str = "sessions.agentbox.dev/id";
/// The record, as JSON.
const RECORD: &str = "sessions.agentbox.dev/record";
/// The time of the last use, in milliseconds since 1970.
pub(super) const ACTIVE: &str = "sessions.agentbox.dev/last-activity";
/// Whether a secret holds variables of commands.
pub(super) const ENV: &str = "sessions.agentbox.dev/env";
/// The volume claim of a pod.
pub(super) const VOLUME: &str = "sessions.agentbox.dev/volume";
/// The claim that created a pod: no two are equal.
pub(super) const CLAIM: &str = "sessions.agentbox.dev/claim";

pub(super) type Annotations = BTreeMap<String, String>;

/// Returns the annotations that make an object that of a session.
pub(super) fn of(record: &Record) -> Result<Annotations> {
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
pub(super) fn session(annotations: &Annotations) -> Option<SessionId> {
    SessionId::new(annotations.get(ID)?).ok()
}

/// Whether an object belongs to a session.
pub(super) fn is_of(annotations: &Annotations, id: &SessionId) -> bool {
    annotations
        .get(ID)
        .is_some_and(|found| found == id.as_str())
}

/// Reads a record. One that cannot be read is that of a session without options.
pub(super) fn record(
    annotations: &Annotations,
    id: &SessionId,
    created: SystemTime,
    state: RecordState,
) -> Record {
    let written = annotations.get(RECORD);
    let written = written.and_then(|json| serde_json::from_str::<Record>(json).ok());
    let mut record = written.unwrap_or_else(|| Record::new(&OpenRequest::new(id.clone()), created));
    record.id = id.clone();
    record.state = state;
    if let Some(active) = active(annotations) {
        record.last_activity = record.last_activity.max(active);
    }
    record
}

/// Returns the state that was written with the record.
pub(super) fn state(annotations: &Annotations) -> Option<RecordState> {
    let record: Record = serde_json::from_str(annotations.get(RECORD)?).ok()?;
    Some(record.state)
}

/// Returns the time of the last use.
pub(super) fn active(annotations: &Annotations) -> Option<SystemTime> {
    let millis = annotations.get(ACTIVE)?.parse().ok()?;
    UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}

/// Returns a time as it is written.
pub(super) fn millis(at: SystemTime) -> String {
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
        let mut annotations = of(&written).unwrap();
        assert_eq!(session(&annotations), Some(id.clone()));
        assert!(is_of(&annotations, &id));
        let read = record(&annotations, &id, at(1), RecordState::Running);
        assert_eq!(read, written);
        annotations.insert(ACTIVE.to_owned(), millis(at(30)));
        let read = record(&annotations, &id, at(1), RecordState::Stored);
        assert_eq!((read.created, read.last_activity), (at(10), at(30)));
        assert_eq!(read.state, RecordState::Stored);
        annotations.insert(ACTIVE.to_owned(), millis(at(2)));
        let read = record(&annotations, &id, at(1), RecordState::Running);
        assert_eq!(read.last_activity, at(10), "never earlier");
    }

    #[test]
    fn an_object_without_a_record_has_one() {
        let id = SessionId::new("alice").unwrap();
        let broken = [
            (RECORD.to_owned(), "{".to_owned()),
            (ACTIVE.to_owned(), "-".to_owned()),
        ];
        for annotations in [Annotations::new(), broken.into()] {
            let read = record(&annotations, &id, at(5), RecordState::Running);
            assert_eq!((read.id.as_str(), read.tenant), ("alice", None));
            assert_eq!((read.created, read.last_activity), (at(5), at(5)));
            assert_eq!(session(&annotations), None);
        }
    }

    #[test]
    fn no_object_passes_for_another_session() {
        let (id, other) = (SessionId::new("a").unwrap(), SessionId::new("b").unwrap());
        let annotations = of(&Record::new(&OpenRequest::new(other), at(1))).unwrap();
        assert!(!is_of(&annotations, &id));
        let read = record(&annotations, &id, at(1), RecordState::Running);
        assert_eq!(read.id, id);
    }
}
