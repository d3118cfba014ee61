//! Undo by git: the work tree, with its untracked files, as a commit in a repository of its
//! own, outside of the work tree. Neither the user's index nor a branch is touched, and
//! nothing is lost: what is replaced is kept the same way, so that a second undo brings it
//! back.
//!
//! The user's own repository would not do: an agent may have changed its settings, and git
//! starts programs that they name.
//!
//! Ignored files are not kept, and not changed by an undo.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use examples::chat::Error;

/// The work tree before the last task or undo. Older ones are in its reflog.
const KEPT: &str = "refs/heads/kept";

/// Keeps the work tree that `dir` is in, in the directory `store` or the usual one. Returns
/// `false` if there is no work tree, or no git.
pub(crate) fn keep(dir: &Path, store: Option<&Path>) -> Result<bool, Error> {
    let Some(tree) = WorkTree::find(dir, store)? else {
        return Ok(false);
    };
    match tree.begin() {
        Err(error) if error.is::<std::io::Error>() => return Ok(false),
        begun => begun?,
    }
    tree.remember(&tree.snapshot()?)?;
    Ok(true)
}

/// Restores what was kept, and keeps what was there. Returns what was done.
pub(crate) fn undo(dir: &Path, store: Option<&Path>) -> Result<String, Error> {
    let Some(tree) = WorkTree::find(dir, store)? else {
        return Err("there is no git work tree here; name the one with --dir".into());
    };
    let kept = tree.git(&["rev-parse", "--verify", "--quiet", KEPT]);
    let kept = kept.map_err(|_| "no task was started in this work tree; nothing to undo")?;
    let current = tree.snapshot()?;
    // First, so that nothing is lost if the next step fails.
    tree.remember(&current)?;
    // The index of the snapshot knows every file, so git refuses to overwrite one that
    // was changed meanwhile.
    let restored = tree.git(&["read-tree", "-m", "-u", &current, &kept]);
    if let Err(error) = restored {
        tree.remember(&kept)?;
        return Err(error);
    }
    let changes = tree.git(&["diff", "--no-ext-diff", "--shortstat", &current, &kept])?;
    Ok(match changes.trim() {
        "" => "Nothing had changed.".to_owned(),
        changes => format!("Undone: {changes}. Undo again to take this back."),
    })
}

/// Returns the usual directory for the repositories.
fn usual_store() -> Result<PathBuf, Error> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let state = state.or_else(home);
    let state = state.ok_or("HOME is not set; name a directory with --undo-store")?;
    Ok(state.join("agentbox/undo"))
}

/// A git work tree, and the repository that keeps it.
struct WorkTree {
    top: PathBuf,
    repository: PathBuf,
}

impl WorkTree {
    fn find(dir: &Path, store: Option<&Path>) -> Result<Option<Self>, Error> {
        let dir = dir.canonicalize()?;
        let Some(top) = dir.ancestors().find(|above| above.join(".git").exists()) else {
            return Ok(None);
        };
        let mut hasher = DefaultHasher::new();
        top.hash(&mut hasher);
        let name = top.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{name}-{:016x}", hasher.finish());
        let store = match store {
            Some(store) => std::path::absolute(store)?,
            None => usual_store()?,
        };
        if store.starts_with(top) {
            return Err(
                "the kept work tree would be in itself; choose another --undo-store".into(),
            );
        }
        Ok(Some(Self {
            top: top.to_owned(),
            repository: store.join(name),
        }))
    }

    /// Creates the repository, unless it is there.
    fn begin(&self) -> Result<(), Error> {
        self.git(&["init", "--quiet"])?;
        Ok(())
    }

    /// Records all files that are not ignored. Returns the commit.
    fn snapshot(&self) -> Result<String, Error> {
        self.git(&["add", "--all"])?;
        let tree = self.git(&["write-tree"])?;
        let message = "the work tree, kept by cli_agent";
        self.git(&["commit-tree", "-m", message, &tree])
    }

    fn remember(&self, commit: &str) -> Result<(), Error> {
        self.git(&["update-ref", "--create-reflog", KEPT, commit])?;
        Ok(())
    }

    fn git(&self, arguments: &[&str]) -> Result<String, Error> {
        let output = Command::new("git")
            // Line ends as they are.
            .args(["-c", "core.autocrlf=false", "-c", "core.fsmonitor=false"])
            .args(arguments)
            .current_dir(&self.top)
            .env("LC_ALL", "C")
            .env("GIT_DIR", &self.repository)
            .env("GIT_WORK_TREE", &self.top)
            .env_remove("GIT_INDEX_FILE")
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "cli_agent")))
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "-")))
            .output()?;
        if output.status.success() {
            Ok(String::from_utf8(output.stdout)?
                .trim_end_matches('\n')
                .to_owned())
        } else {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("git {} fails: {}", arguments[0], said.trim()).into())
        }
    }
}
