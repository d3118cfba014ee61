//! Files and directories that the user names.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::exit::{Failure, usage};
use crate::system;

/// Maximum size of a file with settings.
const FILE_BYTES: u64 = 1024 * 1024;

/// Reads a text file of limited size.
pub(crate) fn read_text(path: &Path, what: &str) -> Result<String, Failure> {
    let shown = path.display();
    let cannot = |error: io::Error| {
        let fix = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "make it readable for your user (chmod), or name another"
            }
            _ => "name another",
        };
        usage!("the {what} {shown} cannot be read: {error}; {fix}")
    };
    let mut text = String::new();
    let file = File::open(path).map_err(cannot)?;
    file.take(FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(cannot)?;
    if text.len() as u64 > FILE_BYTES {
        return Err(usage!(
            "the {what} {shown} has more than {FILE_BYTES} bytes; give another"
        ));
    }
    Ok(text)
}

/// Reads a TOML file. An error names the line.
pub(crate) fn read_toml<T: DeserializeOwned>(path: &Path, what: &str) -> Result<T, Failure> {
    let text = read_text(path, what)?;
    toml::from_str(&text).map_err(|error: toml::de::Error| {
        let start = error.span().map_or(0, |span| span.start);
        let before = text.get(..start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let (shown, message) = (path.display(), error.message());
        usage!("{shown}:{line}: {message}; correct it there")
    })
}

/// Returns the path that the user wrote, joined to `directory` if it is relative.
/// Expands `~`: shells do not expand it after a colon, and files are read without a
/// shell.
pub(crate) fn resolve_path(path: &str, directory: &Path) -> PathBuf {
    let home = || system::variable("HOME").map(PathBuf::from);
    let beneath = match path {
        "~" => Some(""),
        path => path.strip_prefix("~/"),
    };
    let path = match beneath.zip(home()) {
        Some((beneath, home)) => home.join(beneath),
        None => directory.join(path),
    };
    // Removes `/.`, which is redundant and would be shown to the user.
    path.components().collect()
}

/// Returns a path without `..`, as far as its directories are there. A link at its end
/// stays one.
pub(crate) fn resolve_parent_dirs(path: &Path) -> PathBuf {
    let climbs = path.components().any(|part| part == Component::ParentDir);
    let canonical = |path: &Path| path.canonicalize().ok().filter(|_| climbs);
    let found = match (path.parent(), path.file_name()) {
        (Some(directory), Some(name)) => canonical(directory).map(|found| found.join(name)),
        _ => canonical(path),
    };
    found.unwrap_or_else(|| path.to_owned())
}

/// Returns this program's directory: in the one a variable names, or in the home.
pub(crate) fn user_directory(name: &str, usual: &str) -> Option<PathBuf> {
    user_directory_of(system::variable, name, usual)
}

/// Does the same with the given variables.
pub(crate) fn user_directory_of(
    variable: impl Fn(&str) -> Option<OsString>,
    name: &str,
    usual: &str,
) -> Option<PathBuf> {
    let path = |name| Some(PathBuf::from(variable(name)?)).filter(|path| path.is_absolute());
    let base = path(name).or_else(|| Some(path("HOME")?.join(usual)))?;
    Some(base.join("agentbox"))
}

/// Makes a path that the user wrote on the command line absolute.
pub(crate) fn from_here(path: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    resolve_path(path, &here).to_string_lossy().into_owned()
}
