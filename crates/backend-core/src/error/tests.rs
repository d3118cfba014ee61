//! Tests of errors: context, texts, conversions.

use super::*;

#[test]
fn is_one_pointer_wide() {
    assert_eq!(size_of::<Error>(), size_of::<usize>());
}

#[test]
fn context_is_set_once_by_the_first_that_knows_it() {
    let path = VPath::parse("/a").unwrap();
    let error = Error::not_found()
        .at(Operation::Read, &path)
        .on("inner")
        .at(Operation::Grep, &VPath::root())
        .during(Operation::Glob)
        .on("outer");
    assert_eq!(error.operation(), Some(Operation::Read));
    assert_eq!(error.path(), Some(&path));
    assert_eq!(error.backend(), Some("inner"));
    assert!(
        error
            .to_string()
            .starts_with("inner: read '/a': no such file")
    );
}

#[test]
fn a_part_of_an_operation_takes_its_name() {
    let path = VPath::parse("/a").unwrap();
    let error = Error::not_found().at(Operation::Read, &VPath::root());
    let error = error.as_part_of(Operation::Edit, &path);
    assert!(error.to_string().starts_with("edit '/a': "), "{error}");
}

#[test]
fn a_relayed_error_speaks_for_the_wrapper() {
    let inner = Error::unavailable("gone").at(Operation::Read, &VPath::root());
    let path = VPath::parse("/a").unwrap();
    let error = inner.on("inner").about("part").relayed("outer", &path);
    assert_eq!(error.to_string(), "outer: read '/a': part: gone");
}

#[test]
fn display_leaves_the_source_to_the_chain() {
    let io = std::io::Error::other("disk on fire");
    let error = Error::internal("cannot write").with_source(io);
    assert_eq!(error.to_string(), "cannot write");
    assert_eq!(error.chain().to_string(), "cannot write: disk on fire");
    assert!(format!("{error:?}").contains("disk on fire"));
    assert!(error.source().is_some());
    let message = format!("a.toml: {error}");
    let again = Error::new(ErrorKind::Config, message).with_source(error);
    assert_eq!(
        again.chain().to_string(),
        "a.toml: cannot write: disk on fire"
    );
}

#[test]
fn paths_in_messages_are_escaped() {
    let path = VPath::parse("/a\u{1b}[2J\nb").unwrap();
    let mut error = Error::conflict().at(Operation::Edit, &path);
    assert!(!error.to_string().contains(['\u{1b}', '\n']));
    error.0.operation = None;
    assert!(error.to_string().starts_with("'/a"));
}

#[test]
fn only_passing_troubles_are_retryable() {
    assert!(Error::unavailable("gone").is_retryable());
    assert!(!Error::conflict().is_retryable());
    assert!(!Error::unsupported("no commands").is_retryable());
    assert!(Error::not_found().is_not_found());
}

#[test]
fn every_operation_has_a_name() {
    use Operation::*;
    for operation in [
        Resolve, Stat, Ls, Read, ReadText, Write, Edit, CreateDir, Delete, Rename, Copy, Glob,
        Grep, Execute, Stream, Shell, Start, Stop,
    ] {
        let error = Error::too_large("big").during(operation);
        assert_eq!(error.to_string(), format!("{operation}: big"));
    }
}

#[test]
fn io_errors_keep_kind_and_source() {
    let io = std::io::Error::from(Error::not_found());
    assert_eq!(io.kind(), std::io::ErrorKind::NotFound);
    let own = io.get_ref().and_then(|own| own.downcast_ref::<Error>());
    assert!(own.is_some_and(Error::is_not_found));
    let io = std::io::Error::from(Error::conflict());
    assert_eq!(io.kind(), std::io::ErrorKind::Other);
}

#[test]
fn edits_that_fail_say_why_as_data() {
    use crate::text::{Edit, apply};
    let error = |text, old: &str| Error::from(apply(text, &[Edit::new(old, "c")]).unwrap_err());
    let twice = error("a a\n", "a");
    assert_eq!(twice.kind(), ErrorKind::MultipleMatches);
    assert!(matches!(
        twice.edit_error(),
        Some(EditError::MultipleMatches { index: 0, of: 1, count: 2, lines }) if *lines == [1]
    ));
    let missing = error("A\n", "b");
    assert_eq!(missing.kind(), ErrorKind::NoMatch);
    assert!(matches!(
        missing.edit_error(),
        Some(EditError::NoMatch { .. })
    ));
    assert_eq!(error("c", "c").kind(), ErrorKind::InvalidInput);
    assert_eq!(error("c", "").kind(), ErrorKind::InvalidInput);
    assert!(Error::conflict().edit_error().is_none());
}

#[test]
fn lower_errors_map_to_kinds() {
    let path: Error = VPath::parse("~/x").unwrap_err().into();
    assert_eq!(path.kind(), ErrorKind::InvalidPath);
    let window: Error = WindowError::NotText.into();
    assert_eq!(window.kind(), ErrorKind::NotText);
    let window: Error = WindowError::ZeroLimit.into();
    assert_eq!(window.kind(), ErrorKind::InvalidInput);
}
