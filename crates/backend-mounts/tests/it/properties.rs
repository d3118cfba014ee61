//! Properties of any mounts, any chain of scopes and any path.
use backend_core::VPath;
use backend_mounts::{Derive, Mode, Mount, Mounts, Scope};
use permissions::{Action, Kind, Op, OpClass, PathLayer};
use proptest::prelude::*;

fn place() -> impl Strategy<Value = VPath> {
    prop::collection::vec("[ab]", 0..4).prop_map(|names| VPath::parse(&names.join("/")).unwrap())
}

fn file() -> impl Strategy<Value = VPath> {
    let name = prop_oneof![
        "[ab]",
        Just("x.md".to_owned()),
        Just("x.MD".to_owned()),
        "[.ab]{1,5}",
    ];
    (place(), name).prop_map(|(place, name)| place.join(&name).unwrap_or(place))
}

fn mounts() -> impl Strategy<Value = Vec<Mount>> {
    let suffix = prop::sample::select(vec![".md", "", ".a", "md", ".b"]);
    let suffixes = prop::option::weighted(0.3, prop::collection::vec(suffix, 0..3));
    let limit = prop::option::weighted(0.3, 0_u64..4);
    let mount = (place(), any::<[bool; 3]>(), suffixes, limit);
    prop::collection::vec(mount, 1..5).prop_map(|mounts| {
        let mut made: Vec<Mount> = Vec::new();
        for (point, [writable, asks_write, asks_read], suffixes, limit) in mounts {
            if made.iter().any(|mount| mount.mount_point == point) {
                continue;
            }
            let mut mount = Mount::new(format!("/host/{}", made.len()), point.as_str()).unwrap();
            mount.mode = if writable { Mode::Rw } else { Mode::Ro };
            mount.suffixes = suffixes.map(|all| all.into_iter().map(str::to_owned).collect());
            mount.max_file_bytes = limit;
            made.push(mount.write_approval(asks_write).read_approval(asks_read));
        }
        made
    })
}

/// Entries, each chosen by index among those of the scope and extended by a path below
/// it.
type Entries = Option<Vec<(usize, VPath)>>;

#[derive(Debug, Clone)]
struct Step {
    read: Entries,
    write: Entries,
    readonly: bool,
    inherit: bool,
    span_nested: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let entries = || prop::option::of(prop::collection::vec((any::<usize>(), place()), 0..3));
    let flags = (prop::bool::weighted(0.2), any::<bool>(), any::<bool>());
    (entries(), entries(), flags).prop_map(|(read, write, flags)| Step {
        read,
        write,
        readonly: flags.0,
        inherit: flags.1,
        span_nested: flags.2,
    })
}

fn choose(roots: &[VPath], entries: Entries) -> Option<Vec<String>> {
    let choose = |(number, deeper): (usize, VPath)| match roots.len() {
        0 => None,
        roots_len => {
            let root = &roots[number % roots_len];
            Some(format!("{root}/{}", deeper.as_str()))
        }
    };
    entries.map(|entries| entries.into_iter().filter_map(choose).collect())
}

/// Returns the scope of the mounts, then each that could be derived from the one
/// before, with its derivation.
fn chain(mounts: Vec<Mount>, steps: Vec<Step>) -> Vec<(Scope, Derive)> {
    let whole = Scope::new(Mounts::new(mounts).unwrap());
    let mut chain = vec![(whole, Derive::new().inherit())];
    for step in steps {
        let (last, _) = chain.last().unwrap();
        let mut derive = Derive::new();
        derive.read = choose(last.readable_roots(), step.read);
        derive.write = choose(last.writable_roots(), step.write);
        derive.readonly = step.readonly;
        derive.inherit = step.inherit;
        derive.span_nested = step.span_nested;
        if let Ok(scope) = last.derive(derive.clone()) {
            chain.push((scope, derive));
        }
    }
    chain
}

fn last(mounts: Vec<Mount>, steps: Vec<Step>) -> Scope {
    chain(mounts, steps).pop().unwrap().0
}

/// Returns the paths at which the decisions of a chain can change.
fn places(chain: &[(Scope, Derive)]) -> Vec<VPath> {
    let points = chain[0].0.mounts().iter().map(|m| m.mount_point.clone());
    let entries = chain
        .iter()
        .flat_map(|(_, derive)| derive.entries().unwrap());
    points.chain(entries).collect()
}

/// Decides as this library's predecessor does: the scope's own list decides, and an
/// entry covers everything beneath it in the same mount.
fn predecessor_allows(chain: &[(Scope, Derive)], path: &VPath, write: bool) -> bool {
    let mounts = chain[0].0.mounts();
    let point = |path: &VPath| {
        let points = mounts.iter().map(|mount| mount.mount_point.as_str());
        let covers = |point: &&str| {
            *point == "/"
                || path.as_str() == *point
                || path.as_str().starts_with(&format!("{point}/"))
        };
        let found = points.filter(covers).max_by_key(|point| point.len());
        found.map(str::to_owned)
    };
    let Some(mount) = mounts
        .iter()
        .find(|m| Some(m.mount_point.to_string()) == point(path))
    else {
        return false;
    };
    if write && mount.mode == Mode::Ro {
        return false;
    }
    for (_, derive) in chain[1..].iter().rev() {
        let list = match (&derive.read, &derive.write) {
            _ if write && derive.readonly => return false,
            (None, None) if derive.inherit => continue,
            (None, None) => return false,
            (None, Some(list)) => list,
            (Some(_), None) if write => return false,
            (Some(_), Some(list)) if write => list,
            (Some(list), _) => list,
        };
        return list.iter().any(|entry| {
            let entry = VPath::parse(entry).unwrap();
            point(&entry) == point(path) && path.starts_with(&entry)
        });
    }
    true
}

/// Returns the last suffix as Python's `PurePath` does, in lower case.
fn python_suffix(path: &VPath) -> String {
    let name: Vec<char> = path.file_name().unwrap_or_default().chars().collect();
    match name.iter().rposition(|c| *c == '.') {
        Some(dot) if 0 < dot && dot < name.len() - 1 => {
            name[dot..].iter().collect::<String>().to_lowercase()
        }
        _ => String::new(),
    }
}

const FILE_OPS: [Op; 6] = [
    Op::Read,
    Op::Write,
    Op::Edit,
    Op::Delete,
    Op::Move,
    Op::Copy,
];

proptest! {
    #[test]
    fn a_descendant_allows_nothing_that_an_ancestor_denies(
        mounts in mounts(), steps in prop::collection::vec(step(), 0..5),
        path in file(), bytes in prop::option::of(0_u64..5),
    ) {
        let chain = chain(mounts, steps);
        let (child, _) = chain.last().unwrap();
        for (ancestor, _) in &chain {
            prop_assert!(!child.can_read(&path) || ancestor.can_read(&path));
            prop_assert!(!child.can_write(&path) || ancestor.can_write(&path));
            for op in Op::ALL {
                let denies = |scope: &Scope| {
                    scope.judge(op, &path, Kind::File, bytes).action() == Action::Deny
                };
                prop_assert!(denies(child) || !denies(ancestor), "{op} {path}");
            }
            for op in [Op::Ls, Op::Glob, Op::Grep] {
                let hides = |scope: &Scope| scope.exclude(op).hides(&path);
                prop_assert!(hides(child) || !hides(ancestor), "{op} {path}");
            }
        }
    }

    #[test]
    fn scopes_that_do_not_span_mounts_are_those_of_the_predecessor(
        mounts in mounts(), mut steps in prop::collection::vec(step(), 0..5), path in file(),
    ) {
        for step in &mut steps {
            step.span_nested = false;
        }
        let chain = chain(mounts, steps);
        let (scope, _) = chain.last().unwrap();
        prop_assert_eq!(scope.can_read(&path), predecessor_allows(&chain, &path, false));
        prop_assert_eq!(scope.can_write(&path), predecessor_allows(&chain, &path, true));
    }

    #[test]
    fn nothing_is_allowed_that_the_predecessor_denies(
        mounts in mounts(), path in file(), bytes in prop::option::of(0_u64..5),
    ) {
        let chain = chain(mounts, Vec::new());
        let scope = &chain[0].0;
        let mount = scope.mounts().find(&path);
        for op in FILE_OPS {
            let write = op != Op::Read;
            let suffix_fits = mount.is_none_or(|mount| mount.suffixes.as_ref().is_none_or(
                |all| all.iter().any(|one| one.to_lowercase() == python_suffix(&path))));
            let size_fits = op == Op::Delete || mount.is_none_or(|mount| {
                bytes.is_none_or(|bytes| mount.max_file_bytes.is_none_or(|limit| bytes <= limit))
            });
            let allows = predecessor_allows(&chain, &path, write) && suffix_fits && size_fits;
            // The predecessor lacks one check: a mount cannot be deleted.
            let is_mount = matches!(op, Op::Delete | Op::Move)
                && scope.mounts().iter().any(|m| m.mount_point.starts_with(&path));
            let action = scope.judge(op, &path, Kind::File, bytes).action();
            prop_assert_eq!(action != Action::Deny, allows && !is_mount, "{} {}", op, path);
            let asks = mount.is_some_and(|m| if write { m.write_approval } else { m.read_approval });
            prop_assert_eq!(action == Action::Ask, allows && !is_mount && asks);
        }
    }

    #[test]
    fn what_is_left_out_is_what_cannot_be_read(
        mounts in mounts(), steps in prop::collection::vec(step(), 0..4), path in file(),
    ) {
        prop_assume!(!path.is_root());
        let chain = chain(mounts, steps);
        let (scope, _) = chain.last().unwrap();
        let readable = scope.can_read(&path);
        prop_assert_eq!(scope.exclude(Op::Glob).hides(&path), !readable, "glob {}", path);
        let leads = places(&chain).iter().any(|p| p.starts_with(&path) && scope.can_read(p));
        prop_assert_eq!(scope.exclude(Op::Ls).hides(&path), !(readable || leads), "ls {}", path);
        let read = scope.judge(Op::Read, &path, Kind::File, None).action();
        prop_assert_eq!(scope.exclude(Op::Grep).hides(&path), read != Action::Allow, "grep {}", path);
        let granted = scope.exclude_granted(Op::Grep, |_| true);
        prop_assert_eq!(granted.hides(&path), read == Action::Deny, "granted {}", path);
    }

    #[test]
    fn what_is_kept_from_commands_is_what_is_denied(
        mounts in mounts(), steps in prop::collection::vec(step(), 0..4), path in file(),
    ) {
        let scope = last(mounts, steps);
        // Nothing is said about the root, and a mount is a directory, without a suffix.
        let is_mount = scope.mounts().iter().any(|mount| mount.mount_point == path);
        prop_assume!(!path.is_root() && !is_mount);
        for op in [Op::Read, Op::Write, Op::Edit] {
            let denied = scope.judge(op, &path, Kind::File, None).action() == Action::Deny;
            let kept = PathLayer::denied(&scope, op.class()).hides(&path);
            prop_assert_eq!(kept, denied, "{} {}", op, path);
        }
        prop_assert!(PathLayer::denied(&scope, OpClass::Execute).is_none());
    }

    #[test]
    fn what_is_said_of_many_paths_holds_for_each(
        mounts in mounts(), steps in prop::collection::vec(step(), 0..3),
        directory in place(), path in file(), bytes in prop::option::of(0_u64..5),
    ) {
        let scope = last(mounts, steps);
        for op in Op::ALL {
            let action = scope.judge(op, &path, Kind::File, bytes).action();
            prop_assert!(scope.most_lenient(op) <= action, "{op} {path}");
            if path.starts_with(&directory) {
                let strongest = scope.strongest_beneath(op, &directory);
                prop_assert!(strongest >= action, "{op} {path} in {directory}");
                if op == Op::Read && action == Action::Ask {
                    prop_assert!(scope.asks_beneath(Op::Glob, &directory));
                    prop_assert!(scope.asks_beneath(Op::Grep, &directory));
                }
            }
        }
    }

    #[test]
    fn every_spelling_gets_the_same_answer(
        mounts in mounts(), path in file(), noise in prop::collection::vec(0_usize..6, 1..8),
    ) {
        let scope = last(mounts, Vec::new());
        let mut typed = String::new();
        let names = path.components().map(Some).chain([None]);
        for (name, noise) in names.zip(noise.into_iter().cycle()) {
            typed.push_str(["/", "//", "/./", "\\", "/b/../", "\\.\\/"][noise]);
            typed.push_str(name.unwrap_or_default());
        }
        let parsed = scope.parse(&format!(" {typed} ")).unwrap();
        prop_assert_eq!(&parsed, &path);
    }

    #[test]
    fn anything_can_be_typed(mounts in mounts(), typed in any::<String>()) {
        let scope = last(mounts, Vec::new());
        if let Ok(path) = scope.parse(&typed) {
            prop_assert_eq!(scope.parse(path.as_str()), Ok(path.clone()));
            let _ = scope.judge(Op::Write, &path, Kind::File, Some(1)).to_string();
        }
        if let Err(error) = scope.derive(Derive::new().write([typed])) {
            prop_assert!(!error.to_string().contains("/host"));
        }
    }
}
