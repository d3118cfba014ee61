//! Tests of narrower scopes made with `derive`.
use backend_core::ErrorKind;
use backend_mounts::{DERIVE_DEPTH, DERIVE_ENTRIES, Derive, DeriveError, Mode, Scope};
use backend_testkit::path;
use permissions::{Action, Kind, Layer, Op, Policy, Reason, Refusal};

use crate::support::scope::{mount, rw, scope, strings, texts};

const BOTH: (bool, bool) = (true, true);
const READ: (bool, bool) = (true, false);
const WRITE: (bool, bool) = (false, true);
const NONE: (bool, bool) = (false, false);

fn base() -> Scope {
    scope([rw("/src"), mount("/ro")])
}

fn allowed(scope: &Scope, text: &str) -> (bool, bool) {
    let path = path(text);
    (scope.can_read(&path), scope.can_write(&path))
}

fn judge(scope: &Scope, op: Op, text: &str, bytes: Option<u64>) -> (Layer, Action, Reason) {
    let verdict = scope.judge(op, &path(text), Kind::File, bytes);
    let vote = verdict.decisive().clone();
    (vote.layer, vote.action, vote.reason)
}

#[test]
fn the_arguments_combine_as_documented() {
    let new = Derive::new;
    let (read, write) = (|| new().read(["/src/a"]), || new().write(["/src/a"]));
    let (no_read, no_write) = (|| new().read([""; 0]), || new().write([""; 0]));
    let apart = read().write(["/src/b"]);
    for (name, derive, expected) in [
        ("write alone", write(), [BOTH, NONE, NONE]),
        ("write, inherit", write().inherit(), [BOTH, NONE, NONE]),
        ("read alone", read(), [READ, NONE, NONE]),
        ("read, inherit", read().inherit(), [READ, NONE, NONE]),
        ("nothing", new(), [NONE; 3]),
        ("inherit", new().inherit(), [BOTH, BOTH, READ]),
        ("apart", apart, [READ, WRITE, NONE]),
        ("readonly", write().readonly(), [READ, NONE, NONE]),
        ("inherit, readonly", new().inherit().readonly(), [READ; 3]),
        ("empty write", no_write().inherit(), [NONE; 3]),
        ("empty read", no_read().inherit(), [NONE; 3]),
        ("no read", no_read().write(["/src/a"]), [WRITE, NONE, NONE]),
    ] {
        let child = base().derive(derive).unwrap();
        let found = ["/src/a/f", "/src/b/f", "/ro/f"].map(|text| allowed(&child, text));
        assert_eq!(found, expected, "{name}");
    }
    let failed = base().derive(Derive::new().write(["/ro/x"]).readonly());
    assert!(
        matches!(failed, Err(DeriveError::Refused(Refusal::ReadOnly { .. }))),
        "write entries are checked though they are taken away: {failed:?}"
    );
    let whole = scope([rw("/")]).derive(Derive::new().write([""]));
    let whole = whole.unwrap();
    let roots = texts(whole.readable_roots());
    assert_eq!(roots, ["/"], "nothing means the root");
}

#[test]
fn an_entry_that_is_no_plain_path_is_refused() {
    let fail = |entry: &str| base().derive(Derive::new().read([entry])).unwrap_err();
    for entry in ["/src/../x", "..", "/src/..", "\\src\\..\\a"] {
        let error = fail(entry);
        assert!(matches!(error, DeriveError::Parent(_)), "{entry}: {error}");
    }
    assert!(base().derive(Derive::new().read(["/src/..a"])).is_ok());
    for entry in ["~", "C:/x", "a\0"] {
        let error = fail(entry);
        let is_invalid = matches!(error, DeriveError::InvalidPath(_));
        assert!(is_invalid, "{entry:?}: {error}");
        let kind = backend_core::Error::from(error).kind();
        assert_eq!(kind, ErrorKind::InvalidPath);
    }
}

#[test]
fn entries_are_checked_against_the_scope_that_derives() {
    let fail = |scope: &Scope, derive: Derive| scope.derive(derive).unwrap_err();
    let outside =
        |path: &str, roots: &[&str]| DeriveError::Refused(Refusal::outside(path, strings(roots)));
    let read_only =
        |path: &str, roots: &[&str]| DeriveError::Refused(Refusal::read_only(path, strings(roots)));
    let all = ["/src", "/ro"];
    let error = fail(&base(), Derive::new().read(["x//y/"]));
    assert_eq!(error, outside("/x/y", &all));
    let error = fail(&base(), Derive::new().read(["/"]));
    assert_eq!(error, outside("/", &all), "no mount stands there");
    let error = fail(&base(), Derive::new().write(["/ro"]));
    assert_eq!(error, read_only("/ro", &["/src"]));

    let child = Derive::new().read(["/src/a/b", "/ro"]);
    let child = base().derive(child).unwrap();
    let error = fail(&child, Derive::new().read(["/src/a"]));
    let narrow = outside("/src/a", &["/src/a/b", "/ro"]);
    assert_eq!(error, narrow, "no widening");
    let error = fail(&child, Derive::new().read(["/ro"]).write(["/src/a/b"]));
    assert_eq!(error, read_only("/src/a/b", &[]), "no regaining");
    assert!(child.derive(Derive::new().read(["/src/a/b/c"])).is_ok());

    let nothing = base().derive(Derive::new()).unwrap();
    for entry in ["/src", "/ro", "/x"] {
        let error = fail(&nothing, Derive::new().read([entry]));
        assert_eq!(error, outside(entry, &[]), "nothing to give");
    }
    let write_only = Derive::new().read(["/ro"]).write(["/src"]);
    let write_only = base().derive(write_only).unwrap();
    let error = fail(&write_only, Derive::new().write(["/src/a"]));
    assert_eq!(error, outside("/src/a", &["/ro"]), "write implies read");
}

#[test]
fn an_entry_binds_to_its_mount() {
    let scope = scope([rw("/"), rw("/data"), mount("/data/special")]);
    let child = |derive: Derive| scope.derive(derive).unwrap();
    let data = child(Derive::new().write(["/data"]));
    assert_eq!(allowed(&data, "/data/x"), BOTH);
    assert_eq!(allowed(&data, "/data/special/x"), NONE);
    assert_eq!(allowed(&data, "/database"), NONE);
    let root = child(Derive::new().read(["/"]));
    assert_eq!(allowed(&root, "/x"), READ);
    assert_eq!(allowed(&root, "/data/x"), NONE);
    let both = child(Derive::new().read(["/data", "/data/special/deep"]));
    assert_eq!(allowed(&both, "/data/special/deep/x"), READ);
    assert_eq!(allowed(&both, "/data/special/x"), NONE);
    let spanning = child(Derive::new().write(["/data"]).span_nested());
    let special = allowed(&spanning, "/data/special/x");
    assert_eq!(special, READ, "its mode stays");
    let regained = Derive::new().read(["/data"]).span_nested();
    let regained = data.derive(regained).unwrap();
    assert_eq!(allowed(&regained, "/data/special/x"), NONE);
}

#[test]
fn only_what_is_allowed_is_listable() {
    let child = Derive::new().read(["/data/allowed"]);
    let child = scope([rw("/data")]).derive(child).unwrap();
    for op in [Op::Ls, Op::Glob, Op::Grep] {
        let refusal = Refusal::outside("/data", strings(&["/data/allowed"]));
        let why = Reason::Refused(refusal.into());
        let found = judge(&child, op, "/data", None);
        assert_eq!(found, (Layer::Scope, Action::Deny, why), "{op}");
        assert_eq!(judge(&child, op, "/data/allowed", None).1, Action::Allow);
    }
}

#[test]
fn a_write_that_the_scope_took_away_is_the_scopes_refusal() {
    let child = base().derive(Derive::new().read(["/src"])).unwrap();
    let (layer, action, _) = judge(&child, Op::Write, "/src/a", None);
    assert_eq!((layer, action), (Layer::Scope, Action::Deny));
    let (layer, action, _) = judge(&child, Op::Write, "/ro/a", None);
    assert_eq!((layer, action), (Layer::Mount, Action::Deny));
}

#[test]
fn roots_are_those_of_the_scope_in_use() {
    let scope = scope([rw("/a"), rw("/b"), mount("/secret")]);
    let child = Derive::new().read(["/b", "/a/x/", "b/", "/a/./x"]);
    let child = scope.derive(child.write(["/a/x"])).unwrap();
    let roots = texts(child.readable_roots());
    assert_eq!(roots, ["/b", "/a/x"], "as given, each once");
    assert_eq!(texts(child.writable_roots()), ["/a/x"]);
    let heir = child.derive(Derive::new().inherit()).unwrap();
    assert_eq!(texts(heir.readable_roots()), ["/b", "/a/x"]);
    assert_eq!(texts(heir.writable_roots()), ["/a/x"]);
    let quiet = heir.derive(Derive::new().inherit().readonly()).unwrap();
    assert_eq!(texts(quiet.readable_roots()), ["/b", "/a/x"]);
    assert!(quiet.writable_roots().is_empty());
    for scope in [&child, &heir, &quiet] {
        let typed = scope.parse("~").unwrap_err();
        let nowhere = scope.resolve(&path("/nowhere")).map(|_| ()).unwrap_err();
        let mut shown = vec![typed.to_string(), nowhere.to_string()];
        shown.extend([typed.filesystem_text(), nowhere.filesystem_text()]);
        for (op, at) in [(Op::Read, "/a/y"), (Op::Write, "/b/y"), (Op::Ls, "/a")] {
            let verdict = scope.judge(op, &path(at), Kind::File, None);
            assert_eq!(verdict.action(), Action::Deny);
            shown.push(verdict.to_string());
        }
        for text in shown {
            let is_told = text.contains("/secret") || text.contains("/host");
            assert!(!is_told, "{text}");
        }
    }
}

#[test]
fn a_child_keeps_the_mounts_own_limits() {
    let scope = scope([mount("/a")
        .mode(Mode::Rw)
        .suffixes([".md"])
        .max_file_bytes(3)]);
    let child = scope.derive(Derive::new().write(["/a/x"])).unwrap();
    let action = |file: &str, bytes| judge(&child, Op::Write, file, bytes).1;
    assert_eq!(action("/a/x/f.md", Some(3)), Action::Ask);
    assert_eq!(action("/a/x/f.md", Some(4)), Action::Deny);
    assert_eq!(action("/a/x/f.bin", None), Action::Deny);
}

#[test]
fn an_entry_can_turn_out_to_be_a_file() {
    let derive = Derive::new().read(["/b/", "a"]).write(["/b"]);
    assert_eq!(derive.entries().unwrap(), [path("/a"), path("/b")]);
    assert!(Derive::new().read(["/a/.."]).entries().is_err());
    let error = DeriveError::file(path("/src/lib.rs"));
    let text = "the entry '/src/lib.rs' is a file; use its directory '/src'";
    assert_eq!(error.to_string(), text);
    let error = backend_core::Error::from(error);
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let refused = base().derive(Derive::new().read(["/x"])).unwrap_err();
    let error = backend_core::Error::from(refused);
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(Refusal::of(&error).is_some());
}

#[test]
fn deriving_is_bounded() {
    let many = vec!["/src"; DERIVE_ENTRIES + 1];
    let error = base().derive(Derive::new().read(many)).unwrap_err();
    assert_eq!(error, DeriveError::TooMany(DERIVE_ENTRIES + 1));
    let mut scope = base();
    for _ in 0..DERIVE_DEPTH {
        scope = scope.derive(Derive::new().inherit()).unwrap();
    }
    let error = scope.derive(Derive::new().inherit()).unwrap_err();
    assert_eq!(error, DeriveError::TooDeep);
}

#[test]
fn what_is_derived_can_be_written_down() {
    let derive: Derive = toml::from_str("read = ['/a']\nspan_nested = true").unwrap();
    assert_eq!(derive, Derive::new().read(["/a"]).span_nested());
    assert!(toml::from_str::<Derive>("raed = ['/a']").is_err());
}

#[test]
fn the_id_tells_configurations_and_chains_apart() {
    let one = scope([rw("/a"), mount("/bb")]);
    let same = scope([mount("/bb"), rw("/a")]);
    assert_eq!(one.id(), same.id(), "the order does not matter");
    assert_eq!(one.id(), one.clone().id());
    let child = |derive| one.derive(derive).unwrap();
    let mut moved = rw("/a");
    moved.host_path = "/host/other".into();
    let others = [
        scope([rw("/a")]),
        scope([mount("/a"), mount("/bb")]),
        scope([moved, mount("/bb")]),
        scope([rw("/a").suffixes([""; 0]), mount("/bb")]),
        scope([rw("/a").max_file_bytes(0), mount("/bb")]),
        scope([rw("/a").write_approval(true), mount("/bb")]),
        scope([rw("/a").read_approval(true), mount("/bb")]),
        child(Derive::new()),
        child(Derive::new().inherit()),
        child(Derive::new().read(["/a"])),
        child(Derive::new().write(["/a"])),
        child(Derive::new().read(["/a/b"])),
    ];
    let mut ids: Vec<_> = others.iter().map(|scope| scope.id().to_string()).collect();
    ids.push(one.id().to_string());
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), others.len() + 1);
}

/// With two, a derived scope would replace both and narrow only one of them.
#[test]
fn a_policy_has_one_scope() {
    let (first, second) = (base(), scope([mount("/ro")]));
    let policy = Policy::builder().layer(first).layer(second.clone()).build();
    let kept = policy.layer::<Scope>().unwrap();
    assert_eq!(kept.id(), second.id());
    let alone = Policy::builder().layer(second.clone()).build();
    assert_eq!(policy.id(), alone.id());

    let child = second.derive(Derive::new().read(["/ro/a"])).unwrap();
    let policy = policy.with_layer(child);
    let judge = |op, text: &str| policy.judge(op, &path(text), Kind::File, None).action();
    assert_eq!(judge(Op::Read, "/ro/a/x"), Action::Allow);
    assert_eq!(judge(Op::Read, "/ro/b"), Action::Deny);
    assert_eq!(judge(Op::Write, "/src/x"), Action::Deny);
}
