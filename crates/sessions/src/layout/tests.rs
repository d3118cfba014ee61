//! Tests of what is taken for a session's directory.

use super::*;

/// Makes a directory with these entries; those that end with a slash are directories.
fn directory(entries: &[&str]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for entry in entries {
        match entry.strip_suffix('/') {
            Some(name) => fs::create_dir(directory.path().join(name)).unwrap(),
            None => fs::write(directory.path().join(entry), "").unwrap(),
        }
    }
    directory
}

#[test]
fn a_workspace_alone_makes_no_session_of_another_directory() {
    for (entries, expected) in [
        (&["workspace/"][..], true),
        (&["workspace/", "tenant"], true),
        // What an older version, a command or a person has put beside the files.
        (&["workspace/", "tenant", "notes"], true),
        (&["workspace/", ".0123456789abcdef"], true),
        (&["tenant"], true),
        (&["workspace/", "Cargo.toml"], false),
        (&["workspace/", "src/"], false),
        (&["workspace/", ".engine"], false),
        (&["workspace/", ".state/"], false),
        (&["workspace/", ".git/"], false),
        (&["workspace"], false),
        (&["tenant", "other"], false),
        (&[], false),
    ] {
        let directory = directory(entries);
        assert_eq!(is_session(directory.path()), expected, "{entries:?}");
    }
}

#[test]
fn a_key_is_no_path() {
    assert!(is_key("0123456789abcdef"));
    for bad in ["", "..", "../0123456789abc", "0123456789abcde/"] {
        assert!(!is_key(bad), "{bad}");
    }
}
