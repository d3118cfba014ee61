//! Stages that run beside others: they compile and test in target directories of their own, or
//! fuzz, while another stage mostly waits for containers.
//!
//! They run in a second process. Its output is shown when it has ended, and its table
//! has their results.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Child;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, setpriority_process};

use crate::test_all::report::Entry;
use crate::test_all::stage::{Ctx, Outcome, Stage};

/// The priority of stages that run beside another one: a tenth of the usual part in the
/// processors, as long as the other stage needs them. Containers and clusters give up on what
/// is late.
const PRIORITY: i32 = 10;

/// The stages that run beside another one.
#[derive(Debug, Default)]
pub(super) struct Beside {
    stages: Vec<&'static Stage>,
    process: Option<Process>,
    results: String,
}

#[derive(Debug)]
struct Process {
    child: Child,
    output: PathBuf,
}

impl Beside {
    /// Starts those of `stages` that run beside `other`, if there are any.
    pub(super) fn start(
        &mut self,
        ctx: &Ctx,
        stages: &[&'static Stage],
        other: &Stage,
    ) -> Result<()> {
        let is_beside = |stage: &&Stage| stage.beside == Some(other.name);
        let stages: Vec<_> = stages.iter().copied().filter(is_beside).collect();
        if stages.is_empty() {
            return Ok(());
        }
        // One process at a time.
        self.wait()?;
        let names: Vec<_> = stages.iter().map(|stage| stage.name).collect();
        // By this name it starts even if a stage has built it anew.
        let mut command = ctx.workspace.command("/proc/self/exe")?;
        command.args(["test-all", "--only", &names.join(",")]);
        let flags = [("--full", ctx.is_full), ("--random", ctx.is_random)];
        command.args(flags.iter().filter(|flag| flag.1).map(|flag| flag.0));
        let output = ctx.workspace.cache("beside.log");
        let file = File::create(&output)?;
        command.stdout(file.try_clone()?).stderr(file);
        println!("beside it: {}", names.join(", "));
        let child = command.spawn().context("cannot start a second xtask")?;
        setpriority_process(Some(Pid::from_child(&child)), PRIORITY)?;
        self.process = Some(Process { child, output });
        self.stages.extend(stages);
        Ok(())
    }

    /// Waits for a stage that was started and returns its result. Returns `None` for
    /// other stages.
    pub(super) fn take(&mut self, stage: &Stage) -> Option<Result<Entry>> {
        let started = self
            .stages
            .iter()
            .find(|started| started.name == stage.name)?;
        let name = started.name;
        Some(self.wait().map(|()| {
            let mut rows = self.results.lines().rev();
            let entry = rows.find_map(|row| Entry::parse(name, row));
            entry.unwrap_or_else(|| Entry {
                outcome: Outcome::Failed("it ended without a result".to_owned()),
                ..Entry::new(name)
            })
        }))
    }

    fn wait(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.child.wait()?;
            let output = fs::read(process.output)?;
            let output = String::from_utf8_lossy(&output);
            println!("{output}");
            self.results.push_str(&output);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_all::stage::{Tier, stage};
    use crate::workspace::Workspace;

    #[test]
    fn a_stage_that_was_not_started_has_no_result() {
        let ctx = Ctx {
            workspace: Workspace::discover().unwrap(),
            is_full: false,
            is_random: false,
            is_provisioning: false,
        };
        let alone = stage("alone", "", Tier::Default, |_| {
            Ok(Outcome::Passed(String::new()))
        });
        let mut beside = Beside::default();
        beside.start(&ctx, &[], &alone).unwrap();
        assert!(beside.take(&alone).is_none());
    }
}
