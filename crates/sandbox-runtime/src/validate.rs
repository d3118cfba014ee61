//! Validation of a runtime's fields.
//!
//! Every field ends up in a Dockerfile, on an installer's command line or in an image's
//! configuration. So each has a grammar that must match the whole text. Nothing is
//! sanitized.

use std::sync::LazyLock;

use backend_core::{Quoted, Result};
use regex::Regex;

use crate::error;
use crate::runtime::{PackageManager, Runtime};

/// A grammar that is compiled on first use.
type Grammar = LazyLock<Option<Regex>>;

macro_rules! grammar {
    ($name:ident, $pattern:expr) => {
        // These anchors match only at the ends of the text: `$` would accept a trailing
        // newline.
        static $name: Grammar =
            LazyLock::new(|| Regex::new(concat!(r"\A(?:", $pattern, r")\z")).ok());
    };
}

grammar!(NAME, r"[a-z0-9][a-z0-9._-]{0,62}");
grammar!(ENV_NAME, r"[A-Za-z_][A-Za-z0-9_]*");
grammar!(WORK_DIR, r"/|(?:/[A-Za-z0-9._+@-]+)+");
// Name, extras, and comparisons joined by commas.
grammar!(
    PIP,
    concat!(
        r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?",
        r"(?:\[[A-Za-z0-9._-]+(?: ?, ?[A-Za-z0-9._-]+)*\])?",
        r"(?: ?(?:===|==|~=|!=|<=|>=|<|>) ?[A-Za-z0-9][A-Za-z0-9.*+!_-]*",
        r"(?: ?, ?(?:===|==|~=|!=|<=|>=|<|>) ?[A-Za-z0-9][A-Za-z0-9.*+!_-]*)*)?"
    )
);
// Scope, name, and a version, range or tag.
grammar!(
    NPM,
    concat!(
        r"(?:@[a-z0-9~-][a-z0-9._~-]*/)?[A-Za-z0-9~][A-Za-z0-9._~-]*",
        r"(?:@[A-Za-z0-9^~<>=*][A-Za-z0-9.^~<>=*|+ -]*)?"
    )
);
// Name, architecture, and a version or a release.
grammar!(
    APT,
    concat!(
        r"[a-z0-9][a-z0-9+.-]*[a-z0-9+](?::[a-z0-9-]*[a-z0-9])?",
        r"(?:=[A-Za-z0-9][A-Za-z0-9.+~:*-]*|/[a-z0-9][a-z0-9.-]*)?"
    )
);
// Name, and a version or a requirement.
grammar!(
    CARGO,
    r"[A-Za-z][A-Za-z0-9_-]*(?:@[0-9^~<>=*][0-9A-Za-z.^~<>=*+, -]*)?"
);
// The reference grammar of registries: host, path, tag, digest.
grammar!(
    REFERENCE,
    concat!(
        r"(?:(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?",
        r"(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?/)?",
        r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*",
        r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?",
        r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,128})?"
    )
);

/// The longest field. Old daemons refuse lines of 64 KiB.
const LONGEST: usize = 4096;
/// The longest lists. An image may have 127 layers.
const MOST_COMMANDS: usize = 64;
const MOST_PACKAGES: usize = 256;
const MOST_VARIABLES: usize = 128;
/// The largest uid that Docker accepts.
const LARGEST_UID: u32 = i32::MAX as u32;

/// Directories that belong to the system and not to an unprivileged user.
pub const SYSTEM_DIRECTORIES: [&str; 18] = [
    "/",
    "/bin",
    "/boot",
    "/etc",
    "/home",
    "/lib",
    "/lib64",
    "/media",
    "/mnt",
    "/opt",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/tmp",
    "/usr",
    "/usr/local",
    "/var",
];

fn fits(grammar: &Grammar, text: &str) -> bool {
    text.len() <= LONGEST
        && grammar
            .as_ref()
            .is_some_and(|grammar| grammar.is_match(text))
}

impl Runtime {
    /// Checks every field. Valid fields cannot add an instruction, a flag or a shell
    /// command to the build.
    ///
    /// # Errors
    ///
    /// `Config`, with the runtime, the field and its valid values.
    pub fn validate(&self) -> Result<()> {
        fields(self).map_err(|wrong| error::of_runtime(&self.name, &wrong))
    }
}

fn fields(runtime: &Runtime) -> Result<(), String> {
    if !fits(&NAME, &runtime.name) {
        return Err(
            "that is not a valid name; use at most 63 lowercase letters, digits, '-', '_' and '.'"
                .to_owned(),
        );
    }
    start(runtime)?;
    for manager in PackageManager::ALL {
        let packages = runtime.packages.of(manager);
        at_most(
            &format!("packages.{manager}"),
            packages.len(),
            MOST_PACKAGES,
        )?;
        for (index, written) in packages.iter().enumerate() {
            package(manager, written)
                .map_err(|wrong| format!("packages.{manager}[{index}]: {wrong}"))?;
        }
    }
    at_most(
        "setup_commands",
        runtime.setup_commands.len(),
        MOST_COMMANDS,
    )?;
    for (index, command) in runtime.setup_commands.iter().enumerate() {
        one_line(command).map_err(|wrong| format!("setup_commands[{index}]: {wrong}"))?;
        if command.trim().is_empty() {
            return Err(format!("setup_commands[{index}]: it is empty; remove it"));
        }
    }
    at_most("env_vars", runtime.env_vars.len(), MOST_VARIABLES)?;
    for (name, value) in &runtime.env_vars {
        if !fits(&ENV_NAME, name) {
            return Err(format!(
                "env_vars: {} is not a valid variable name; write letters, digits and '_', no digit first",
                Quoted::new(name)
            ));
        }
        one_line(value).map_err(|wrong| format!("env_vars.{name}: {wrong}"))?;
    }
    work_dir(&runtime.work_dir, runtime.run_as_uid.is_some())
        .map_err(|wrong| format!("work_dir: {wrong}"))?;
    match runtime.run_as_uid {
        Some(uid) if uid == 0 || uid > LARGEST_UID => Err(format!(
            "run_as_uid: {uid} is not an unprivileged user; write a number from 1 to {LARGEST_UID}"
        )),
        _ => Ok(()),
    }
}

/// Checks that there is either an image or a base image, and no field that does not
/// apply to it.
fn start(runtime: &Runtime) -> Result<(), String> {
    match (&runtime.image, &runtime.base_image) {
        (Some(_), Some(_)) => Err(
            "image and base_image are both given; keep image to use it as it is, \
             base_image to build upon it"
                .to_owned(),
        ),
        (None, None) => Err("neither image nor base_image is given; write one of them".to_owned()),
        (Some(image), None) => {
            reference(image).map_err(|wrong| format!("image: {wrong}"))?;
            if runtime.packages.is_empty() && runtime.setup_commands.is_empty() {
                return Ok(());
            }
            Err(
                "an image that is used as it is gets no packages and no setup_commands; \
                 write base_image to build upon it"
                    .to_owned(),
            )
        }
        (None, Some(base)) => reference(base).map_err(|wrong| format!("base_image: {wrong}")),
    }
}

pub(crate) fn reference(text: &str) -> Result<(), String> {
    if text == "scratch" {
        return Err(
            "'scratch' holds nothing that could run; name an image with a shell".to_owned(),
        );
    }
    if text.len() <= 512 && fits(&REFERENCE, text) {
        return Ok(());
    }
    Err(format!(
        "{} is not a valid image name; write one like python:3.12-slim or registry.example/team/image:1",
        Quoted::new(text)
    ))
}

fn package(manager: PackageManager, written: &str) -> Result<(), String> {
    let (grammar, example) = match manager {
        PackageManager::Apt => (&APT, "jq, jq=1.6* or jq/bookworm-backports"),
        PackageManager::Pip => (&PIP, "numpy, numpy==2.1.0 or uvicorn[standard]>=0.30,<1"),
        PackageManager::Npm => (&NPM, "tsx, tsx@4.19.0 or @types/react@^18"),
        PackageManager::Cargo => (&CARGO, "just or just@1.40.0"),
    };
    if fits(grammar, written) && !names_a_file(manager, written) {
        return Ok(());
    }
    Err(format!(
        "{} is not a valid {manager} package; write one like {example}, \
         or use a setup command for anything else",
        Quoted::new(written)
    ))
}

/// Whether a package name has an ending that pip and npm take for a local file.
fn names_a_file(manager: PackageManager, written: &str) -> bool {
    const ARCHIVES: [&str; 8] = [
        ".tgz", ".tar", ".tar.gz", ".tar.bz2", ".tar.xz", ".zip", ".whl", ".tbz",
    ];
    let lower = written.to_ascii_lowercase();
    matches!(manager, PackageManager::Pip | PackageManager::Npm)
        && ARCHIVES.iter().any(|ending| lower.ends_with(ending))
}

fn one_line(text: &str) -> Result<(), String> {
    if text.len() > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes; shorten it"));
    }
    match text.chars().find(|&c| c.is_control() && c != '\t') {
        None => Ok(()),
        Some(c) => Err(format!(
            "it holds the control character '{}'; write it in one line, joined by '&&'",
            c.escape_default()
        )),
    }
}

fn work_dir(text: &str, for_user: bool) -> Result<(), String> {
    let parts_fit = !text.split('/').any(|part| part == "." || part == "..");
    if text.len() > 256 || !fits(&WORK_DIR, text) || !parts_fit {
        return Err(format!(
            "{} is not a plain absolute path; write letters, digits and '/._+@-', \
             no '..' and no '/' at the end",
            Quoted::new(text)
        ));
    }
    let beneath = |top: &str| {
        text.strip_prefix(top)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if ["/dev", "/proc", "/sys"].into_iter().any(beneath) {
        return Err(format!(
            "{text} belongs to the kernel; choose one like /workspace"
        ));
    }
    if for_user && SYSTEM_DIRECTORIES.contains(&text) {
        return Err(format!(
            "{text} belongs to the system and cannot be given to run_as_uid; \
             choose one like /workspace"
        ));
    }
    Ok(())
}

fn at_most(field: &str, count: usize, most: usize) -> Result<(), String> {
    if count <= most {
        return Ok(());
    }
    Err(format!(
        "{field}: {count} are more than {most}; make a base image of your own"
    ))
}

#[cfg(test)]
mod tests;
