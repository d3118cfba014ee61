//! Stage `everyday`: almost no command line from other projects is denied.
//!
//! The lines are extracted from scripts, Makefiles and CI files of packages that cargo
//! and npm download by name and version. They are kept in the cache and are never added
//! to the repository.

mod lines;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::process;
use crate::scratch::Scratch;
use crate::test_all::cargo::{cargo, run_tests};
use crate::test_all::stage::{Ctx, Outcome};
use crate::workspace::Workspace;

/// Crates that include the sources of C libraries with their build files.
const CRATES: &[(&str, &str)] = &[
    ("bzip2-sys", "0.1.11"),
    ("curl-sys", "0.4.78"),
    ("libgit2-sys", "0.17.0"),
    ("libsodium-sys", "0.2.7"),
    ("libssh2-sys", "0.3.0"),
    ("lz4-sys", "1.11.1"),
    ("onig_sys", "69.8.1"),
    ("rdkafka-sys", "4.8.0"),
    ("tikv-jemalloc-sys", "0.6.0"),
    ("zstd-sys", "2.0.13"),
];

/// Packages with many `scripts`.
const MODULES: &[(&str, &str)] = &[
    ("better-sqlite3", "11.5.0"),
    ("bootstrap", "5.3.3"),
    ("eslint", "9.15.0"),
    ("express", "4.21.1"),
    ("jquery", "3.7.1"),
    ("leveldown", "6.1.1"),
    ("mocha", "10.8.2"),
    ("sharp", "0.33.5"),
    ("socket.io", "4.8.1"),
    ("sqlite3", "5.1.7"),
    ("three", "0.170.0"),
    ("typescript", "5.6.3"),
    ("usb", "2.14.0"),
    ("webpack", "5.96.1"),
];

/// The minimum number of lines for a meaningful result.
const MIN_LINES: usize = 1000;

/// Must be raised when the extraction of lines changes.
const REVISION: u32 = 1;

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let directory = ctx.workspace.cache("everyday");
    let file = directory.join("lines.txt");
    let stamp = format!("# {REVISION} {CRATES:?} {MODULES:?}");
    let cached = fs::read_to_string(&file).unwrap_or_default();
    if cached.lines().next() != Some(&stamp) {
        let lines = match download(&ctx.workspace, &directory) {
            Ok(lines) => lines,
            Err(error) => {
                return Ok(Outcome::Skipped(format!(
                    "packages are not there: {error:#}"
                )));
            }
        };
        ensure!(
            lines.len() >= MIN_LINES,
            "{} lines were found, which is too few",
            lines.len()
        );
        let lines: Vec<String> = lines.into_iter().collect();
        fs::write(&file, format!("{stamp}\n{}\n", lines.join("\n")))?;
    }
    let figures = file.with_extension("figures");
    if figures.exists() {
        fs::remove_file(&figures)?;
    }
    let arguments = ["--test", "it", "--", "--ignored", "needs_everyday"];
    let mut command = cargo(ctx, "test", &arguments)?;
    command.env("EVERYDAY_LINES", &file);
    let outcome = run_tests(&mut command)?.outcome();
    let figures = fs::read_to_string(&figures).unwrap_or_default();
    let packages = CRATES.len() + MODULES.len();
    let note = format!("{packages} packages, {}", figures.trim());
    println!("{note}");
    Ok(match outcome {
        Outcome::Passed(_) => Outcome::Passed(note),
        Outcome::Failed(reason) => Outcome::Failed(format!("{reason}; {note}")),
        skipped @ Outcome::Skipped(_) => skipped,
    })
}

/// Returns the lines of all packages, which are removed again afterwards.
fn download(workspace: &Workspace, directory: &Path) -> Result<BTreeSet<String>> {
    let work = Scratch::at(directory.join("work"))?;
    let mut found = BTreeSet::new();
    for package in crates(workspace, &work)?
        .into_iter()
        .chain(modules(workspace, &work)?)
    {
        lines::of_directory(&package, &mut found)?;
    }
    Ok(found)
}

/// Downloads the crates and returns their directories.
fn crates(workspace: &Workspace, work: &Path) -> Result<Vec<PathBuf>> {
    let project = work.join("crates");
    fs::create_dir_all(project.join("src"))?;
    fs::write(project.join("src/lib.rs"), "")?;
    let mut manifest =
        "[package]\nname = \"everyday\"\nedition = \"2021\"\n[workspace]\n[dependencies]\n"
            .to_owned();
    for (name, version) in CRATES {
        manifest.push_str(&format!("{name} = \"={version}\"\n"));
    }
    fs::write(project.join("Cargo.toml"), manifest)?;
    let mut command = workspace.cargo(["vendor", "--quiet", "vendor"])?;
    process::output(command.current_dir(&project))?;
    let directories = CRATES
        .iter()
        .map(|(name, _)| project.join("vendor").join(name));
    Ok(directories.collect())
}

/// Downloads the npm packages and returns their directories.
fn modules(workspace: &Workspace, work: &Path) -> Result<Vec<PathBuf>> {
    let mut command = workspace.command("npm")?;
    command.args(["pack", "--silent", "--ignore-scripts"]);
    command.args(
        MODULES
            .iter()
            .map(|(name, version)| format!("{name}@{version}")),
    );
    process::output(command.current_dir(work))?;
    let mut directories = Vec::new();
    for (name, version) in MODULES {
        let directory = work.join(name);
        fs::create_dir_all(&directory)?;
        let mut unpack = workspace.command("tar")?;
        unpack
            .arg("-xzf")
            .arg(work.join(format!("{name}-{version}.tgz")));
        process::output(unpack.arg("-C").arg(&directory))
            .with_context(|| format!("cannot unpack {name}"))?;
        directories.push(directory);
    }
    Ok(directories)
}
