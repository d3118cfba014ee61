//! Stage `package`: the packages for crates.io compile, and a project outside the
//! repository works with them.
//!
//! Cargo creates the packages, and they are unpacked. `[patch.crates-io]` replaces the
//! ones that are not published yet. They are compiled without any other file of the
//! repository.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::metadata::Package;
use crate::test_all::stage::{Ctx, Outcome};
use crate::{process, scratch};

/// The dependencies of the project, besides tokio.
const DEPENDENCIES: &[&str] = &[
    "agentbox-permissions",
    "backend-core",
    "backend-local",
    "console-tools",
];

/// The project's program.
const PROGRAM: &str = include_str!("package/program.rs");

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let metadata = ctx.workspace.metadata()?;
    let (published, private): (Vec<_>, Vec<_>) = metadata
        .packages
        .iter()
        .partition(|package| package.is_published());
    let place = ctx.workspace.cache("packages");
    scratch::empty(&place)?;
    let unpacked = place.join("unpacked");
    fs::create_dir_all(&unpacked)?;
    pack(ctx, &private, &place)?;
    let packages: Vec<_> = published
        .iter()
        .map(|package| unpack(ctx, package, &place.join("package"), &unpacked))
        .collect::<Result<_>>()?;

    let lock = ctx.workspace.root().join("Cargo.lock");
    fs::write(unpacked.join("Cargo.toml"), workspace(&packages))?;
    fs::copy(&lock, unpacked.join("Cargo.lock"))?;
    cargo(ctx, &["check", "--workspace"], &unpacked)
        .context("a package does not compile by itself")?;

    let project = place.join("project");
    fs::create_dir_all(project.join("src"))?;
    fs::write(project.join("Cargo.toml"), manifest(&packages)?)?;
    fs::write(project.join("src/main.rs"), PROGRAM)?;
    fs::copy(&lock, project.join("Cargo.lock"))?;
    cargo(ctx, &["run"], &project).context("a project cannot use the packages")?;
    Ok(Outcome::Passed(format!("{} packages", packages.len())))
}

/// Creates the packages in `place/package`.
fn pack(ctx: &Ctx, private: &[&Package], place: &Path) -> Result<()> {
    let pack = |network: &[&str]| {
        let args = ["package", "--workspace", "--no-verify", "--allow-dirty"];
        let mut command = ctx.workspace.cargo(args)?;
        for package in private {
            command.args(["--exclude", &package.name]);
        }
        command.args(network).arg("--target-dir").arg(place);
        process::run(&mut command)
    };
    // Cargo would query the index for every package. The locked dependencies are
    // already downloaded.
    pack(&["--offline"]).or_else(|_| pack(&[]))
}

/// An unpacked package.
#[derive(Debug)]
struct Unpacked {
    name: String,
    version: String,
    directory: PathBuf,
}

fn unpack(ctx: &Ctx, package: &Package, from: &Path, to: &Path) -> Result<Unpacked> {
    let Package { name, version, .. } = package;
    let full = format!("{name}-{version}");
    let mut tar = ctx.workspace.command("tar")?;
    // `-m`: every file of a package has the same old date, so cargo would consider the
    // content unchanged since the last run.
    tar.arg("-xmzf").arg(from.join(format!("{full}.crate")));
    process::run(tar.arg("-C").arg(to))?;
    let directory = to.join(full);
    for file in ["LICENSE", "README.md"] {
        let path = directory.join(file);
        ensure!(path.is_file(), "the package {name} has no {file}");
    }
    Ok(Unpacked {
        name: name.clone(),
        version: version.clone(),
        directory,
    })
}

/// Runs cargo in a directory, with the target directory of stage `consumers`, which
/// already has nearly all dependencies.
fn cargo(ctx: &Ctx, args: &[&str], directory: &Path) -> Result<()> {
    let mut command = ctx.workspace.cargo(args)?;
    command
        .arg("--quiet")
        .current_dir(directory)
        .env("CARGO_TARGET_DIR", ctx.workspace.cache("consumers-target"));
    process::run(&mut command)
}

/// The manifest of a workspace of all packages, so that one cargo command compiles
/// them.
fn workspace(packages: &[Unpacked]) -> String {
    let members = packages.iter().map(|package| {
        let name = package.directory.file_name().unwrap_or_default();
        name.to_string_lossy()
    });
    let members: Vec<_> = members.collect();
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = {members:?}\n\n{}",
        patch(packages)
    )
}

/// The manifest of the project, with ordinary dependencies.
fn manifest(packages: &[Unpacked]) -> Result<String> {
    let mut dependencies = String::new();
    for name in DEPENDENCIES {
        let package = packages.iter().find(|package| package.name == *name);
        let package = package.with_context(|| format!("{name} is not published"))?;
        dependencies.push_str(&format!("{name} = \"{}\"\n", package.version));
    }
    Ok(format!(
        "[package]\nname = \"project\"\nedition = \"2024\"\npublish = false\n\n\
         [dependencies]\n{dependencies}\
         tokio = {{ version = \"1\", features = [\"rt-multi-thread\"] }}\n\n\
         [workspace]\n\n{}",
        patch(packages)
    ))
}

fn patch(packages: &[Unpacked]) -> String {
    let line = |package: &Unpacked| {
        // A JSON string is also a TOML basic string, whatever the path contains.
        let directory = serde_json::Value::from(package.directory.to_string_lossy());
        format!("{} = {{ path = {directory} }}\n", package.name)
    };
    let lines: String = packages.iter().map(line).collect();
    format!("[patch.crates-io]\n{lines}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages() -> Vec<Unpacked> {
        let package = |name: &&str| Unpacked {
            name: (*name).to_owned(),
            version: "0.2.0".to_owned(),
            directory: PathBuf::from(format!("/c/{name}-0.2.0")),
        };
        DEPENDENCIES.iter().map(package).collect()
    }

    #[test]
    fn the_project_names_versions_and_paths_are_only_patched_in() {
        let table: toml::Table = manifest(&packages()).unwrap().parse().unwrap();
        for name in DEPENDENCIES {
            assert_eq!(table["dependencies"][*name].as_str(), Some("0.2.0"));
            let path = table["patch"]["crates-io"][*name]["path"].as_str();
            assert_eq!(path, Some(&*format!("/c/{name}-0.2.0")));
        }
        assert!(manifest(&[]).is_err());
    }

    #[test]
    fn all_packages_are_members() {
        let table: toml::Table = workspace(&packages()).parse().unwrap();
        let members = table["workspace"]["members"].as_array().unwrap();
        assert_eq!(members.len(), DEPENDENCIES.len());
        assert_eq!(members[0].as_str(), Some("agentbox-permissions-0.2.0"));
    }
}
