//! The control group that contains all pods.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::process;

/// Where the control groups are.
const ROOT: &str = "/sys/fs/cgroup";

/// A file of the root if there is one hierarchy for all resources.
const UNIFIED: &str = "cgroup.controllers";

/// The limits of processors and memory nodes, which a new group has to be given.
const INHERITED: &[&str] = &["cpuset.cpus", "cpuset.mems"];

/// The part of all pods in the processors, of cgroups 1 and 2: that of 16 processes. A group
/// has that of one process otherwise, however many pods are in it, and what runs in them would
/// stand still beside a compiler.
const WEIGHTS: &[(&str, &str)] = &[("cpu.shares", "16384"), ("cpu.weight", "1600")];

/// How long ended processes are waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Creates the group in every hierarchy.
pub(super) fn make(name: &str) -> Result<()> {
    make_in(Path::new(ROOT), name).context("cannot make a control group")
}

fn make_in(root: &Path, name: &str) -> Result<()> {
    for hierarchy in hierarchies(root)? {
        // Beside others, this one has no resources.
        if hierarchy.ends_with("unified") {
            continue;
        }
        let group = hierarchy.join(name);
        match fs::create_dir(&group) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
        if hierarchy.ends_with("cpuset") {
            for file in INHERITED {
                fs::write(group.join(file), fs::read(hierarchy.join(file))?)?;
            }
        }
        for (file, weight) in WEIGHTS {
            let file = group.join(file);
            if file.exists() {
                fs::write(file, weight)?;
            }
        }
    }
    Ok(())
}

/// Removes the group with all groups in it, whose processes have been ended.
pub(super) fn remove(name: &str) -> Result<()> {
    for hierarchy in hierarchies(Path::new(ROOT))? {
        let group = hierarchy.join(name);
        let gone = process::wait_for(PATIENCE, || Ok(remove_tree(&group).is_ok()))?;
        ensure!(gone, "cannot remove the control group {}", group.display());
    }
    Ok(())
}

/// Returns the directory of each hierarchy.
fn hierarchies(root: &Path) -> Result<Vec<PathBuf>> {
    if root.join(UNIFIED).exists() {
        return Ok(vec![root.to_owned()]);
    }
    let mut found = Vec::new();
    let entries = fs::read_dir(root).with_context(|| format!("cannot list {}", root.display()))?;
    for entry in entries {
        let entry = entry?;
        // A link is another name of a hierarchy.
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Removes a group and those in it. Their files cannot be removed and go with them.
fn remove_tree(group: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(group) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_group_is_made_in_every_hierarchy_and_removed_with_its_children() {
        let root = Scratch::temporary("groups").unwrap();
        for hierarchy in ["cpuset", "memory", "unified"] {
            fs::create_dir(root.join(hierarchy)).unwrap();
        }
        for file in INHERITED {
            fs::write(root.join("cpuset").join(file), "0-1").unwrap();
        }
        make_in(&root, "g").unwrap();
        let weight = root.join("memory/g/cpu.weight");
        fs::write(&weight, "100").unwrap();
        make_in(&root, "g").unwrap();
        assert_eq!(fs::read_to_string(&weight).unwrap(), "1600");
        fs::remove_file(weight).unwrap();
        let copied = fs::read_to_string(root.join("cpuset/g/cpuset.cpus")).unwrap();
        assert_eq!(copied, "0-1");
        assert!(!root.join("unified/g").exists());
        let group = root.join("memory/g");
        fs::create_dir_all(group.join("a/b")).unwrap();
        remove_tree(&group).unwrap();
        remove_tree(&group).unwrap();
        assert!(!group.exists());
    }

    #[test]
    fn one_hierarchy_may_be_all_there_is() {
        let root = Scratch::temporary("group").unwrap();
        fs::write(root.join(UNIFIED), "").unwrap();
        assert_eq!(hierarchies(&root).unwrap(), [root.to_path_buf()]);
    }
}
