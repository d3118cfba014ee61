//! Packages of Python and Node, installed into the cache.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::workspace::Workspace;
use crate::{process, scratch};

/// Creates a Python environment in the cache with the packages in `requirements`, once.
pub(crate) fn venv(workspace: &Workspace, name: &str, requirements: &str) -> Result<PathBuf> {
    let directory = workspace.cache(name);
    install_once(&directory, requirements, || {
        let list = directory.join("requirements.txt");
        fs::write(&list, requirements)?;
        let mut venv = workspace.command("python3")?;
        process::run(venv.args(["-m", "venv"]).arg(&directory))?;
        let mut pip = workspace.command(directory.join("bin/python"))?;
        pip.args(["-m", "pip", "install", "--quiet", "--requirement"]);
        process::run(pip.arg(list))
    })?;
    Ok(directory)
}

/// Runs `install` with an empty `directory`, unless a file in it says that `wanted` is
/// installed.
pub(crate) fn install_once(
    directory: &Path,
    wanted: &str,
    install: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let note = directory.join("installed.txt");
    if fs::read_to_string(&note).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    scratch::empty(directory)?;
    install().with_context(|| format!("cannot fill {}", directory.display()))?;
    fs::write(note, wanted)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn what_is_there_is_not_installed_again() {
        let scratch = Scratch::temporary("once").unwrap();
        let mut times = 0;
        for wanted in ["a", "a", "b"] {
            let install = || {
                times += 1;
                Ok(())
            };
            install_once(&scratch, wanted, install).unwrap();
        }
        assert_eq!(times, 2);
        install_once(&scratch, "b", || bail!("it is there")).unwrap();
        let failed = install_once(&scratch, "c", || bail!("no network"));
        assert!(failed.is_err());
        // What is left of another installation is not taken for one.
        assert!(install_once(&scratch, "b", || bail!("no network")).is_err());
    }
}
