//! Random routes, files and calls, built from few names so that they often collide.

use backend_core::VPath;
use backend_core::ops::GlobOrder;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::call::{Call, Hide, Lines, Mode, Search};
use super::pair::{File, Layout, Names, RouteAt};

const PREFIXES: &str = "/foo /foobar /foo/bar /foo/bar/deep/er /a /a/b/c /a/b /.hid /a/.x/y \
    /target /a/b/build/d /b[1]/{c}";

const NAMES: &str = "foo foobar bar a b c x.rs y.txt .hid .gitignore .ignore target build deep \
    b[1] é foo.txt .x";

const CONTENTS: &[&str] = &[
    "needle one\nplain\nNeedle two\nneedle three\n",
    "",
    "plain\r\nneedle\r\n",
    "no newline needle",
    "\0binary needle",
    "*.txt\n",
    "target/\nfoo\n",
    "/bar\n!x.rs\n",
    "b/*\n!b/c\n",
    "deep/er/x.rs\n",
];

const PATTERNS: &str = r"** * *.rs **/*.txt foo/** /foo/** /foo/* /**/x.rs {foo,a}/** **/bar/*
    .* .hid/** /a/b/**/y.txt /a/b/*.txt b/* */* bar/** [fb]*/** x.rs /foobar/* target/**
    /target/** /a/b/build/**/*.rs **/build/* /*/{target,build}/** tar*/** /foo/bar/deep/er/*
    **/.gitignore /{foo,foobar}/**/*.rs /b\[1\]/\{c\}/** ./foo//x.rs **/** **/deep/** /.hid/**
    /a/.x/** /{.hid,a}/** /*/b/* */*/x.rs /*o*/**/{x.rs,bar/*} a[";

const HIDES: &[Hide] = &[
    &[],
    &[],
    &[],
    &[&[("*.txt", true)]],
    &[&[("/foo", true)]],
    &[&[("/foo/bar", false), ("/foo", true)]],
    &[&[("x.rs", false), ("/a", true)], &[("/foo/bar/**", true)]],
    &[&[("**/deep/**", true)]],
    &[&[("foo/bar/*", true)]],
    &[&[("**/c/*", false), ("/a/b", true)]],
    &[&[("/a/b/c/x.rs", false), ("bar", true), ("/a", true)]],
    &[&[("/*/*", true)], &[("/foobar/**", false), ("foo*", true)]],
];

fn words(text: &'static str) -> Vec<&'static str> {
    text.split_whitespace().collect()
}

pub(crate) fn path() -> impl Strategy<Value = VPath> {
    let names = prop::collection::vec(select(words(NAMES)), 0..4);
    (
        prop_oneof![2 => Just(""), 3 => select(words(PREFIXES))],
        names,
    )
        .prop_map(|(prefix, names)| VPath::parse(&format!("{prefix}/{}", names.join("/"))).unwrap())
}

fn names() -> impl Strategy<Value = Names> {
    prop_oneof![
        4 => Just(Names::Below),
        2 => Just(Names::Full),
        1 => Just(Names::Directory),
    ]
}

pub(crate) fn layout() -> impl Strategy<Value = Layout> {
    let prefixes = subsequence(words(PREFIXES), 1..=5);
    let rules = select(&[None, Some("*.rs\n")][..]);
    let kinds = prop::collection::vec((names(), rules, prop::bool::weighted(0.25)), 5);
    let shadows = prop::collection::vec(select(words(NAMES)), 0..3);
    (prefixes, kinds, shadows).prop_map(|(prefixes, kinds, shadows)| Layout {
        routes: prefixes
            .into_iter()
            .zip(kinds)
            .map(|(prefix, (names, rules_above, blocking))| RouteAt {
                prefix: VPath::parse(prefix).unwrap(),
                names,
                rules_above,
                blocking,
            })
            .collect(),
        shadows,
    })
}

pub(crate) fn files() -> impl Strategy<Value = Vec<File>> {
    prop::collection::vec((path(), select(CONTENTS)), 0..14)
}

fn hide() -> impl Strategy<Value = Hide> {
    select(HIDES)
}

fn search() -> impl Strategy<Value = Search> {
    let pattern = prop::option::of(select(words(PATTERNS)));
    let start = prop_oneof![3 => Just(VPath::root()), 3 => path()];
    let limit = prop_oneof![3 => Just(1000_usize), 3 => 1..6_usize, 1 => Just(0)];
    let flags = [any::<bool>(), any::<bool>(), any::<bool>()];
    (start, pattern, limit, flags, hide()).prop_map(
        |(start, pattern, limit, [hidden, ignored, generated], hide)| Search {
            start,
            pattern,
            limit,
            hidden,
            ignored,
            generated,
            hide,
        },
    )
}

fn lines() -> impl Strategy<Value = Lines> {
    let max_bytes = prop_oneof![4 => Just(1_000_000_usize), 1 => 1..40_usize];
    let pattern = select(&["needle", "^", "two|plain", "x(", "nothing"][..]);
    (pattern, (0..3_usize, 0..3_usize), max_bytes, any::<bool>()).prop_map(
        |(pattern, context, max_bytes, insensitive)| Lines {
            pattern,
            context,
            max_bytes,
            insensitive,
        },
    )
}

fn find() -> impl Strategy<Value = Call> {
    let order = select(&[GlobOrder::Path, GlobOrder::NewestFirst][..]);
    prop_oneof![
        (search(), order).prop_map(|(search, order)| Call::Glob(search, order)),
        (search(), lines()).prop_map(|(search, lines)| Call::Grep(search, lines)),
    ]
}

fn look() -> impl Strategy<Value = Call> {
    let limit = prop_oneof![3 => Just(1000_usize), 1 => 0..4_usize];
    let range = prop::option::of((0..40_u64, 0..40_u64));
    let max = prop_oneof![3 => Just(1000_u64), 1 => 0..4_u64];
    prop_oneof![
        path().prop_map(Call::Resolve),
        path().prop_map(Call::Stat),
        path().prop_map(Call::Exists),
        (path(), limit, hide()).prop_map(|(path, limit, hide)| Call::Ls(path, limit, hide)),
        (path(), range, max).prop_map(|(path, range, max)| Call::Read(path, range, max)),
        (path(), 0..5_u64, 0..4_usize)
            .prop_map(|(path, offset, limit)| Call::ReadText(path, offset, limit)),
    ]
}

fn change() -> impl Strategy<Value = Call> {
    let mode = prop_oneof![
        Just(Mode::Overwrite),
        Just(Mode::CreateNew),
        select(CONTENTS).prop_map(Mode::If),
    ];
    let (old, new) = (
        select(&["needle", "plain", ""][..]),
        select(&["new", "needle"][..]),
    );
    prop_oneof![
        (path(), select(CONTENTS), mode)
            .prop_map(|(path, text, mode)| Call::Write(path, text, mode)),
        (path(), old, new, any::<bool>())
            .prop_map(|(path, old, new, all)| Call::Edit(path, old, new, all)),
        path().prop_map(Call::CreateDir),
        (path(), any::<bool>()).prop_map(|(path, recursive)| Call::Delete(path, recursive)),
        (path(), path(), any::<bool>()).prop_map(|(from, to, over)| Call::Rename(from, to, over)),
        (path(), path(), any::<bool>(), any::<bool>())
            .prop_map(|(from, to, over, all)| Call::Copy(from, to, over, all)),
    ]
}

pub(crate) fn calls() -> impl Strategy<Value = Vec<Call>> {
    prop::collection::vec(prop_oneof![3 => change(), 2 => look(), 1 => find()], 1..40)
}

pub(crate) fn searches() -> impl Strategy<Value = Vec<Call>> {
    prop::collection::vec(find(), 1..12)
}
