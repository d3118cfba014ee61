//! The Dockerfile of a runtime, and the name of the image that it builds.
//!
//! Commands are written in the JSON form only: no shell and no Dockerfile parser ever
//! looks into an argument, so a field cannot introduce quotes, line continuations,
//! here-documents or redirections. A script that needs a shell gets its arguments as
//! `"$@"`. The file starts with `FROM`, so nothing can be a parser directive, and no
//! frontend is fetched.

use std::fmt;

use backend_core::Result;
use backend_core::ops::ContentHash;

use crate::error;
use crate::runtime::{PackageManager, Runtime};

/// The repository of the images that are built for runtimes.
pub const REPOSITORY: &str = "agentbox-runtime";

/// The label that names the runtime an image was built for.
pub const LABEL: &str = "agentbox.runtime";

/// Mount point of the build's own files. `/dev` is in memory during a build, so not
/// even an empty mount point is left in a layer.
pub const TOOLS_DIR: &str = "/dev/agentbox";
/// The directory of the build context that is mounted at [`TOOLS_DIR`].
pub const TOOLS_SOURCE: &str = "agentbox";

/// The longest line that every daemon accepts.
const LONGEST_LINE: usize = 60_000;

/// Options for generating a Dockerfile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// Downloads are kept in BuildKit's cache mounts instead of being discarded.
    pub cache_mounts: bool,
    /// Commands run with the files in [`TOOLS_DIR`].
    pub tools: bool,
}

/// The pip command, with its variables. pip refuses to touch a Python that is managed
/// by a distribution unless this is set.
const PIP: [&str; 6] = [
    "env",
    "PIP_BREAK_SYSTEM_PACKAGES=1",
    "PIP_DISABLE_PIP_VERSION_CHECK=1",
    "PIP_ROOT_USER_ACTION=ignore",
    "pip",
    "install",
];

const APT: &str = "apt-get update && DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends -- \"$@\"";
const NPM: &str = "npm install --no-audit --no-fund -- \"$@\"";
const CARGO: &str = "cargo install --locked --root /usr/local -- \"$@\"";

/// Shell commands that remove the downloads a cache mount would have kept out of the
/// layer.
const APT_CLEAN: &str = " && apt-get clean && rm -rf /var/lib/apt/lists/*";
const NPM_CLEAN: &str = " && npm cache clean --force";
const CARGO_CLEAN: &str = " && rm -rf \"${CARGO_HOME:-$HOME/.cargo}/registry\"";

/// Adds the user `$1` unless the base image has that uid, and gives it a home, the work
/// directory `$2`, and a virtual environment where there is Python. It does not call
/// `useradd`, which half of the small images lack.
const USER: &str = "set -e; \
    cut -d: -f3 /etc/passwd 2>/dev/null | grep -qx \"$1\" \
    || echo \"agent:x:$1:$1::/home/agent:/bin/sh\" >>/etc/passwd; \
    cut -d: -f3 /etc/group 2>/dev/null | grep -qx \"$1\" \
    || echo \"agent:x:$1:\" >>/etc/group; \
    mkdir -p /home/agent \"$2\"; chown \"$1:$1\" /home/agent; chown $3 \"$1:$1\" \"$2\"; \
    if python3 -c 'import venv, ensurepip' 2>/dev/null; \
    then python3 -m venv --system-site-packages /opt/venv; \
    elif python3 -c 'import venv' 2>/dev/null; \
    then python3 -m venv --system-site-packages --without-pip /opt/venv; fi; \
    if [ -d /opt/venv ]; then chown -R \"$1:$1\" /opt/venv; fi";

/// One line of a Dockerfile. Values are unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Instruction {
    From(String),
    Run {
        mounts: Vec<String>,
        argv: Vec<String>,
    },
    Env {
        name: String,
        value: String,
    },
    /// The runtime the image is built for.
    Label(String),
    /// A directory put in front of the base image's `PATH`.
    Path(String),
    WorkDir(String),
    User(u32),
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::From(image) => write!(f, "FROM {image}"),
            Self::Run { mounts, argv } => {
                f.write_str("RUN ")?;
                for mount in mounts {
                    write!(f, "--mount={mount} ")?;
                }
                f.write_str("[")?;
                for (index, argument) in argv.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{}", serde_json::Value::from(argument.as_str()))?;
                }
                f.write_str("]")
            }
            Self::Env { name, value } => {
                write!(f, "ENV {name}=\"")?;
                for c in value.chars() {
                    if matches!(c, '\\' | '"' | '$') {
                        f.write_str("\\")?;
                    }
                    write!(f, "{c}")?;
                }
                f.write_str("\"")
            }
            Self::Label(runtime) => write!(f, "LABEL {LABEL}=\"{runtime}\""),
            Self::Path(first) => write!(f, "ENV PATH=\"{first}:$PATH\""),
            Self::WorkDir(path) => write!(f, "WORKDIR {path}"),
            Self::User(uid) => write!(f, "USER {uid}:{uid}"),
        }
    }
}

impl Runtime {
    /// Returns the Dockerfile that this runtime's image is built from, or `None` if its
    /// image is used as it is.
    ///
    /// # Errors
    ///
    /// `Config` if the runtime is not valid.
    pub fn dockerfile(&self, style: Style) -> Result<Option<String>> {
        let Some(instructions) = instructions(self, style)? else {
            return Ok(None);
        };
        let mut text = String::new();
        for instruction in instructions {
            let line = instruction.to_string();
            if line.len() > LONGEST_LINE {
                let problem = format!(
                    "one instruction would take {} bytes; make a base image of your own",
                    line.len()
                );
                return Err(error::of_runtime(&self.name, &problem));
            }
            text.push_str(&line);
            text.push('\n');
        }
        Ok(Some(text))
    }

    /// Returns the name of this runtime's image: the one it specifies, or one made of
    /// the runtime's name and a hash of everything that determines the content of the
    /// build. Neither the description nor the [`Style`] changes it.
    ///
    /// ```
    /// use sandbox_runtime::Runtime;
    ///
    /// let web = Runtime::builtin("python-web")?;
    /// assert!(web.image_name()?.starts_with("agentbox-runtime:python-web-"));
    /// assert_eq!(Runtime::builtin("rust")?.image_name()?, "rust:1-slim");
    /// # Ok::<(), backend_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Config` if the runtime is not valid.
    pub fn image_name(&self) -> Result<String> {
        let Some(text) = self.dockerfile(Style::default())? else {
            return self.image.clone().ok_or_else(|| {
                error::config("a runtime has neither image nor base_image; write one of them")
            });
        };
        let mut hash = ContentHash::of(text.as_bytes()).to_string();
        hash.truncate(12);
        Ok(format!("{REPOSITORY}:{}-{hash}", self.name))
    }
}

/// Counts the steps that BuildKit makes of a file; the other instructions change only
/// the configuration. BuildKit reports a total too, but with the numbers of any build
/// that shares the step.
pub fn buildkit_steps(text: &str) -> u32 {
    let steps = text.lines().filter(|line| {
        let keyword = line.split(' ').next();
        matches!(keyword, Some("FROM" | "RUN" | "WORKDIR"))
    });
    u32::try_from(steps.count()).unwrap_or(u32::MAX)
}

fn instructions(runtime: &Runtime, style: Style) -> Result<Option<Vec<Instruction>>> {
    runtime.validate()?;
    let Some(base) = &runtime.base_image else {
        return Ok(None);
    };
    // The label comes first, so that an image left by a failed build has it too.
    let mut all = vec![
        Instruction::From(base.clone()),
        Instruction::Label(runtime.name.clone()),
    ];
    for command in &runtime.setup_commands {
        all.push(run(style, &[], ["/bin/sh", "-c", command.as_str()]));
    }
    for manager in PackageManager::ALL {
        let packages = runtime.packages.of(manager);
        if packages.is_empty() {
            continue;
        }
        if manager == PackageManager::Npm {
            all.push(Instruction::WorkDir(runtime.work_dir.clone()));
        }
        all.push(install(manager, packages, style));
    }
    if let Some(uid) = runtime.run_as_uid {
        user(uid, runtime, style, &mut all);
    }
    for (name, value) in &runtime.env_vars {
        all.push(env(name, value));
    }
    all.push(Instruction::WorkDir(runtime.work_dir.clone()));
    if let Some(uid) = runtime.run_as_uid {
        all.push(Instruction::User(uid));
    }
    Ok(Some(all))
}

/// A `RUN` instruction with its mounts, and with the build's own files if there are
/// any.
fn run<'a>(
    style: Style,
    caches: &[(&str, &str)],
    argv: impl IntoIterator<Item = &'a str>,
) -> Instruction {
    let mut mounts = Vec::new();
    let mut words: Vec<String> = Vec::new();
    if style.tools {
        mounts.push(format!(
            "type=bind,source={TOOLS_SOURCE},target={TOOLS_DIR}"
        ));
        words.push(format!("{TOOLS_DIR}/run"));
    }
    if style.cache_mounts {
        for (id, target) in caches {
            mounts.push(format!(
                "type=cache,id=agentbox-{id},target={target},sharing=locked"
            ));
        }
    }
    words.extend(argv.into_iter().map(str::to_owned));
    Instruction::Run {
        mounts,
        argv: words,
    }
}

fn install(manager: PackageManager, packages: &[String], style: Style) -> Instruction {
    let packages = packages.iter().map(String::as_str);
    let (script, clean, caches): (_, _, &[_]) = match manager {
        PackageManager::Pip => {
            let uncached = (!style.cache_mounts).then_some("--no-cache-dir");
            let options = uncached.into_iter().chain(["--"]);
            let argv = PIP.into_iter().chain(options).chain(packages);
            return run(style, &[("pip", "/root/.cache/pip")], argv);
        }
        PackageManager::Apt => (
            APT,
            APT_CLEAN,
            &[
                ("apt", "/var/cache/apt"),
                ("apt-lists", "/var/lib/apt/lists"),
            ],
        ),
        PackageManager::Npm => (NPM, NPM_CLEAN, &[("npm", "/root/.npm")]),
        PackageManager::Cargo => {
            let caches = &[("cargo", "/usr/local/cargo/registry")];
            (CARGO, CARGO_CLEAN, caches)
        }
    };
    let clean = if style.cache_mounts { "" } else { clean };
    let script = format!("{script}{clean}");
    shell(style, caches, &script, manager.name(), packages)
}

/// A `RUN` instruction for a fixed script that gets its arguments as `"$@"`.
fn shell<'a>(
    style: Style,
    caches: &[(&str, &str)],
    script: &'a str,
    name: &'a str,
    arguments: impl Iterator<Item = &'a str>,
) -> Instruction {
    let argv = ["/bin/sh", "-c", script, name].into_iter().chain(arguments);
    run(style, caches, argv)
}

fn user(uid: u32, runtime: &Runtime, style: Style, all: &mut Vec<Instruction>) {
    // Files that npm put into the work directory belong to the user as well.
    let depth = if runtime.packages.npm.is_empty() {
        "--"
    } else {
        "-R"
    };
    let number = uid.to_string();
    let arguments = [number.as_str(), runtime.work_dir.as_str(), depth];
    all.push(shell(style, &[], USER, "user", arguments.into_iter()));
    all.extend([
        env("HOME", "/home/agent"),
        env("UV_SYSTEM_PYTHON", "0"),
        env("VIRTUAL_ENV", "/opt/venv"),
        Instruction::Path("/opt/venv/bin".to_owned()),
    ]);
}

fn env(name: &str, value: &str) -> Instruction {
    Instruction::Env {
        name: name.to_owned(),
        value: value.to_owned(),
    }
}

#[cfg(test)]
mod tests;
