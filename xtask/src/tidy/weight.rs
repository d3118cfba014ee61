//! A Markdown table of the number of packages that each published crate depends on.
//!
//! The table is generated from `cargo tree`, for Linux, without dependencies of tests
//! and build scripts. A crate counts itself.

use std::collections::HashSet;

use anyhow::Result;

use crate::metadata::Package;
use crate::process;
use crate::tidy::files::TextFile;
use crate::tidy::findings::Finding;
use crate::workspace::Workspace;

/// The file with the table, between [`START`] and [`END`].
pub(super) const FILE: &str = "docs/weight.md";

const START: &str = "<!-- packages: made by cargo xtask tidy --fix -->";
const END: &str = "<!-- end of packages -->";

/// Crates that must stay light, with their maximum number of packages, and whether that is
/// the number without default features.
const LIMITS: &[(&str, usize, bool)] = &[
    ("backend-core", 39, false),
    ("backend-local", 64, false),
    ("agentbox-permissions", 59, true),
];

/// The number of packages of one crate.
#[derive(Debug, PartialEq)]
pub(super) struct Weight {
    package: String,
    direct: usize,
    all: usize,
    /// The number without default features, if it has any.
    bare: Option<usize>,
}

/// Counts the packages of all published crates of the workspace.
pub(super) fn weigh(workspace: &Workspace, packages: &[Package]) -> Result<Vec<Weight>> {
    let mut weights = Vec::new();
    for package in packages.iter().filter(|package| package.is_published()) {
        let (direct, all) = count(&tree(workspace, &package.name, &[])?);
        let bare = if package.features.contains_key("default") {
            Some(count(&tree(workspace, &package.name, &["--no-default-features"])?).1)
        } else {
            None
        };
        weights.push(Weight {
            package: package.name.clone(),
            direct,
            all,
            bare,
        });
    }
    weights.sort_by(|a, b| a.package.cmp(&b.package));
    Ok(weights)
}

fn tree(workspace: &Workspace, package: &str, more: &[&str]) -> Result<String> {
    let mut command = workspace.cargo(["tree", "--edges", "normal", "--prefix", "depth"])?;
    command
        .args(["--target", "x86_64-unknown-linux-gnu", "--package", package])
        .args(more);
    process::output(&mut command)
}

/// Counts the direct and all packages in the output of `cargo tree`.
fn count(tree: &str) -> (usize, usize) {
    let lines = tree.lines().filter(|line| !line.is_empty()).map(|line| {
        let package = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let depth = &line[..line.len() - package.len()];
        (depth, package.strip_suffix(" (*)").unwrap_or(package))
    });
    let direct = lines.clone().filter(|(depth, _)| *depth == "1").count();
    let all: HashSet<_> = lines.map(|(_, package)| package).collect();
    (direct, all.len())
}

/// Reports an outdated table, and crates that exceed their limit.
pub(super) fn check(file: &TextFile, weights: &[Weight]) -> Vec<Finding> {
    let mut found = Vec::new();
    if fix(file, weights).as_ref() != Some(&file.text) {
        let text = "the table of packages is not up to date: run `cargo xtask tidy --fix`";
        found.push(Finding::error(&file.path, text));
    }
    for (package, most, is_bare) in LIMITS {
        let weight = weights.iter().find(|it| it.package == *package);
        let count = weight.and_then(|it| if *is_bare { it.bare } else { Some(it.all) });
        if let Some(count) = count.filter(|count| count > most) {
            let text = format!(
                "{package} brings {count} packages, more than {most}: drop a dependency, or make \
                 it optional"
            );
            found.push(Finding::error(&file.path, text));
        }
    }
    found
}

/// Returns the file's text with an updated table, if it has the markers for one.
pub(super) fn fix(file: &TextFile, weights: &[Weight]) -> Option<String> {
    let (before, rest) = file.text.split_once(START)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{START}\n{}{END}{after}", table(weights)))
}

fn table(weights: &[Weight]) -> String {
    let mut table = "\n| package | direct | all | without default features |\n\
                     |---|---|---|---|\n"
        .to_owned();
    for it in weights {
        let bare = it.bare.map_or(String::new(), |bare| bare.to_string());
        table += &format!("| {} | {} | {} | {bare} |\n", it.package, it.direct, it.all);
    }
    table += "\n";
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::text_file;

    fn weight(package: &str, all: usize, bare: Option<usize>) -> Weight {
        Weight {
            package: package.to_owned(),
            direct: 1,
            all,
            bare,
        }
    }

    #[test]
    fn a_package_counts_once() {
        let tree = "0a v1 (/r/a)\n1b v1\n2c v2\n1d v1 (proc-macro)\n2c v2 (*)\n2b v1\n";
        assert_eq!(count(tree), (2, 4));
    }

    #[test]
    fn the_table_is_made_anew() {
        let weights = [weight("a", 3, None), weight("b", 9, Some(4))];
        let file = text_file(FILE, &format!("x\n{START}\nold\n{END}\ny\n"));
        let fixed = fix(&file, &weights).unwrap();
        assert!(fixed.contains("| b | 1 | 9 | 4 |\n"), "{fixed}");
        assert_eq!(check(&file, &weights).len(), 1);
        assert_eq!(check(&text_file(FILE, &fixed), &weights), []);
        assert_eq!(fix(&text_file(FILE, "no place"), &weights), None);
    }

    #[test]
    fn a_crate_must_stay_light() {
        let weights = [weight("backend-core", 40, None)];
        let file = text_file(FILE, &format!("{START}\n{}{END}", table(&weights)));
        let found = check(&file, &weights);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0]
                .to_string()
                .contains("brings 40 packages, more than 39")
        );
    }
}
