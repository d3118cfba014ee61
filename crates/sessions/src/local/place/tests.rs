//! Tests of the locks of a session.

use super::*;

#[test]
fn a_copy_of_the_lock_in_a_program_that_starts_keeps_no_session() {
    let root = tempfile::tempdir().unwrap();
    let id = SessionId::new("alice").unwrap();
    let place = Place::new(root.path(), &id);
    let request = OpenRequest::new(id);
    let claim = || place.claim(&request, SystemTime::now(), || Ok(())).unwrap();
    let used = claim().unwrap();
    let _copy = used.record.try_clone().unwrap();
    assert!(claim().is_none());
    drop(used);
    assert!(claim().is_some());
}

#[test]
fn a_request_to_end_the_session_is_for_those_that_used_it_before() {
    let root = tempfile::tempdir().unwrap();
    let id = SessionId::new("alice").unwrap();
    let place = Place::new(root.path(), &id);
    let request = OpenRequest::new(id);
    let claim = || place.claim(&request, SystemTime::now(), || Ok(())).unwrap();
    assert!(!place.request_release().unwrap(), "there is no session");
    let mut used = claim().unwrap();
    assert_eq!(place.release_requested(), None);
    assert!(place.request_release().unwrap());
    let asked = place.release_requested().unwrap();
    assert!(used.take_request(asked));
    assert!(!used.take_request(asked), "it is taken once");
    let mut later = place.enter().unwrap().unwrap();
    assert!(!later.take_request(asked), "it joined after the request");
    drop((used, later));
    assert!(!place.request_release().unwrap(), "it is not in use");
    drop(claim());
    assert_eq!(place.release_requested(), None, "it is a new life");
}
