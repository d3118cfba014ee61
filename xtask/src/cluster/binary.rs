//! Kubernetes as one program, compiled from `xtask/cluster` and kept in the cache.
//!
//! Compiling takes minutes, so the program is named after a hash of everything that it
//! is made from, and compiled again only if that changes. Go downloads the sources from
//! its module proxy and checks them against `go.sum`. The installed Go is used and no
//! other: `GOTOOLCHAIN` is `local` unless the environment says something else, such as
//! `auto`, which lets Go download the version that `go.mod` asks for.

use std::env;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use crate::cluster::layout::Layout;
use crate::images::hex;
use crate::process;
use crate::workspace::Workspace;

/// The directory of the sources, and the files that the program is made from.
const SOURCES: &str = "xtask/cluster";
const FILES: [&str; 3] = ["go.mod", "go.sum", "main.go"];

/// Where Go is looked for: on the search path, else where its own archives put it.
const PLACES: [&str; 2] = ["go", "/usr/local/go/bin/go"];

/// The module whose version is that of the cluster.
const KUBERNETES: &str = "k8s.io/kubernetes";

/// The packages that a version is written into.
const VERSIONED: [&str; 2] = [
    "k8s.io/component-base/version",
    "k8s.io/client-go/pkg/version",
];

/// Beginning of the program's name. The hash follows.
const PREFIX: &str = "kube-";

/// The sources of the program.
#[derive(Debug)]
pub(super) struct Sources<'w> {
    workspace: &'w Workspace,
    directory: PathBuf,
    module: String,
    hash: String,
}

impl<'w> Sources<'w> {
    pub(super) fn read(workspace: &'w Workspace) -> Result<Self> {
        let directory = workspace.root().join(SOURCES);
        let mut contents = Vec::new();
        for name in FILES {
            let path = directory.join(name);
            let content = fs::read_to_string(&path);
            contents.push(content.with_context(|| format!("cannot read {}", path.display()))?);
        }
        let module = contents[0].clone();
        let flags = flags(&version(&module)?);
        contents.push(flags.join("\n"));
        contents.push(env::consts::ARCH.to_owned());
        Ok(Self {
            workspace,
            directory,
            module,
            hash: hash(&contents),
        })
    }

    /// Returns the program's path, which may not exist yet.
    pub(super) fn program(&self, layout: &Layout) -> PathBuf {
        layout.beside("bin").join(format!("{PREFIX}{}", self.hash))
    }

    /// Returns why the program cannot be compiled here, if so.
    pub(super) fn obstacle(&self) -> Result<Option<String>> {
        let wanted = minimum(&self.module)?;
        let Some(go) = self.go()? else {
            return Ok(Some(format!(
                "Go is not installed, which compiles it; install Go {wanted} or newer"
            )));
        };
        let mut ask = self.workspace.command(go)?;
        ask.current_dir(&self.directory)
            .env("GOTOOLCHAIN", toolchain())
            .arg("version");
        let printed = process::output(&mut ask)?;
        let found = installed(&printed).unwrap_or_default();
        Ok((numbers(found) < numbers(wanted)).then(|| {
            format!("Go {found} is too old; install Go {wanted} or newer, or set GOTOOLCHAIN=auto")
        }))
    }

    /// Compiles the program, and removes those of other sources. A failed attempt leaves
    /// its downloads, and the next one continues there.
    pub(super) fn compile(&self, layout: &Layout) -> Result<()> {
        if let Some(obstacle) = self.obstacle()? {
            bail!("{obstacle}");
        }
        let go = self.go()?.context("Go is not installed")?;
        let program = self.program(layout);
        let directory = layout.beside("bin");
        fs::create_dir_all(&directory)?;
        let caches = layout.beside("go");
        let fresh = directory.join("fresh");
        let version = version(&self.module)?;
        println!("compiling Kubernetes {version}; this takes about ten minutes, once");
        let mut build = self.workspace.command(go)?;
        build
            .current_dir(&self.directory)
            .env("CGO_ENABLED", "0")
            .env("GOCACHE", caches.join("build"))
            .env("GOFLAGS", "-modcacherw")
            .env("GOMODCACHE", caches.join("modules"))
            .env("GOTOOLCHAIN", toolchain())
            .env("GOWORK", "off")
            .arg("build")
            .args(flags(&version))
            .arg("-o")
            .arg(&fresh)
            .arg(".");
        process::run(&mut build).context("Kubernetes was not compiled")?;
        fs::remove_dir_all(&caches)
            .with_context(|| format!("cannot remove {}", caches.display()))?;
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                fs::remove_file(entry.path())?;
            }
        }
        fs::rename(&fresh, &program).with_context(|| format!("cannot write {}", program.display()))
    }

    fn go(&self) -> Result<Option<&'static str>> {
        for place in PLACES {
            if self.workspace.has_program(place)? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }
}

/// Returns the version of Kubernetes that a list of modules requires, as in `1.36.3`.
fn version(module: &str) -> Result<String> {
    let version = |line: &str| {
        let version = line.trim().strip_prefix(KUBERNETES)?.strip_prefix(" v")?;
        Some(version.split_whitespace().next()?.to_owned())
    };
    let found = module.lines().find_map(version);
    found.with_context(|| format!("{SOURCES}/go.mod does not require {KUBERNETES}"))
}

/// Returns the oldest version of Go that can compile a module.
fn minimum(module: &str) -> Result<&str> {
    let mut lines = module.lines();
    let found = lines.find_map(|line| line.strip_prefix("go "));
    found.with_context(|| format!("{SOURCES}/go.mod names no version of Go"))
}

/// Returns the flags of `go build`: nothing of this machine is in the program, and its
/// parts know their version.
fn flags(version: &str) -> Vec<String> {
    let mut numbers = version.split('.');
    let mut next = || numbers.next().unwrap_or_default();
    let (major, minor) = (next(), next());
    let mut linker = "-s -w".to_owned();
    for package in VERSIONED {
        linker += &format!(
            " -X {package}.gitVersion=v{version} -X {package}.gitMajor={major} \
             -X {package}.gitMinor={minor}"
        );
    }
    let fixed = ["-trimpath", "-buildvcs=false", "-ldflags"];
    fixed
        .into_iter()
        .map(str::to_owned)
        .chain([linker])
        .collect()
}

fn toolchain() -> String {
    env::var("GOTOOLCHAIN").unwrap_or_else(|_| "local".to_owned())
}

/// Returns the version in the output of `go version`.
fn installed(printed: &str) -> Option<&str> {
    printed.split_whitespace().nth(2)?.strip_prefix("go")
}

/// Returns the numbers of a version. Anything after them, as in `1.27rc1`, is left out.
fn numbers(version: &str) -> Vec<u32> {
    let number = |part: &str| {
        let end = part.find(|c: char| !c.is_ascii_digit());
        part[..end.unwrap_or(part.len())].parse().unwrap_or(0)
    };
    version.split('.').map(number).collect()
}

/// Returns a hash of texts that differs if one of them, or their borders, differ.
fn hash(texts: &[String]) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        hasher.update(text.len().to_le_bytes());
        hasher.update(text);
    }
    hex(&hasher.finalize()[..8])
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const MODULE: &str = "module x\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/kubectl v0.0.0\n\
                          \tk8s.io/kubernetes v1.36.3\n)\n";

    #[test]
    fn a_module_tells_its_versions() {
        assert_eq!(version(MODULE).unwrap(), "1.36.3");
        assert_eq!(minimum(MODULE).unwrap(), "1.26.0");
        assert!(version("module x").is_err() && minimum("module x").is_err());
    }

    #[test]
    fn this_module_is_read() {
        let workspace = Workspace::discover().unwrap();
        let sources = Sources::read(&workspace).unwrap();
        let layout = Layout::at(Path::new("/c")).unwrap();
        let program = sources.program(&layout).display().to_string();
        assert!(program.starts_with("/c/bin/kube-"), "{program}");
        assert_eq!(program.len(), "/c/bin/kube-".len() + 16);
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        let printed = "go version go1.26.8 linux/amd64\n";
        assert_eq!(installed(printed), Some("1.26.8"));
        assert_eq!(installed("nonsense"), None);
        assert!(numbers("1.26.8") > numbers("1.26.0"));
        assert!(numbers("1.9") < numbers("1.26.0"));
        assert!(numbers("1.27rc1") > numbers("1.26.0"));
        assert!(numbers("") < numbers("1.26.0"));
    }

    #[test]
    fn every_input_counts() {
        let hash = |texts: &[&str]| {
            let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
            hash(&texts)
        };
        assert_eq!(hash(&["a", "b"]), hash(&["a", "b"]));
        assert_ne!(hash(&["a", "b"]), hash(&["ab", ""]));
        assert_ne!(hash(&["a", "b"]), hash(&["b", "a"]));
    }

    #[test]
    fn a_program_knows_its_version() {
        let flags = flags("1.36.3").join(" ");
        let expected = "-X k8s.io/component-base/version.gitVersion=v1.36.3 \
                        -X k8s.io/component-base/version.gitMajor=1 \
                        -X k8s.io/component-base/version.gitMinor=36";
        assert!(flags.contains(expected), "{flags}");
    }
}
