//! The annotations of the objects that belong to sessions.

use crate::record::{Record, RecordState};

pub(super) use crate::notes::{
    ACTIVE, ENV, Notes as Annotations, RECORD, active, is_of, millis, of, record, session,
};

/// The volume claim of a pod.
pub(super) const VOLUME: &str = "sessions.agentbox.dev/volume";
/// The claim that created a pod: no two are equal.
pub(super) const CLAIM: &str = "sessions.agentbox.dev/claim";

/// Returns the state that was written with the record.
pub(super) fn state(annotations: &Annotations) -> Option<RecordState> {
    let record: Record = serde_json::from_str(annotations.get(RECORD)?).ok()?;
    Some(record.state)
}
