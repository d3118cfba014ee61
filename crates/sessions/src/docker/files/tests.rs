//! Tests of the directories of sessions.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Barrier;

use super::*;

fn files() -> (tempfile::TempDir, Files) {
    let place = tempfile::tempdir().unwrap();
    let files = Files::new(&place.path().join("root")).unwrap();
    (place, files)
}

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

#[test]
fn a_claimed_directory_is_reached_by_both_paths() {
    let (_place, files) = files();
    let key = new_key();
    let spare = files.prepare_spare(&key).unwrap();
    fs::write(spare.join("a"), "1").unwrap();
    for _ in 0..2 {
        files.adopt(&key, &id("alice")).unwrap();
    }
    let here = files.prepare(&id("alice")).unwrap();
    for directory in [&here, &spare] {
        assert_eq!(fs::read(directory.join("a")).unwrap(), b"1");
    }
    assert_eq!(files.stored().unwrap().len(), 1, "the link is no session");
    assert_eq!(files.bytes_of(&id("alice")), 1);
    files.remove_spare(&key).unwrap();
    assert!(files.is_stored(&id("alice")), "only the link is removed");
}

#[test]
fn a_label_of_an_image_leads_to_no_other_session() {
    let (_place, files) = files();
    let bob = files.prepare(&id("bob")).unwrap();
    fs::write(bob.join("a"), "1").unwrap();
    files.prepare_spare(&new_key()).unwrap();
    for label in ["../bob", "..", "", "/"] {
        files.remove_spare(label).unwrap();
        files.adopt(label, &id("alice")).unwrap();
    }
    assert!(files.is_stored(&id("bob")));
    assert!(!files.is_prepared(&id("alice")));
}

#[cfg(unix)]
#[test]
fn other_users_of_the_host_reach_no_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_place, files) = files();
    files.prepare(&id("alice")).unwrap();
    let key = new_key();
    files.prepare_spare(&key).unwrap();
    for directory in [
        files.root.clone(),
        files.session(&id("alice")),
        files.spare(&key),
    ] {
        let mode = fs::metadata(&directory).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", directory.display());
    }
}

#[test]
fn an_interrupted_claim_is_completed() {
    let (_place, files) = files();
    let key = new_key();
    let spare = files.prepare_spare(&key).unwrap();
    // As if the process was killed between the two steps.
    fs::rename(files.spare(&key), files.session(&id("bob"))).unwrap();
    files.adopt(&key, &id("bob")).unwrap();
    assert!(spare.is_dir());
}

#[test]
fn processes_that_adopt_one_directory_at_once_keep_it() {
    let (_place, files) = files();
    for number in 0..200 {
        let (key, id) = (new_key(), id(&format!("user-{number}")));
        let spare = files.prepare_spare(&key).unwrap();
        let before = fs::metadata(&spare).unwrap().ino();
        let begin = Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    begin.wait();
                    files.adopt(&key, &id).unwrap();
                });
            }
        });
        assert_eq!(fs::metadata(&spare).unwrap().ino(), before);
    }
}

#[test]
fn stored_files_are_never_replaced() {
    let (_place, files) = files();
    let stored = files.prepare(&id("alice")).unwrap();
    fs::write(stored.join("a"), "1").unwrap();
    let key = new_key();
    files.prepare_spare(&key).unwrap();
    assert!(files.adopt(&key, &id("alice")).is_err());
    assert_eq!(fs::read(stored.join("a")).unwrap(), b"1");
}

#[test]
fn an_empty_directory_is_no_session_and_makes_way() {
    let (_place, files) = files();
    files.prepare(&id("alice")).unwrap();
    assert!(files.is_prepared(&id("alice")));
    assert!(files.stored().unwrap().is_empty());
    let key = new_key();
    let spare = files.prepare_spare(&key).unwrap();
    fs::write(spare.join("a"), "1").unwrap();
    files.set_tenant(&id("alice"), "acme").unwrap();
    files.adopt(&key, &id("alice")).unwrap();
    assert_eq!(files.stored().unwrap().len(), 1);
    assert_eq!(files.tenant(&id("alice")).unwrap(), None);
    assert_eq!(files.trash(&id("bob"), false).unwrap(), None);
}

#[test]
fn a_deleted_directory_can_be_restored_until_it_is_gone() {
    let (_place, files) = files();
    let alice = files.prepare(&id("alice")).unwrap();
    fs::write(alice.join("a"), "1").unwrap();
    let trashed = files.trash(&id("alice"), false).unwrap().unwrap();
    assert!(!files.is_stored(&id("alice")));
    files.restore(&trashed, &id("alice")).unwrap();
    assert!(files.is_stored(&id("alice")));
    let trashed = files.trash(&id("alice"), false).unwrap().unwrap();
    files.delete(&trashed).unwrap();
    files.delete(&trashed).unwrap();
    assert!(!trashed.exists());
}

#[test]
fn only_directories_of_sessions_are_deleted() {
    let (_place, files) = files();
    let root = files.root.clone();
    fs::create_dir(root.join("src")).unwrap();
    fs::write(root.join("src/main.rs"), "kept").unwrap();
    // Another root, with a session of its own.
    fs::create_dir_all(root.join("server/alice/workspace")).unwrap();
    fs::write(root.join("server/alice/workspace/a"), "kept").unwrap();
    // Another program has such a directory too.
    fs::create_dir_all(root.join("project/workspace")).unwrap();
    fs::write(root.join("project/workspace/a"), "kept").unwrap();
    fs::write(root.join("project/notes"), "kept").unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    fs::write(root.join("file"), "kept").unwrap();
    fs::create_dir(root.join("tenants")).unwrap();
    fs::write(root.join("tenants/tenant"), "kept").unwrap();
    fs::write(root.join("tenants/other"), "kept").unwrap();
    // A name that is no text is an entry too.
    fs::create_dir(root.join("strange")).unwrap();
    fs::write(root.join("strange").join(OsStr::from_bytes(b"\xff")), "").unwrap();
    for name in [
        "src", "server", "project", "empty", "file", "tenants", "strange", "missing",
    ] {
        assert_eq!(files.trash(&id(name), false).unwrap(), None, "{name}");
    }
    // Nor do they become sessions, whose purge would delete them.
    assert!(files.stored().unwrap().is_empty());
    for name in ["src", "server", "project", "tenants", "strange"] {
        let error = files.check_free(&id(name)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{name}");
    }
    for name in ["empty", "missing"] {
        files.check_free(&id(name)).unwrap();
    }
    for name in [
        "src/main.rs",
        "server/alice/workspace/a",
        "project/workspace/a",
        "tenants/tenant",
    ] {
        assert_eq!(fs::read(root.join(name)).unwrap(), b"kept", "{name}");
    }
    // An interrupted claim leaves only the tenant.
    fs::create_dir(root.join("bob")).unwrap();
    files.set_tenant(&id("bob"), "acme").unwrap();
    assert!(files.trash(&id("bob"), false).unwrap().is_some());
    assert!(!root.join("bob").exists());
    // While it has a container, a session's files are its own, whatever lies beside them.
    assert!(files.trash(&id("project"), true).unwrap().is_some());
}

#[test]
fn only_records_of_containers_are_swept() {
    let (_place, files) = files();
    let record = files.state().join("a".repeat(64));
    let other = files.state().join("other");
    for directory in [&record, &other] {
        fs::create_dir_all(directory).unwrap();
    }
    files
        .sweep(SystemTime::now() + ORPHAN_AGE * 2, |_| false)
        .unwrap();
    assert!(!record.exists());
    assert!(other.exists());
}

#[test]
fn the_quota_says_how_much_is_used() {
    let (_place, mut files) = files();
    let alice = files.prepare(&id("alice")).unwrap();
    fs::write(alice.join("a"), [0; 100]).unwrap();
    files.check_quota().unwrap();
    files.quota = Some(101);
    files.check_quota().unwrap();
    files.quota = Some(100);
    let error = files.check_quota().unwrap_err();
    assert_eq!(QuotaError::of(&error), Some(&QuotaError::new(100, 100)));
}

#[test]
fn only_old_remains_without_a_container_are_swept() {
    let (_place, files) = files();
    let (used, unused) = (new_key(), new_key());
    for key in [&used, &unused] {
        files.prepare_spare(key).unwrap();
    }
    let now = SystemTime::now();
    files.sweep(now, |key| key == used).unwrap();
    assert!(files.spare(&unused).exists(), "it may be about to be used");
    let later = now + ORPHAN_AGE * 2;
    files.sweep(later, |key| key == used).unwrap();
    assert!(files.spare(&used).exists());
    assert!(!files.spare(&unused).exists());
}

#[cfg(unix)]
#[test]
fn ids_that_lead_to_one_directory_are_refused() {
    let (_place, files) = files();
    files.prepare(&id("alice")).unwrap();
    // As on a file system that ignores case.
    link(Path::new("alice"), &files.session(&id("Alice"))).unwrap();
    let error = files.check_name(&id("Alice")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    for free in ["alice", "bob"] {
        files.check_name(&id(free)).unwrap();
    }
}
