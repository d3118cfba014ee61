//! Circles of files. Within a crate, a file uses others that do not use it: then each
//! can be read, tested and moved after those below it.
//!
//! A file uses another one if its code names a module or an item of it. A re-exported
//! item counts for the file that defines it. A parent and its child may use each other.

mod modules;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::tidy::circles::modules::Modules;
use crate::tidy::files::TextFile;
use crate::tidy::findings::Finding;
use crate::tidy::sources::is_test_source;

/// The level of the findings.
const FINDING: fn(&str, String) -> Finding = Finding::error;

/// Uses that may close a circle: the file, the used one, and the reason.
const ALLOWED: &[(&str, &str, &str)] = &[(
    "crates/backend-core/src/backend.rs",
    "crates/backend-core/src/sandbox.rs",
    "`Backend` offers its sandbox, and a `Sandbox` is a `Backend`",
)];

/// The used files and the names that are used, by file.
type Graph<'a> = BTreeMap<&'a str, BTreeMap<&'a str, String>>;

/// Reports the circles in each crate.
pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for file in files {
        if let Some((sources, name)) = source(&file.path) {
            let files = crates.entry(sources).or_default();
            files.push((name, file.text.as_str()));
        }
    }
    let found = crates.iter().flat_map(|(&sources, files)| {
        let is_allowed = |from: &str, to: &str| {
            let is = |path: &str, name: &str| path.strip_prefix(sources) == Some(name);
            ALLOWED.iter().any(|&(a, b, _)| is(a, from) && is(b, to))
        };
        circles(files, &is_allowed)
            .into_iter()
            .map(|circle| FINDING(&format!("{sources}{}", circle.first), circle.message))
            .collect::<Vec<_>>()
    });
    found.collect()
}

/// Splits the path of a crate's source file after `src/`.
fn source(path: &str) -> Option<(&str, &str)> {
    let member = path.find("/src/")?;
    let is_crate = path.starts_with("crates/") && path[..member].matches('/').count() == 1;
    let (sources, name) = path.split_at(member + "/src/".len());
    let is_source = name.ends_with(".rs") && !name.starts_with("bin/") && !is_test_source(path);
    ((is_crate || sources == "xtask/src/") && is_source).then_some((sources, name))
}

/// A group of files, each of which uses every other one, if not directly.
#[derive(Debug)]
struct Circle {
    first: String,
    message: String,
}

/// Returns the circles among the files of a crate, given by name and text.
fn circles(files: &[(&str, &str)], is_allowed: &dyn Fn(&str, &str) -> bool) -> Vec<Circle> {
    let has_library = files.iter().any(|(name, _)| *name == "lib.rs");
    let mut modules = Modules::default();
    for (name, text) in files {
        // Beside a library, the program is a crate of its own.
        if !has_library || *name != "main.rs" {
            modules.add(name, text);
        }
    }
    let mut all = Graph::new();
    for arrow in modules.arrows() {
        let used = all.entry(arrow.from).or_default();
        used.entry(arrow.to).or_insert(arrow.name);
    }
    let is_used = |from: &str, to: &str| all.get(from).is_some_and(|used| used.contains_key(to));
    let mut graph = all.clone();
    for (&from, used) in &mut graph {
        used.retain(|&to, _| {
            let is_to_parent = modules.parent(from) == Some(to) && is_used(to, from);
            !is_to_parent && !is_allowed(from, to)
        });
    }
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut found = Vec::new();
    for &start in graph.keys() {
        if seen.contains(start) {
            continue;
        }
        let mut group = used_by(&graph, start);
        group.retain(|&other| used_by(&graph, other).contains(start));
        let circles = group.iter().filter_map(|&start| shortest(&graph, start));
        if let Some(circle) = circles.min_by_key(Vec::len) {
            found.push(Circle {
                first: circle[0].to_owned(),
                message: describe(&graph, group.len(), &circle),
            });
        }
        seen.extend(group);
    }
    found
}

/// Returns the files that `start` uses, directly or not.
fn used_by<'a>(graph: &Graph<'a>, start: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open = vec![start];
    while let Some(file) = open.pop() {
        for &next in graph.get(file).into_iter().flat_map(BTreeMap::keys) {
            if found.insert(next) {
                open.push(next);
            }
        }
    }
    found
}

/// Returns the files of a shortest circle that begins with `start`.
fn shortest<'a>(graph: &Graph<'a>, start: &'a str) -> Option<Vec<&'a str>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(file) = open.pop_front() {
        for &next in graph.get(file).into_iter().flat_map(BTreeMap::keys) {
            if next == start {
                let mut circle = vec![file];
                while let Some(file) = circle.last().and_then(|file| before.get(file)) {
                    circle.push(*file);
                }
                circle.reverse();
                return Some(circle);
            }
            if let Entry::Vacant(entry) = before.entry(next) {
                entry.insert(file);
                open.push_back(next);
            }
        }
    }
    None
}

fn describe(graph: &Graph<'_>, n_files: usize, circle: &[&str]) -> String {
    let mut text = format!("circle of {n_files} files: {}", circle[0]);
    let next = circle.iter().cycle().skip(1);
    for (from, to) in circle.iter().zip(next) {
        text.push_str(&format!(" -> {to} ({})", graph[from][to]));
    }
    text
}

#[cfg(test)]
mod tests;
