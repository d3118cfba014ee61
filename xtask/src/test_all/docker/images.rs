//! The base images of the tests, built here so that no registry is needed.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};

use crate::process;
use crate::scratch::Scratch;
use crate::test_all::docker::Docker;

/// A shell and small tools only. The tag is the version of the recipe.
pub(super) const BUSYBOX: &str = "agentbox-test/busybox:1";

/// Debian with Python and pip.
pub(super) const PYTHON: &str = "agentbox-test/python:1";

/// The release of Debian to install, and its packages beyond the minimum.
const RELEASE: &str = "bookworm";
const PACKAGES: &str = "python3,python3-pip,python3-venv,ca-certificates";

/// Builds missing images. Returns what is missing if it cannot.
pub(super) fn make(docker: &Docker<'_>) -> Result<Option<String>> {
    let recipes: [(&str, &str, Recipe); 2] = [
        (BUSYBOX, "busybox", busybox),
        (PYTHON, "debootstrap", python),
    ];
    for (image, program, recipe) in recipes {
        if process::succeeds(&mut docker.command(&["image", "inspect", image])?) {
            continue;
        }
        if !docker.workspace.has_program(program)? {
            let reason = format!("{image} is missing and {program} is not installed");
            return Ok(Some(format!("{reason}; --provision installs it")));
        }
        println!("making {image}");
        let root = Scratch::temporary("image")?;
        recipe(docker, &root).with_context(|| format!("cannot make {image}"))?;
        import(docker, &root, image)?;
    }
    Ok(None)
}

/// Fills a directory with the content of an image.
type Recipe = fn(&Docker<'_>, &Path) -> Result<()>;

pub(in crate::test_all) fn busybox(docker: &Docker<'_>, root: &Path) -> Result<()> {
    for directory in ["bin", "etc", "root", "tmp", "usr/bin"] {
        fs::create_dir_all(root.join(directory))?;
    }
    fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777))?;
    fs::write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\n")?;
    let mut which = docker.workspace.command("which")?;
    let program = process::output(which.arg("busybox"))?;
    fs::copy(program.trim(), root.join("bin/busybox"))?;
    let tools = process::output(docker.workspace.command("busybox")?.arg("--list"))?;
    for tool in tools.lines().filter(|tool| *tool != "busybox") {
        symlink("busybox", root.join("bin").join(tool))?;
    }
    Ok(())
}

fn python(docker: &Docker<'_>, root: &Path) -> Result<()> {
    let mut install = docker.workspace.command("debootstrap")?;
    install.args(["--variant=minbase", &format!("--include={PACKAGES}")]);
    // It prints a line for each package and each of their files.
    let log = docker.workspace.cache("debootstrap.log");
    fs::create_dir_all(docker.workspace.cache(""))?;
    install
        .arg(RELEASE)
        .arg(root)
        .stdout(fs::File::create(&log)?);
    process::run(&mut install).with_context(|| {
        let said = fs::read_to_string(&log).unwrap_or_default();
        let last = said.lines().last().unwrap_or_default().to_owned();
        format!("{last} (see {})", log.display())
    })?;
    for entry in fs::read_dir(root.join("var/cache/apt/archives"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            fs::remove_file(path)?;
        }
    }
    symlink("python3", root.join("usr/bin/python"))?;
    Ok(())
}

/// Imports a directory as an image.
pub(in crate::test_all) fn import(docker: &Docker<'_>, root: &Path, image: &str) -> Result<()> {
    let mut tar = docker.workspace.command("tar")?;
    tar.arg("--directory").arg(root);
    let mut tar = tar
        .args(["--numeric-owner", "--create", "."])
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start tar")?;
    let archive = tar.stdout.take().context("tar has no output")?;
    let mut import = docker.command(&["import", "-", image])?;
    let imported = process::run(import.stdin(archive));
    let packed = tar.wait()?;
    imported?;
    ensure!(packed.success(), "tar failed ({packed})");
    let test = [
        "run",
        "--rm",
        "--network",
        "none",
        image,
        "/bin/sh",
        "-c",
        "true",
    ];
    process::run(&mut docker.command(&test)?)
        .with_context(|| format!("{image} does not work; is its program static?"))
}
