//! Undo by git: the work tree, with its untracked files, as a commit that only the ref
//! below names. Neither the index nor a branch is touched, and nothing is lost: what is
//! replaced is kept the same way, so that a second undo brings it back.
//!
//! Ignored files are not kept, and not changed by an undo.

use std::path::Path;
use std::process::Command;

use examples::chat::Error;

/// The work tree before the last task or undo. Older ones are in its reflog.
const KEPT: &str = "refs/agentbox/undo";

/// Keeps the work tree that `dir` is in. Returns `false` if there is none.
pub(crate) fn keep(dir: &Path) -> Result<bool, Error> {
    let Some(tree) = WorkTree::find(dir)? else {
        return Ok(false);
    };
    tree.remember(&tree.snapshot()?)?;
    Ok(true)
}

/// Restores what was kept, and keeps what was there. Returns what was done.
pub(crate) fn undo(dir: &Path) -> Result<String, Error> {
    let Some(tree) = WorkTree::find(dir)? else {
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
    let changes = tree.git(&["diff", "--shortstat", &current, &kept])?;
    Ok(match changes.trim() {
        "" => "Nothing had changed.".to_owned(),
        changes => format!("Undone: {changes}. Undo again to take this back."),
    })
}

/// A git work tree, with an index that is only used here.
struct WorkTree {
    top: String,
    scratch: tempfile::TempDir,
}

impl WorkTree {
    fn find(dir: &Path) -> Result<Option<Self>, Error> {
        let scratch = tempfile::tempdir()?;
        let top = dir
            .to_str()
            .ok_or("the directory's name is not Unicode; rename it")?;
        let at = Self {
            top: top.to_owned(),
            scratch,
        };
        match at.git(&["rev-parse", "--show-toplevel"]) {
            Ok(top) => Ok(Some(Self { top, ..at })),
            // The program git is missing.
            Err(error) if error.is::<std::io::Error>() => Ok(None),
            Err(error) if error.to_string().contains("not a git repository") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Records all files that are not ignored. Returns the commit.
    fn snapshot(&self) -> Result<String, Error> {
        let index = self.git(&["rev-parse", "--path-format=absolute", "--git-path", "index"])?;
        if Path::new(&index).exists() {
            std::fs::copy(&index, self.scratch.path().join("index"))?;
        }
        self.git(&["add", "--all"])?;
        let tree = self.git(&["write-tree"])?;
        self.git(&[
            "commit-tree",
            "-m",
            "the work tree, kept by cli_agent",
            &tree,
        ])
    }

    fn remember(&self, commit: &str) -> Result<(), Error> {
        self.git(&["update-ref", "--create-reflog", KEPT, commit])?;
        Ok(())
    }

    fn git(&self, arguments: &[&str]) -> Result<String, Error> {
        let output = Command::new("git")
            .args(["-C", &self.top])
            // Line ends as they are, and no programs that git would start: an agent may
            // have named them.
            .args(["-c", "core.autocrlf=false"])
            .args([
                "-c",
                "core.hooksPath=/dev/null",
                "-c",
                "core.fsmonitor=false",
            ])
            .args(arguments)
            .env("LC_ALL", "C")
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .env("GIT_INDEX_FILE", self.scratch.path().join("index"))
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
