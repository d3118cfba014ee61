//! The images of the tests, made here so that no registry is needed.
//!
//! Each is kept in the cache as an archive that Docker and containerd load.

use std::env;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{Builder, Header};

use crate::process;
use crate::scratch::Scratch;
use crate::workspace::Workspace;

/// A shell and small tools only.
pub(crate) const BUSYBOX: Image = Image {
    name: "agentbox-test/busybox:1",
    program: "busybox",
    entrypoint: &[],
    fill: busybox,
};

/// Debian with Python and pip.
pub(crate) const PYTHON: Image = Image {
    name: "agentbox-test/python:1",
    program: "debootstrap",
    entrypoint: &[],
    fill: python,
};

/// A program that waits, which keeps the namespaces of a pod.
pub(crate) const PAUSE: Image = Image {
    name: "agentbox-test/pause:1",
    program: "busybox",
    entrypoint: &["/bin/busybox", "sleep", "infinity"],
    fill: copy_busybox,
};

/// The release of Debian to install, and its packages beyond the minimum.
const RELEASE: &str = "bookworm";
const PACKAGES: &str = "python3,python3-pip,python3-venv,ca-certificates";

/// An image and its recipe.
#[derive(Debug)]
pub(crate) struct Image {
    /// Its name. The tag is the version of the recipe.
    pub(crate) name: &'static str,
    /// The program that the recipe needs.
    program: &'static str,
    /// The program that a container runs unless it is told otherwise.
    entrypoint: &'static [&'static str],
    fill: Recipe,
}

/// Fills a directory with the content of an image.
type Recipe = fn(&Workspace, &Path) -> Result<()>;

impl Image {
    /// Returns why the image cannot be made, if so.
    pub(crate) fn obstacle(&self, workspace: &Workspace) -> Result<Option<String>> {
        if self.path(workspace).exists() || workspace.has_program(self.program)? {
            return Ok(None);
        }
        Ok(Some(format!(
            "{} is missing and {} is not installed; --provision installs it",
            self.name, self.program
        )))
    }

    /// Returns the archive, which is made if it is missing.
    pub(crate) fn archive(&self, workspace: &Workspace) -> Result<PathBuf> {
        let path = self.path(workspace);
        if !path.exists() {
            println!("making {}", self.name);
            self.make(workspace, &path)
                .with_context(|| format!("cannot make {}", self.name))?;
        }
        Ok(path)
    }

    fn path(&self, workspace: &Workspace) -> PathBuf {
        let name = self.name.replace(['/', ':'], "-");
        workspace.cache("images").join(format!("{name}.tar"))
    }

    fn make(&self, workspace: &Workspace, path: &Path) -> Result<()> {
        fs::create_dir_all(workspace.cache("images"))?;
        let place = Scratch::temporary("image")?;
        let root = place.join("root");
        fs::create_dir(&root)?;
        (self.fill)(workspace, &root)?;
        let layer = place.join("layer.tar");
        let mut tar = workspace.command("tar")?;
        tar.args(["--numeric-owner", "--create", "--file"]);
        process::run(tar.arg(&layer).arg("--directory").arg(&root).arg("."))?;
        // A run that is interrupted leaves no archive that is cut off.
        let fresh = path.with_extension("fresh");
        self.pack(&layer, &fresh)?;
        fs::rename(&fresh, path)?;
        Ok(())
    }

    /// Writes an archive of one layer, as `docker save` does.
    fn pack(&self, layer: &Path, archive: &Path) -> Result<()> {
        let config = self.config(&sum(layer)?).to_string();
        let config_name = format!("{}.json", hex(&Sha256::digest(&config)));
        let manifest = json!([{
            "Config": config_name, "RepoTags": [self.name], "Layers": ["layer.tar"],
        }])
        .to_string();
        let mut tar = Builder::new(File::create(archive)?);
        for (name, content) in [
            (config_name.as_str(), &config),
            ("manifest.json", &manifest),
        ] {
            let mut header = Header::new_gnu();
            header.set_mode(0o644);
            header.set_size(u64::try_from(content.len())?);
            tar.append_data(&mut header, name, content.as_bytes())?;
        }
        tar.append_path_with_name(layer, "layer.tar")?;
        tar.into_inner()?;
        Ok(())
    }

    fn config(&self, layer: &str) -> Value {
        let created = "1970-01-01T00:00:00Z";
        let architecture = match env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let entrypoint = (!self.entrypoint.is_empty()).then_some(self.entrypoint);
        json!({
            "architecture": architecture,
            "os": "linux",
            "created": created,
            "config": {"Entrypoint": entrypoint},
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
            "history": [{"created": created}],
        })
    }
}

/// Fills a directory with a shell and small tools.
pub(crate) fn busybox(workspace: &Workspace, root: &Path) -> Result<()> {
    copy_busybox(workspace, root)?;
    for directory in ["etc", "root", "tmp", "usr/bin"] {
        fs::create_dir_all(root.join(directory))?;
    }
    fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777))?;
    fs::write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\n")?;
    let tools = process::output(workspace.command("busybox")?.arg("--list"))?;
    for tool in tools.lines().filter(|tool| *tool != "busybox") {
        symlink("busybox", root.join("bin").join(tool))?;
    }
    Ok(())
}

fn copy_busybox(workspace: &Workspace, root: &Path) -> Result<()> {
    fs::create_dir(root.join("bin"))?;
    let program = process::output(workspace.command("which")?.arg("busybox"))?;
    fs::copy(program.trim(), root.join("bin/busybox"))?;
    Ok(())
}

fn python(workspace: &Workspace, root: &Path) -> Result<()> {
    let mut install = workspace.command("debootstrap")?;
    install.args(["--variant=minbase", &format!("--include={PACKAGES}")]);
    // It prints a line for each package and each of their files.
    let log = workspace.cache("debootstrap.log");
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

/// Returns the checksum of a file.
fn sum(path: &Path) -> Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hasher.finalize())),
            n => hasher.update(&buffer[..n]),
        }
    }
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use tar::Archive;

    use super::*;

    #[test]
    fn an_archive_names_its_image_and_its_layer() {
        let scratch = Scratch::temporary("archive").unwrap();
        let (layer, archive) = (scratch.join("layer"), scratch.join("archive"));
        fs::write(&layer, "abc").unwrap();
        PAUSE.pack(&layer, &archive).unwrap();
        let mut archive = Archive::new(File::open(&archive).unwrap());
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut content = String::new();
            entry.read_to_string(&mut content).unwrap();
            found.push((entry.path().unwrap().display().to_string(), content));
        }
        let [(config_name, config), (_, manifest), (layer_name, layer)] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!((layer_name.as_str(), layer.as_str()), ("layer.tar", "abc"));
        let manifest: Value = serde_json::from_str(manifest).unwrap();
        assert_eq!(manifest[0]["Config"], Value::from(config_name.as_str()));
        assert_eq!(manifest[0]["RepoTags"][0], PAUSE.name);
        let config: Value = serde_json::from_str(config).unwrap();
        let sum = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(config["rootfs"]["diff_ids"][0], sum);
        assert_eq!(config["config"]["Entrypoint"][0], "/bin/busybox");
        assert_eq!(BUSYBOX.config("")["config"]["Entrypoint"], Value::Null);
    }
}
