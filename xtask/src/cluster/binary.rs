//! The programs of a cluster, compiled from `xtask/cluster` and kept in the cache.
//!
//! Compiling takes minutes, so each program is named after a hash of everything that it
//! is made from, and compiled again only if that changes. Go downloads the sources from
//! its module proxy and checks them against `go.sum`. The installed Go is used and no
//! other: `GOTOOLCHAIN` is `local` unless the environment says something else, such as
//! `auto`, which lets Go download the version that `go.mod` asks for.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use sha2::{Digest as _, Sha256};

use crate::cluster::layout::Layout;
use crate::images::hex;
use crate::process;
use crate::workspace::Workspace;

/// Where Go is looked for: on the search path, else where its own archives put it.
const PLACES: [&str; 2] = ["go", "/usr/local/go/bin/go"];

/// A program and how it is made.
#[derive(Debug)]
struct Recipe {
    name: &'static str,
    /// The directory of the sources, and the files that the program is made from. The
    /// first one lists the modules.
    sources: &'static str,
    files: &'static [&'static str],
    /// The module whose version is that of the program.
    module: &'static str,
    /// The packages that the version is written into.
    versioned: &'static [&'static str],
    /// The package that is compiled.
    package: &'static str,
    /// The directory of the module with the definitions of kinds, which are kept beside
    /// the program.
    definitions: Option<&'static str>,
    /// The time that it takes to compile.
    time: &'static str,
    /// Beginning of the program's name. The hash follows.
    prefix: &'static str,
}

/// Everything of Kubernetes in one program.
const KUBERNETES: Recipe = Recipe {
    name: "Kubernetes",
    sources: "xtask/cluster",
    files: &["go.mod", "go.sum", "main.go"],
    module: "k8s.io/kubernetes",
    versioned: &[
        "k8s.io/component-base/version",
        "k8s.io/client-go/pkg/version",
    ],
    package: ".",
    definitions: None,
    time: "about ten minutes",
    prefix: "kube-",
};

/// The controller of agent-sandbox. It is apart, because it needs other versions of
/// Kubernetes' libraries.
const AGENT_SANDBOX: Recipe = Recipe {
    name: "agent-sandbox",
    sources: "xtask/cluster/agent-sandbox",
    files: &["go.mod", "go.sum"],
    module: "sigs.k8s.io/agent-sandbox",
    versioned: &[],
    // The only one that `go.mod` calls a tool.
    package: "tool",
    definitions: Some("k8s/crds"),
    time: "about three minutes",
    prefix: "agent-sandbox-",
};

/// Fake nodes and pods, which only a benchmark uses.
const KWOK: Recipe = Recipe {
    name: "kwok",
    sources: "xtask/cluster/kwok",
    module: "sigs.k8s.io/kwok",
    definitions: None,
    prefix: "kwok-",
    ..AGENT_SANDBOX
};

/// Returns kwok, which is compiled if it is missing.
pub(super) fn kwok(workspace: &Workspace, layout: &Layout) -> Result<PathBuf> {
    Sources::read_one(workspace, &KWOK)?.compiled(layout)
}

/// The programs of a cluster, which are compiled.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) kubernetes: PathBuf,
    pub(super) agent_sandbox: PathBuf,
}

impl Programs {
    /// Compiles those that are missing.
    pub(super) fn compile(workspace: &Workspace, layout: &Layout) -> Result<Self> {
        let [kubernetes, agent_sandbox] = Sources::read(workspace)?;
        Ok(Self {
            kubernetes: kubernetes.compiled(layout)?,
            agent_sandbox: agent_sandbox.compiled(layout)?,
        })
    }

    /// Returns the file with the kinds of agent-sandbox.
    pub(super) fn definitions(&self) -> PathBuf {
        definitions_of(&self.agent_sandbox)
    }
}

fn definitions_of(program: &Path) -> PathBuf {
    program.with_extension("yaml")
}

/// The sources of a program.
#[derive(Debug)]
pub(super) struct Sources<'w> {
    workspace: &'w Workspace,
    recipe: &'static Recipe,
    directory: PathBuf,
    module: String,
    hash: String,
}

impl<'w> Sources<'w> {
    /// Reads those of all programs.
    pub(super) fn read(workspace: &'w Workspace) -> Result<[Self; 2]> {
        let read = |recipe| Self::read_one(workspace, recipe);
        Ok([read(&KUBERNETES)?, read(&AGENT_SANDBOX)?])
    }

    fn read_one(workspace: &'w Workspace, recipe: &'static Recipe) -> Result<Self> {
        let directory = workspace.root().join(recipe.sources);
        let mut contents = Vec::new();
        for name in recipe.files {
            let path = directory.join(name);
            let content = fs::read_to_string(&path);
            contents.push(content.with_context(|| format!("cannot read {}", path.display()))?);
        }
        let module = contents[0].clone();
        let flags = flags(&version(&module, recipe)?, recipe.versioned);
        contents.push(flags.join("\n"));
        contents.push(env::consts::ARCH.to_owned());
        contents.extend(recipe.definitions.map(str::to_owned));
        Ok(Self {
            workspace,
            recipe,
            directory,
            module,
            hash: hash(&contents),
        })
    }

    /// The name of the program, for people.
    pub(super) fn name(&self) -> &'static str {
        self.recipe.name
    }

    pub(super) fn is_compiled(&self, layout: &Layout) -> bool {
        self.program(layout).is_file()
    }

    /// Returns the program's path, which may not exist yet.
    fn program(&self, layout: &Layout) -> PathBuf {
        let name = format!("{}{}", self.recipe.prefix, self.hash);
        layout.beside("bin").join(name)
    }

    /// Returns the path of the program, which is compiled if it is missing.
    fn compiled(&self, layout: &Layout) -> Result<PathBuf> {
        if !self.is_compiled(layout) {
            self.compile(layout)?;
        }
        Ok(self.program(layout))
    }

    /// Returns why the program cannot be compiled here, if so.
    pub(super) fn obstacle(&self) -> Result<Option<String>> {
        let wanted = minimum(&self.module, self.recipe)?;
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
    fn compile(&self, layout: &Layout) -> Result<()> {
        if let Some(obstacle) = self.obstacle()? {
            bail!("{obstacle}");
        }
        let Recipe { name, time, .. } = self.recipe;
        let program = self.program(layout);
        let directory = layout.beside("bin");
        fs::create_dir_all(&directory)?;
        let caches = layout.beside("go");
        let fresh = directory.join("fresh");
        let version = version(&self.module, self.recipe)?;
        println!("compiling {name} {version}; this takes {time}, once");
        let mut build = self.command("build", &caches)?;
        build
            .args(flags(&version, self.recipe.versioned))
            .arg("-o")
            .arg(&fresh)
            .arg(self.recipe.package);
        process::run(&mut build).with_context(|| format!("{name} was not compiled"))?;
        let definitions = self.definitions(&caches)?;
        fs::remove_dir_all(&caches)
            .with_context(|| format!("cannot remove {}", caches.display()))?;
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let is_former = |name: &str| name.starts_with(self.recipe.prefix);
            if is_former(&entry.file_name().to_string_lossy()) {
                fs::remove_file(entry.path())?;
            }
        }
        if let Some(definitions) = definitions {
            // Before the program: where it is, they are too.
            fs::write(definitions_of(&program), definitions)?;
        }
        fs::rename(&fresh, &program).with_context(|| format!("cannot write {}", program.display()))
    }

    /// Returns the definitions of kinds as one text, if the module has some. It is in the
    /// caches.
    fn definitions(&self, caches: &Path) -> Result<Option<String>> {
        let Some(place) = self.recipe.definitions else {
            return Ok(None);
        };
        let mut ask = self.command("list", caches)?;
        ask.args(["-m", "-f", "{{.Dir}}", self.recipe.module]);
        let module = process::output(&mut ask)?;
        let directory = Path::new(module.trim_end()).join(place);
        joined(&directory).map(Some)
    }

    /// Returns a command of Go on the sources that leaves everything in `caches`.
    fn command(&self, subcommand: &str, caches: &Path) -> Result<Command> {
        let go = self.go()?.context("Go is not installed")?;
        let mut command = self.workspace.command(go)?;
        command
            .current_dir(&self.directory)
            .env("CGO_ENABLED", "0")
            .env("GOCACHE", caches.join("build"))
            .env("GOFLAGS", "-modcacherw")
            .env("GOMODCACHE", caches.join("modules"))
            .env("GOTOOLCHAIN", toolchain())
            .env("GOWORK", "off")
            .arg(subcommand);
        Ok(command)
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

/// Returns the files of a directory as one text, in the order of their names. Each of
/// them must begin a document of YAML.
fn joined(directory: &Path) -> Result<String> {
    let read = || {
        let entries = fs::read_dir(directory)?;
        let files: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.path())).collect();
        let mut files = files?;
        files.sort();
        files.into_iter().map(fs::read_to_string).collect()
    };
    let texts: io::Result<Vec<String>> = read();
    let texts = texts.with_context(|| format!("cannot read {}", directory.display()))?;
    let is_fine = |text: &String| text.starts_with("---\n") && text.ends_with('\n');
    ensure!(
        !texts.is_empty() && texts.iter().all(is_fine),
        "{} has no documents that can be joined",
        directory.display()
    );
    Ok(texts.concat())
}

/// Returns the version of a program that a list of modules requires, as in `1.36.3`.
fn version(module: &str, recipe: &Recipe) -> Result<String> {
    let Recipe {
        sources,
        module: wanted,
        ..
    } = recipe;
    let version = |line: &str| {
        let version = line.trim().strip_prefix(wanted)?.strip_prefix(" v")?;
        Some(version.split_whitespace().next()?.to_owned())
    };
    let found = module.lines().find_map(version);
    found.with_context(|| format!("{sources}/go.mod does not require {wanted}"))
}

/// Returns the oldest version of Go that can compile a module.
fn minimum<'m>(module: &'m str, recipe: &Recipe) -> Result<&'m str> {
    let mut lines = module.lines();
    let found = lines.find_map(|line| line.strip_prefix("go "));
    found.with_context(|| format!("{}/go.mod names no version of Go", recipe.sources))
}

/// Returns the flags of `go build`: nothing of this machine is in the program, and its
/// parts know their version.
fn flags(version: &str, versioned: &[&str]) -> Vec<String> {
    let mut numbers = version.split('.');
    let mut next = || numbers.next().unwrap_or_default();
    let (major, minor) = (next(), next());
    let mut linker = "-s -w".to_owned();
    for package in versioned {
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
    use super::*;
    use crate::scratch::Scratch;

    const MODULE: &str = "module x\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/kubectl v0.0.0\n\
                          \tk8s.io/kubernetes v1.36.3\n)\n";

    #[test]
    fn a_module_tells_its_versions() {
        assert_eq!(version(MODULE, &KUBERNETES).unwrap(), "1.36.3");
        assert_eq!(minimum(MODULE, &KUBERNETES).unwrap(), "1.26.0");
        let error = version(MODULE, &AGENT_SANDBOX).unwrap_err().to_string();
        assert!(
            error.contains("xtask/cluster/agent-sandbox/go.mod"),
            "{error}"
        );
        assert!(minimum("module x", &KUBERNETES).is_err());
    }

    #[test]
    fn every_program_is_named_after_its_sources() {
        let workspace = Workspace::discover().unwrap();
        let layout = Layout::at(Path::new("/c")).unwrap();
        let mut programs = Vec::from(Sources::read(&workspace).unwrap());
        programs.push(Sources::read_one(&workspace, &KWOK).unwrap());
        let prefixes = ["kube-", "agent-sandbox-", "kwok-"];
        for (sources, prefix) in programs.iter().zip(prefixes) {
            let program = sources.program(&layout).display().to_string();
            let hash = program.strip_prefix("/c/bin/").unwrap();
            let hash = hash.strip_prefix(prefix).unwrap();
            assert_eq!(hash.len(), 16, "{program}");
            assert!(!sources.is_compiled(&layout));
        }
    }

    #[test]
    fn definitions_are_joined_in_the_order_of_their_names() {
        let scratch = Scratch::temporary("definitions").unwrap();
        assert!(joined(&scratch).is_err());
        fs::write(scratch.join("b"), "---\nb: 1\n").unwrap();
        fs::write(scratch.join("a"), "---\na: 1\n").unwrap();
        assert_eq!(joined(&scratch).unwrap(), "---\na: 1\n---\nb: 1\n");
        fs::write(scratch.join("c"), "c: 1\n").unwrap();
        let error = joined(&scratch).unwrap_err().to_string();
        assert!(error.contains("can be joined"), "{error}");
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
        let flags = flags("1.36.3", KUBERNETES.versioned).join(" ");
        let expected = "-X k8s.io/component-base/version.gitVersion=v1.36.3 \
                        -X k8s.io/component-base/version.gitMajor=1 \
                        -X k8s.io/component-base/version.gitMinor=36";
        assert!(flags.contains(expected), "{flags}");
    }
}
