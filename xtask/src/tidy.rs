//! `cargo xtask tidy`: the project's own rules about manifests, sources and Markdown.
//!
//! Each rule is a pure function of data read from disk, so that it can be tested with
//! made-up input. [`files`] and [`manifests`] do the reading, and this file does the
//! writing.

mod circles;
mod comments;
mod deps;
mod files;
mod findings;
mod lexer;
mod links;
mod manifests;
mod named;
mod signatures;
mod sources;
mod weight;

pub(crate) use files::{TextFile, read as read_files};
pub(crate) use sources::{is_test_source, lines_before_tests};

use std::fs;

use anyhow::{Context as _, Result};

use crate::bench::{Drawn, REPORT_PATH};
use crate::flags;
use crate::tidy::findings::{Finding, Findings};
use crate::workspace::Workspace;

/// Runs all checks, after rewriting outdated tables if requested.
pub(crate) fn run(flags: &flags::Tidy) -> Result<bool> {
    let workspace = Workspace::discover()?;
    if flags.fix {
        fix(&workspace)?;
    }
    let findings = check(&workspace)?;
    println!("{findings}");
    Ok(findings.is_success())
}

/// Returns all findings in the repository.
pub(crate) fn check(workspace: &Workspace) -> Result<Findings> {
    let root = workspace.root();
    let metadata = workspace.metadata()?;
    let files = files::read(root)?;
    let manifests = manifests::read(root, &metadata)?;
    let members = manifests::read_members(root)?;
    let exists = |path: &str| root.join(path).exists();
    let is_same = |a: &str, b: &str| match (read(workspace, a), read(workspace, b)) {
        (Some(a), Some(b)) => a == b,
        _ => false,
    };
    let mut found = deps::check(&metadata.packages);
    found.extend(members.check());
    found.extend(circles::check(&files));
    for manifest in &manifests {
        found.extend(manifests::check(manifest, &members, &exists, &is_same));
    }
    for file in files.iter().filter(|file| file.has_extension("rs")) {
        found.extend(sources::check(file));
        found.extend(comments::check(file));
        found.extend(signatures::check(file));
    }
    for file in files.iter().filter(|file| file.has_extension("md")) {
        found.extend(links::check(file, &exists));
        found.extend(named::check(file, &|path| read(workspace, path)));
    }
    let weights = weight::weigh(workspace, &metadata.packages)?;
    match files.iter().find(|file| file.path == weight::FILE) {
        Some(file) => found.extend(weight::check(file, &weights)),
        None => found.push(Finding::error(weight::FILE, "there is no such file")),
    }
    if let Some(page) = read(workspace, REPORT_PATH) {
        for path in Drawn::of(&page)?.differences(root)? {
            let message = "is not what the figures of docs/benchmarks.md give; run `cargo xtask bench --plots`";
            found.push(Finding::error(&path, message));
        }
    }
    Ok(Findings::new(found))
}

fn fix(workspace: &Workspace) -> Result<()> {
    if let Some(page) = read(workspace, REPORT_PATH) {
        Drawn::of(&page)?.write(workspace.root())?;
    }
    let files = files::read(workspace.root())?;
    let Some(file) = files.iter().find(|file| file.path == weight::FILE) else {
        return Ok(());
    };
    let weights = weight::weigh(workspace, &workspace.metadata()?.packages)?;
    if let Some(fixed) = weight::fix(file, &weights).filter(|fixed| *fixed != file.text) {
        let path = workspace.root().join(&file.path);
        fs::write(&path, fixed).with_context(|| format!("cannot write {}", path.display()))?;
        println!("rewrote {}", file.path);
    }
    Ok(())
}

fn read(workspace: &Workspace, path: &str) -> Option<String> {
    fs::read_to_string(workspace.root().join(path)).ok()
}

/// A made-up file for tests of the rules.
#[cfg(test)]
fn text_file(path: &str, text: &str) -> files::TextFile {
    files::TextFile {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}
