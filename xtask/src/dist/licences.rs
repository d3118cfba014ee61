//! The licences of all packages in a release.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::process;
use crate::workspace::Workspace;

/// Prefixes of the names of licence and notice files, in lower case.
const NAMES: &[&str] = &[
    "copying",
    "copyright",
    "licence",
    "license",
    "notice",
    "unlicense",
];

/// Extensions of files that are about licences but are not licences.
const CODE: &[&str] = &["html", "json", "py", "rs", "sh", "toml"];

/// The C libraries that agents are linked with, by the suffixes of their targets.
const C_LIBRARIES: &[(&str, &str)] = &[
    (
        "-gnu",
        "the GNU C Library, under the GNU Lesser General Public License 2.1 or later: \
         <https://www.gnu.org/software/libc/>. `cargo xtask agent` in a checkout of this version \
         links the agent with another version of it.",
    ),
    (
        "-musl",
        "musl, Copyright (C) 2005-2020 Rich Felker, et al., under the MIT License: \
         <https://musl.libc.org/>.",
    ),
];

/// A package, and the target it is built for.
#[derive(Debug)]
pub(crate) struct Built<'a> {
    pub(crate) package: &'a str,
    pub(crate) target: &'a str,
}

/// Collects the licences of all packages in `built`, with their texts.
pub(crate) fn collect(workspace: &Workspace, built: &[Built<'_>]) -> Result<String> {
    let mut wanted = BTreeSet::new();
    let mut args = vec!["metadata", "--format-version", "1", "--locked"];
    for Built { package, target } in built {
        args.extend(["--filter-platform", target]);
        let mut tree = workspace.cargo(["tree", "--locked", "--edges", "normal"])?;
        tree.args(["--package", package, "--target", target]);
        tree.args(["--prefix", "none", "--format", "{p}"]);
        wanted.extend(listed(&process::output(&mut tree)?));
    }
    let metadata = process::output(&mut workspace.cargo(args)?)?;
    let metadata: Metadata =
        serde_json::from_str(&metadata).context("cargo metadata printed something unexpected")?;
    let mut packages = Vec::new();
    for package in metadata.packages {
        // Members of the workspace have the licence of the release itself.
        let is_ours = package.source.is_none();
        if wanted.remove(&(package.name.clone(), package.version.clone())) && !is_ours {
            packages.push(package.licensed()?);
        }
    }
    if let Some((name, version)) = wanted.first() {
        bail!("cargo metadata does not know {name} {version}, which cargo tree names");
    }
    let targets: Vec<_> = built.iter().skip(1).map(|built| built.target).collect();
    render(packages, &targets)
}

/// Returns the names and versions of the packages that `cargo tree` lists.
fn listed(tree: &str) -> impl Iterator<Item = (String, String)> {
    tree.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        Some((name.to_owned(), version.to_owned()))
    })
}

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
    manifest_path: PathBuf,
}

impl Package {
    fn licensed(self) -> Result<Licensed> {
        let directory = self.manifest_path.parent().context("no directory")?;
        let mut texts = Vec::new();
        find_texts(directory, directory, &mut texts)?;
        texts.sort_unstable();
        Ok(Licensed {
            name: format!("{} {}", self.name, self.version),
            licence: self.license,
            texts,
        })
    }
}

/// A package, its declared licence, and the licence texts by file name.
#[derive(Debug)]
struct Licensed {
    name: String,
    licence: Option<String>,
    texts: Vec<(String, String)>,
}

/// Searches a directory tree, because vendored code has its own licence files.
fn find_texts(top: &Path, directory: &Path, texts: &mut Vec<(String, String)>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            find_texts(top, &path, texts)?;
        } else if is_licence(&entry.file_name().to_string_lossy()) {
            let text = fs::read(&path)?;
            let name = path.strip_prefix(top)?.display().to_string();
            texts.push((name, plain(&String::from_utf8_lossy(&text))));
        }
    }
    Ok(())
}

/// Whether a file name is that of a licence or a notice, and not of code about them.
fn is_licence(name: &str) -> bool {
    let name = name.to_lowercase();
    let extension = name.rsplit('.').next().unwrap_or_default();
    !CODE.contains(&extension) && NAMES.iter().any(|begin| name.starts_with(begin))
}

/// Normalizes a text, because copies differ in their line endings.
fn plain(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// Renders the list of packages, and each text once.
fn render(mut packages: Vec<Licensed>, agents: &[&str]) -> Result<String> {
    packages.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    let mut numbers = BTreeMap::new();
    let mut sources: Vec<(&str, Vec<String>)> = Vec::new();
    for package in &packages {
        for (file, text) in &package.texts {
            let number = *numbers.entry(text.as_str()).or_insert_with(|| {
                sources.push((text, Vec::new()));
                sources.len()
            });
            sources[number - 1]
                .1
                .push(format!("{} ({file})", package.name));
        }
    }
    let mut out = format!(
        "Code of others in agentbox {}\n\n\
         The program and the agents in it are made of the packages below, and of Rust's standard \
         library,\nwhose notices are a file of their own.\n\
         The numbers are those of the licence texts that follow.\n",
        env!("CARGO_PKG_VERSION")
    );
    for (end, library) in C_LIBRARIES {
        let linked: Vec<_> = agents.iter().filter(|agent| agent.ends_with(end)).collect();
        for agent in linked {
            let _ = write!(out, "\nThe agent for {agent} holds {library}\n");
        }
    }
    out.push('\n');
    for package in &packages {
        let mut found: Vec<usize> = Vec::new();
        found.extend(package.texts.iter().map(|(_, text)| numbers[text.as_str()]));
        if found.is_empty() {
            found.push(standard(package, &sources)?);
        }
        found.sort_unstable();
        found.dedup();
        let licence = package.licence.as_deref().unwrap_or("see its text");
        let found: Vec<_> = found.iter().map(|number| format!("[{number}]")).collect();
        let _ = writeln!(out, "{}: {licence} {}", package.name, found.join(" "));
    }
    for (index, (text, sources)) in sources.iter().enumerate() {
        let rule = "-".repeat(80);
        let sources = sources.join(", ");
        let _ = write!(out, "\n{rule}\n[{}] {sources}\n\n{text}\n", index + 1);
    }
    Ok(out)
}

/// Returns the number of the text for a package without one: that of the Apache
/// License, which does not differ between authors.
fn standard(package: &Licensed, texts: &[(&str, Vec<String>)]) -> Result<usize> {
    // Old packages use a slash for OR.
    let is_apache = |licence: &str| {
        let mut ids = licence.split([' ', '(', ')', '/']);
        ids.any(|id| id == "Apache-2.0")
    };
    let text = texts.iter().position(|(text, _)| {
        text.trim_start().starts_with("Apache License") && text.contains("END OF TERMS")
    });
    match text {
        Some(index) if package.licence.as_deref().is_some_and(is_apache) => Ok(index + 1),
        _ => bail!(
            "{} has no file with its licence ({}), so a release cannot name its terms; \
             use another package, or ask its authors to add one",
            package.name,
            package.licence.as_deref().unwrap_or("none declared")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn licensed(name: &str, licence: &str, texts: &[(&str, &str)]) -> Licensed {
        let text = |(file, text): &(&str, &str)| ((*file).to_owned(), (*text).to_owned());
        Licensed {
            name: name.to_owned(),
            licence: Some(licence.to_owned()),
            texts: texts.iter().map(text).collect(),
        }
    }

    #[test]
    fn packages_are_read_from_a_tree() {
        let tree = "a v1.0.0 (/src/a)\nb-c v0.2.0-rc.1+x (proc-macro)\nb-c v0.2.0-rc.1+x (*)\n\n";
        let found: BTreeSet<_> = listed(tree).collect();
        let expected = [("a", "1.0.0"), ("b-c", "0.2.0-rc.1+x")];
        let expected = expected.map(|(name, version)| (name.to_owned(), version.to_owned()));
        assert_eq!(found, BTreeSet::from(expected));
    }

    #[test]
    fn licences_are_known_by_their_names() {
        let kept = "LICENSE license-mit LICENSE.APACHE-2.0 LICENSE.MIT LICENCE.md COPYING \
            NOTICE.txt UNLICENSE";
        for name in kept.split(' ') {
            assert!(is_licence(name), "{name}");
        }
        for name in ["license.rs", "README.md", "sublicense", "copyright.html"] {
            assert!(!is_licence(name), "{name}");
        }
    }

    #[test]
    fn texts_are_found_below_a_package_and_compared_without_line_ends() {
        let top = Scratch::temporary("licences").unwrap();
        fs::create_dir_all(top.join("src/taken")).unwrap();
        fs::write(top.join("LICENSE-MIT"), "one  \r\ntwo\r\n\r\n").unwrap();
        fs::write(top.join("src/taken/LICENSE"), "\none\ntwo").unwrap();
        fs::write(top.join("src/license.rs"), "code").unwrap();
        let package = Package {
            name: "a".to_owned(),
            version: "1.0.0".to_owned(),
            license: None,
            source: None,
            manifest_path: top.join("Cargo.toml"),
        };
        let found = package.licensed().unwrap();
        let names: Vec<_> = found.texts.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["LICENSE-MIT", "src/taken/LICENSE"]);
        assert!(found.texts.iter().all(|(_, text)| text == "one\ntwo"));
    }

    #[test]
    fn a_text_is_printed_once_whatever_the_order() {
        let packages = || {
            vec![
                licensed("b 2.0.0", "MIT", &[("LICENSE", "the text")]),
                licensed(
                    "a 1.0.0",
                    "MIT OR X",
                    &[("L-MIT", "the text"), ("L-X", "other")],
                ),
            ]
        };
        let targets = ["x86_64-unknown-linux-gnu"];
        let printed = render(packages(), &targets).unwrap();
        let reversed = packages().into_iter().rev().collect();
        assert_eq!(printed, render(reversed, &targets).unwrap());
        assert!(printed.contains("\na 1.0.0: MIT OR X [1] [2]\nb 2.0.0: MIT [1]\n"));
        let text = "[1] a 1.0.0 (L-MIT), b 2.0.0 (LICENSE)\n\nthe text\n";
        assert!(printed.contains(text), "{printed}");
        assert_eq!(printed.matches("the text").count(), 1);
        assert!(printed.contains("linux-gnu holds the GNU C Library"));
        assert!(!printed.contains("musl"));
    }

    #[test]
    fn a_package_without_a_text_has_the_one_that_is_the_same_for_all() {
        let apache = "  Apache License\nEND OF TERMS AND CONDITIONS";
        let with = licensed("a 1.0.0", "Apache-2.0", &[("LICENSE", apache)]);
        let without = |licence| licensed("b 1.0.0", licence, &[]);
        let printed = render(vec![with, without("MIT/Apache-2.0")], &[]).unwrap();
        assert!(printed.contains("b 1.0.0: MIT/Apache-2.0 [1]\n"));
        let with = licensed("a 1.0.0", "Apache-2.0", &[("LICENSE", apache)]);
        let error = render(vec![with, without("MIT")], &[]).unwrap_err();
        assert!(
            error.to_string().starts_with("b 1.0.0 has no file"),
            "{error}"
        );
        assert!(render(vec![without("Apache-2.0")], &[]).is_err());
    }
}
