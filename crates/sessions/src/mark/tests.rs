//! Tests of the marks of roots.

use super::*;
use crate::request::OpenRequest;

fn refused(done: Result<()>) -> bool {
    done.is_err_and(|error| error.kind() == ErrorKind::Config)
}

#[test]
fn the_first_engine_keeps_the_root() {
    for (own, other) in [(Kind::Docker, Kind::Local), (Kind::Local, Kind::Docker)] {
        let root = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            claim(root.path(), own).unwrap();
            check(root.path(), own).unwrap();
        }
        assert!(refused(check(root.path(), other)));
        assert!(refused(claim(root.path(), other)));
        check(root.path(), own).unwrap();
        // Only the mark is left of writing it.
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
        // As an engine that looked before there was a mark.
        write(root.path(), other).unwrap();
        assert_eq!(written(root.path()).unwrap(), Some(own));
    }
}

#[test]
fn roots_from_before_the_marks_are_recognised() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join(".state")).unwrap();
    assert!(refused(claim(root.path(), Kind::Local)));
    claim(root.path(), Kind::Docker).unwrap();

    let root = tempfile::tempdir().unwrap();
    let alice = root.path().join("alice");
    fs::create_dir_all(alice.join("workspace")).unwrap();
    // Files of either engine, or of another program.
    check(root.path(), Kind::Docker).unwrap();
    fs::write(alice.join("session.json"), "{}").unwrap();
    assert!(refused(check(root.path(), Kind::Docker)));
    // The record of another program, unless it is one of ours.
    fs::write(alice.join("other"), "").unwrap();
    check(root.path(), Kind::Docker).unwrap();
    let request = OpenRequest::new(SessionId::new("alice").unwrap());
    let record = Record::new(&request, std::time::SystemTime::now());
    let record = serde_json::to_vec(&record).unwrap();
    fs::write(alice.join("session.json"), record).unwrap();
    assert!(refused(claim(root.path(), Kind::Docker)));
    claim(root.path(), Kind::Local).unwrap();
}

#[test]
fn looking_creates_nothing() {
    let place = tempfile::tempdir().unwrap();
    let missing = place.path().join("missing");
    for kind in [Kind::Docker, Kind::Local] {
        check(place.path(), kind).unwrap();
        check(&missing, kind).unwrap();
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn an_engine_that_is_not_known_is_refused() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join(FILE), "pods\n").unwrap();
    for kind in [Kind::Docker, Kind::Local] {
        assert!(refused(check(root.path(), kind)));
        assert!(refused(claim(root.path(), kind)));
    }
}
