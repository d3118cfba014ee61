//! Tests of decisions by mounts about paths and accesses.
use std::path::Path;

use backend_core::ErrorKind;
use backend_mounts::{Derive, Mode, Scope};
use backend_testkit::path;
use permissions::{Action, Kind, Layer, Op, PathLayer as _, Reason, Refusal};

use crate::support::scope::{mount, rw, scope, strings, texts};

fn judge(scope: &Scope, op: Op, text: &str) -> Action {
    scope.judge(op, &path(text), Kind::File, None).action()
}

/// Returns the layer and the refusal of a denial.
fn denial(scope: &Scope, op: Op, text: &str, bytes: Option<u64>) -> (Layer, Refusal) {
    let verdict = scope.judge(op, &path(text), Kind::File, bytes);
    assert_eq!(verdict.action(), Action::Deny, "{op} {text}");
    match &verdict.decisive().reason {
        Reason::Refused(refusal) => (verdict.decisive().layer, Refusal::clone(refusal)),
        why => panic!("{why:?}"),
    }
}

#[test]
fn a_path_is_folded_before_its_mount_is_chosen() {
    let scope = scope([mount("/data"), mount("/data/special")]);
    let place = |typed: &str| {
        let path = scope.parse(typed)?;
        let place = scope.resolve(&path)?;
        let point = place.mount.mount_point.as_str().to_owned();
        Ok((point, place.relative.to_owned()))
    };
    for (typed, point, relative) in [
        ("/data/../data/f", "/data", "f"),
        ("/data/special/../f", "/data", "f"),
        ("/data/x/../special/shadow", "/data/special", "shadow"),
        ("/data/./special/shadow", "/data/special", "shadow"),
        ("./data/f", "/data", "f"),
        ("/./data/f", "/data", "f"),
        ("data\\special\\f", "/data/special", "f"),
        ("/data/f.txt/", "/data", "f.txt"),
        ("/data/f.txt/..", "/data", ""),
        ("/data/special", "/data/special", ""),
        ("/data/specials", "/data", "specials"),
    ] {
        let expected = (point.to_owned(), relative.to_owned());
        assert_eq!(place(typed), Ok::<_, Refusal>(expected), "{typed}");
    }
    let roots = strings(&["/data/special", "/data"]);
    for typed in "/data/.. /data/../special/f /datafoo /DATA/x / /host/_data/f".split(' ') {
        let folded = scope.parse(typed).unwrap();
        let outside = Refusal::outside(folded.as_str(), roots.clone());
        assert_eq!(place(typed), Err(outside), "{typed}");
    }
    for typed in ["~/x", "C:\\x", "a\0", "..", "/data/../../x"] {
        let refusal = place(typed).unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::InvalidPath, "{typed:?}");
        let shown = refusal.filesystem_text();
        let expected = format!(
            "Cannot access '{typed}': path is outside sandbox.\nReadable paths: /data/special, /data"
        );
        assert_eq!(shown, expected, "as typed");
    }
    let long = scope.parse(&"../".repeat(1_000_000)).unwrap_err();
    assert!(long.filesystem_text().len() < 5_000);
}

#[test]
fn host_paths_are_data() {
    let scope = scope([rw("/data")]);
    let (file, root) = (path("/data/a/b"), path("/data"));
    let place = scope.resolve(&file).unwrap();
    assert_eq!(place.host_path(), Path::new("/host/_data/a/b"));
    let place = scope.resolve_write(&root).unwrap();
    assert_eq!(place.host_path(), Path::new("/host/_data"));
    assert_eq!(scope.mount_root(&root).unwrap(), Path::new("/host/_data"));
    let refused = scope.mount_root(&file);
    assert!(matches!(refused, Err(Refusal::Outside { .. })));
    let nothing = scope.derive(Derive::new()).unwrap();
    assert!(
        nothing.mount_root(&root).is_ok(),
        "whatever the scope has left"
    );
}

#[test]
fn a_mount_has_one_spelling() {
    let scope = scope([rw("/data")]);
    for typed in ["data:f", "data:/f", "/host/_data/f"] {
        let path = scope.parse(typed).unwrap();
        assert!(!scope.can_read(&path) && !scope.can_write(&path), "{typed}");
    }
    assert!(scope.can_read(&scope.parse("data/f").unwrap()));
}

#[test]
fn suffixes_differ_in_case_as_ascii_does() {
    let scope = scope([rw("/md").suffixes([".md", ".É"])]);
    for (name, allowed) in [("a.MD", true), ("a.É", true), ("a.é", false)] {
        let path = path(&format!("/md/{name}"));
        assert_eq!(scope.check_suffix(&path).is_ok(), allowed, "{name}");
    }
}

#[test]
fn queries_look_at_mode_scope_and_flags_alone() {
    let asking = mount("/ask").mode(Mode::Rw).read_approval(true);
    let filtered = rw("/md").suffixes([".md"]).max_file_bytes(1);
    let scope = scope([mount("/ro"), rw("/rw"), asking, filtered]);
    for (text, read, write, ask_read, ask_write) in [
        ("/ro/a", true, false, false, false),
        ("/rw/a", true, true, false, false),
        ("/ask/a", true, true, true, true),
        ("/md/a.bin", true, true, false, false),
        ("/none", false, false, false, false),
    ] {
        let path = path(text);
        assert_eq!(scope.can_read(&path), read, "{text}");
        assert_eq!(scope.can_write(&path), write, "{text}");
        assert_eq!(scope.needs_read_approval(&path), ask_read, "{text}");
        assert_eq!(scope.needs_write_approval(&path), ask_write, "{text}");
    }
    assert_eq!(texts(scope.readable_roots()), ["/ask", "/ro", "/rw", "/md"]);
    assert_eq!(texts(scope.writable_roots()), ["/ask", "/rw", "/md"]);
    assert_eq!(scope.max_file_bytes(&path("/md/a")), Some(1));
    assert_eq!(scope.max_file_bytes(&path("/rw/a")), None);
    assert_eq!(scope.max_file_bytes(&path("/none")), None);
    let child = scope.derive(Derive::new().read(["/ask"])).unwrap();
    assert!(child.needs_read_approval(&path("/ask/a")));
    assert!(
        !child.needs_write_approval(&path("/ask/a")),
        "it cannot be written"
    );
}

#[test]
fn a_write_only_place_does_not_resolve() {
    let scope = scope([rw("/in"), rw("/out")]);
    let child = Derive::new().read(["/in"]).write(["/out"]);
    let child = scope.derive(child).unwrap();
    let file = path("/out/a");
    assert!(child.can_write(&file) && child.resolve_write(&file).is_ok());
    assert!(!child.can_read(&file) && child.resolve(&file).is_err());
    let (layer, refusal) = denial(&child, Op::Read, "/out/a", None);
    let expected = Refusal::outside("/out/a", strings(&["/in"]));
    assert_eq!((layer, refusal), (Layer::Scope, expected));
}

#[test]
fn suffix_and_size_are_checked_where_a_mount_is() {
    let scope = scope([rw("/md").suffixes([".md"]).max_file_bytes(10), rw("/any")]);
    assert!(scope.check_suffix(&path("/md/a.MD")).is_ok());
    assert!(scope.check_suffix(&path("/any/a.bin")).is_ok());
    let refused = scope.check_suffix(&path("/md/a.BIN"));
    let expected = Refusal::suffix("/md/a.BIN", ".bin", strings(&[".md"]));
    assert_eq!(refused, Err(expected), "the suffix in lower case");
    let allowed = scope.check_size(&path("/md/a.md"), 10);
    assert!(allowed.is_ok(), "equal is allowed");
    let refused = scope.check_size(&path("/md/a.md"), 11);
    assert_eq!(refused, Err(Refusal::too_large("/md/a.md", 11, 10)));
    assert!(scope.check_size(&path("/any/a"), u64::MAX).is_ok());
    let nowhere = path("/x");
    assert!(scope.check_suffix(&nowhere).is_err() && scope.check_size(&nowhere, 0).is_err());
}

#[test]
fn denials_come_in_their_order() {
    let scope = scope([
        mount("/ro").suffixes([".md"]).max_file_bytes(1),
        rw("/rw").suffixes([".md"]).max_file_bytes(1),
    ]);
    let readable = strings(&["/ro", "/rw"]);
    for op in [Op::Read, Op::Write, Op::Delete, Op::Ls, Op::Glob, Op::Grep] {
        let expected = (Layer::Mount, Refusal::outside("/x", readable.clone()));
        assert_eq!(denial(&scope, op, "/x", None), expected, "{op}");
    }
    for op in [Op::Write, Op::Edit, Op::Delete, Op::Move, Op::Copy] {
        let refusal = Refusal::read_only("/ro/a.bin", strings(&["/rw"]));
        let found = denial(&scope, op, "/ro/a.bin", Some(9));
        assert_eq!(found, (Layer::Mount, refusal), "{op}");
    }
    for op in [
        Op::Read,
        Op::Write,
        Op::Edit,
        Op::Delete,
        Op::Move,
        Op::Copy,
    ] {
        let (_, refusal) = denial(&scope, op, "/rw/a.bin", Some(9));
        assert!(matches!(refusal, Refusal::Suffix { .. }), "{op}: {refusal}");
    }
    for op in [Op::Read, Op::Write, Op::Edit, Op::Move, Op::Copy] {
        let (_, refusal) = denial(&scope, op, "/rw/a.md", Some(2));
        assert_eq!(refusal, Refusal::too_large("/rw/a.md", 2, 1), "{op}");
    }
    let delete = scope.judge(Op::Delete, &path("/rw/a.md"), Kind::File, Some(2));
    assert_eq!(delete.action(), Action::Allow, "what is too large can go");
    for bytes in [None, Some(1)] {
        let verdict = scope.judge(Op::Write, &path("/rw/a.md"), Kind::File, bytes);
        assert_eq!(verdict.action(), Action::Allow);
    }
    let directory = scope.judge(Op::Write, &path("/rw/dir"), Kind::Directory, None);
    assert_eq!(
        directory.action(),
        Action::Allow,
        "directories have no suffix"
    );
    for op in [Op::Ls, Op::Glob, Op::Grep] {
        assert_eq!(judge(&scope, op, "/rw/a.bin"), Action::Allow, "{op}");
    }
}

#[test]
fn no_suffix_at_all_is_allowed_where_the_list_is_empty() {
    let scope = scope([rw("/none").suffixes([""; 0])]);
    for name in ["/none/a.md", "/none/README"] {
        let (_, refusal) = denial(&scope, Op::Read, name, None);
        assert!(refusal.to_string().ends_with("allowed: none"), "{refusal}");
    }
}

#[test]
fn approvals_are_votes_that_name_the_mount() {
    let scope = scope([
        mount("/w").mode(Mode::Rw),
        rw("/r").read_approval(true),
        mount("/ro"),
    ]);
    for (op, at_w, at_r) in [
        (Op::Read, Action::Allow, Action::Ask),
        (Op::Ls, Action::Allow, Action::Ask),
        (Op::Glob, Action::Allow, Action::Ask),
        (Op::Grep, Action::Allow, Action::Ask),
        (Op::Write, Action::Ask, Action::Allow),
        (Op::Edit, Action::Ask, Action::Allow),
        (Op::Delete, Action::Ask, Action::Allow),
        (Op::Move, Action::Ask, Action::Allow),
        (Op::Copy, Action::Ask, Action::Allow),
        (Op::Execute, Action::Allow, Action::Allow),
    ] {
        assert_eq!(judge(&scope, op, "/w/a"), at_w, "{op}");
        assert_eq!(judge(&scope, op, "/r/a"), at_r, "{op}");
    }
    let read = scope.judge(Op::Read, &path("/r/a"), Kind::File, None);
    let text = "mount: ask, the mount '/r' asks before anything is read or listed";
    assert_eq!(read.to_string(), text);
    let write = judge(&scope, Op::Write, "/ro/a");
    assert_eq!(write, Action::Deny, "never asked about");
    assert_eq!(judge(&scope, Op::Execute, "/nowhere"), Action::Allow);
}

#[test]
fn the_root_is_always_listed() {
    let scope = scope([mount("/a/b").read_approval(true), mount("/c")]);
    let nothing = scope.derive(Derive::new()).unwrap();
    for op in [Op::Ls, Op::Glob, Op::Grep] {
        assert_eq!(judge(&nothing, op, "/"), Action::Allow, "{op}");
        let (_, refusal) = denial(&scope, op, "/a", None);
        assert!(
            matches!(refusal, Refusal::Outside { .. }),
            "{op}: {refusal}"
        );
    }
    assert_eq!(judge(&scope, Op::Read, "/"), Action::Deny);
    assert_eq!(judge(&scope, Op::Write, "/"), Action::Deny);
    for op in [Op::Glob, Op::Grep] {
        assert_eq!(judge(&scope, op, "/"), Action::Ask, "it covers /a/b");
        assert!(scope.asks_beneath(op, &path("/")), "{op}");
        assert!(!scope.asks_beneath(op, &path("/c")), "{op}");
        assert!(!nothing.asks_beneath(op, &path("/")), "{op}");
    }
    let ls = judge(&scope, Op::Ls, "/");
    assert_eq!(ls, Action::Allow, "it shows the names of mounts only");
}

#[test]
fn a_search_asks_for_the_readable_mounts_that_it_covers() {
    let secret = mount("/data/s").read_approval(true);
    let scope = scope([mount("/"), mount("/data"), secret]);
    let asks = |scope: &Scope, op, at: &str| scope.asks_beneath(op, &path(at));
    for at in ["/", "/data", "/data/s", "/data/s/x"] {
        assert!(
            asks(&scope, Op::Glob, at) && asks(&scope, Op::Grep, at),
            "{at}"
        );
    }
    assert!(!asks(&scope, Op::Glob, "/data/t") && !asks(&scope, Op::Glob, "/data/ss"));
    assert!(asks(&scope, Op::Ls, "/data/s/x") && !asks(&scope, Op::Ls, "/data"));
    assert!(
        !asks(&scope, Op::Write, "/data/s"),
        "only reading asks here"
    );
    let bound = scope.derive(Derive::new().read(["/data"])).unwrap();
    assert!(
        !asks(&bound, Op::Glob, "/"),
        "the nested mount is not covered"
    );
    let spanning = Derive::new().read(["/data"]).span_nested();
    assert!(asks(&scope.derive(spanning).unwrap(), Op::Glob, "/"));
    let deep = scope.derive(Derive::new().read(["/data/s/x"])).unwrap();
    assert!(asks(&deep, Op::Grep, "/"));
}

#[test]
fn a_mount_is_neither_deleted_nor_moved() {
    let scope = scope([rw("/"), rw("/data/inner")]);
    for op in [Op::Delete, Op::Move] {
        for at in ["/", "/data", "/data/inner"] {
            let verdict = scope.judge(op, &path(at), Kind::Directory, None);
            assert_eq!(verdict.action(), Action::Deny, "{op} {at}");
            assert_eq!(scope.strongest_beneath(op, &path(at)), Action::Deny);
        }
        for at in ["/data/inner/x", "/data/inn", "/other"] {
            let verdict = scope.judge(op, &path(at), Kind::Directory, None);
            assert_eq!(verdict.action(), Action::Allow, "{op} {at}");
            assert_eq!(scope.strongest_beneath(op, &path(at)), Action::Allow);
        }
    }
}

#[test]
fn what_is_protected_beneath_a_directory_is_known() {
    let scope = scope([
        rw("/"),
        mount("/a/ro"),
        mount("/b/ask").mode(Mode::Rw).read_approval(true),
        rw("/c/md").suffixes([".md"]),
        rw("/d/small").max_file_bytes(1),
    ]);
    for (op, at, expected) in [
        (Op::Write, "/a", Action::Deny),
        (Op::Read, "/a", Action::Allow),
        (Op::Write, "/b", Action::Ask),
        (Op::Read, "/b", Action::Ask),
        (Op::Read, "/c", Action::Deny),
        (Op::Read, "/c/md/x", Action::Deny),
        (Op::Read, "/d", Action::Deny),
        (Op::Delete, "/d/small/x", Action::Allow),
        (Op::Delete, "/c/md/x", Action::Deny),
        (Op::Write, "/e", Action::Allow),
        (Op::Execute, "/a", Action::Allow),
    ] {
        let found = scope.strongest_beneath(op, &path(at));
        assert_eq!(found, expected, "{op} {at}");
    }
    let narrow = Derive::new().read(["/"]).write(["/x/y"]);
    let narrow = scope.derive(narrow).unwrap();
    let protects = |op, at: &str| narrow.strongest_beneath(op, &path(at));
    assert_eq!(protects(Op::Write, "/x"), Action::Deny);
    assert_eq!(protects(Op::Write, "/x/y"), Action::Allow);
    assert_eq!(protects(Op::Read, "/a"), Action::Deny);
}

#[test]
fn the_best_answer_says_which_tools_make_sense() {
    use Action::{Allow, Ask, Deny};
    let best =
        |scope: &Scope| [Op::Read, Op::Write, Op::Ls, Op::Grep].map(|op| scope.most_lenient(op));
    let asking = |point| mount(point).mode(Mode::Rw).read_approval(true);
    for (mounts, expected) in [
        (vec![mount("/a")], [Allow, Deny, Allow, Allow]),
        (vec![rw("/a")], [Allow, Allow, Allow, Allow]),
        (vec![mount("/a").mode(Mode::Rw)], [Allow, Ask, Allow, Allow]),
        (vec![asking("/a")], [Ask, Ask, Allow, Ask]),
        (vec![asking("/a"), rw("/b")], [Allow, Allow, Allow, Allow]),
        (vec![mount("/").read_approval(true)], [Ask, Deny, Ask, Ask]),
    ] {
        let scope = scope(mounts.clone());
        assert_eq!(best(&scope), expected, "{mounts:?}");
        assert_eq!(scope.most_lenient(Op::Execute), Allow);
    }
    let scope = scope([rw("/a"), asking("/b")]);
    let child = scope.derive(Derive::new().write(["/b/x"])).unwrap();
    assert_eq!(best(&child), [Ask, Ask, Allow, Ask]);
    let nothing = scope.derive(Derive::new()).unwrap();
    assert_eq!(best(&nothing), [Deny, Deny, Allow, Allow]);
    let readonly = scope.derive(Derive::new().inherit().readonly()).unwrap();
    assert_eq!(readonly.most_lenient(Op::Write), Deny);
}
