//! `cargo xtask test-all`: every check of the project, one table at the end.
//!
//! A stage is one entry of [`STAGES`]. Stages run in that order, a failing one
//! does not stop the next, and none passes in silence: what was not run is in
//! the table with the reason.

mod agent;
mod cargo;
mod clients;
mod consumers;
mod coverage;
mod docker;
mod examples;
mod fuzz;
mod plan;
mod postgres;
mod report;
mod root;

use std::time::Instant;

use anyhow::Result;

use crate::test_all::plan::Plan;
use crate::test_all::report::{Entry, Report};
use crate::workspace::Workspace;
use crate::{flags, provision, tidy};

/// All stages, in the order in which they run.
const STAGES: &[Stage] = &[
    Stage {
        name: "fmt",
        what: "sources are formatted",
        quick: true,
        tools: &[],
        extras: &[],
        run: cargo::fmt,
    },
    Stage {
        name: "clippy",
        what: "no lint warns",
        quick: true,
        tools: &[],
        extras: &[],
        run: cargo::clippy,
    },
    Stage {
        name: "tidy",
        what: "the project's own rules hold",
        quick: true,
        tools: &[],
        extras: &[],
        run: |ctx| tidy_stage(&ctx.workspace),
    },
    Stage {
        name: "test",
        what: "unit and integration tests",
        quick: true,
        tools: &[],
        extras: &[],
        run: cargo::test,
    },
    Stage {
        name: "doctest",
        what: "code in the documentation",
        quick: true,
        tools: &[],
        extras: &[],
        run: cargo::doctest,
    },
    Stage {
        name: "doc",
        what: "rustdoc without warnings",
        quick: false,
        tools: &[],
        extras: &[],
        run: cargo::doc,
    },
    Stage {
        name: "examples",
        what: "every example runs",
        quick: false,
        tools: &[],
        extras: &[],
        run: examples::run,
    },
    Stage {
        name: "consumers",
        what: "each published crate builds alone",
        quick: false,
        tools: &[],
        extras: &[],
        run: consumers::run,
    },
    Stage {
        name: "deny",
        what: "licences, bans and sources of dependencies",
        quick: false,
        tools: &["cargo-deny"],
        extras: &[],
        run: cargo::deny,
    },
    Stage {
        name: "postgres",
        what: "a real PostgreSQL keeps our documents",
        quick: false,
        tools: &["psql", "pg_createcluster"],
        extras: &[],
        run: postgres::run,
    },
    Stage {
        name: "root",
        what: "full disks, other file systems, files of others",
        quick: false,
        tools: &[],
        extras: &[],
        run: root::run,
    },
    Stage {
        name: "agent",
        what: "the program for sandboxes, static and small",
        quick: false,
        tools: &[],
        extras: &[],
        run: agent::run,
    },
    Stage {
        name: "docker",
        what: "sandboxes in containers of a real daemon",
        quick: false,
        tools: &["docker", "/usr/bin/python3", "node", "npm"],
        extras: &["dockerd", "debootstrap", "busybox"],
        run: docker::run,
    },
    Stage {
        name: "clients",
        what: "MCP clients of others use the program",
        quick: false,
        tools: &["/usr/bin/python3", "node", "npm"],
        extras: &[],
        run: clients::run,
    },
    Stage {
        name: "coverage",
        what: "line coverage of each crate",
        quick: false,
        tools: &["cargo-tarpaulin"],
        extras: &[],
        run: coverage::run,
    },
    Stage {
        name: "fuzz",
        what: "a short run of each fuzz target",
        quick: false,
        tools: &["c++", "cargo-fuzz"],
        extras: &[],
        run: fuzz::run,
    },
];

/// One thing that `test-all` runs.
#[derive(Debug)]
struct Stage {
    /// What `--only` and `--require` call it.
    name: &'static str,
    /// What it shows when it passes.
    what: &'static str,
    /// Whether `--quick` runs it.
    quick: bool,
    /// Programs without which it is skipped; those that `provision` knows can be installed.
    tools: &'static [&'static str],
    /// Programs that `provision` installs for it too, though it may do without.
    extras: &'static [&'static str],
    run: fn(&Ctx) -> Result<Outcome>,
}

/// What every stage is given.
#[derive(Debug)]
struct Ctx {
    workspace: Workspace,
    /// Take the time that is needed to look thoroughly.
    slow: bool,
}

/// How a stage ended; the text is shown in the table. An error counts as failed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Passed(String),
    Failed(String),
    Skipped(String),
}

impl Outcome {
    /// For a stage that looks at several things: passed with `note` unless some have failed.
    fn unless_failed(failed: &[&str], note: String) -> Self {
        match failed {
            [] => Self::Passed(note),
            _ => Self::Failed(format!("{} failed: {}", failed.len(), failed.join(", "))),
        }
    }
}

/// Runs the selected stages and tells whether none of them failed.
pub(crate) fn run(flags: &flags::TestAll) -> Result<bool> {
    let plan = Plan::new(STAGES, flags)?;
    let ctx = Ctx {
        workspace: Workspace::discover()?,
        slow: flags.slow,
    };
    let mut report = Report::default();
    if flags.provision {
        report.push(timed(
            "provision",
            "what the stages need is installed",
            || provision::run(&ctx.workspace, &plan.tools()).map(Outcome::Passed),
        ));
    }
    for stage in plan.stages() {
        let entry = timed(stage.name, stage.what, || run_stage(stage, &ctx));
        report.push(plan.enforce(entry));
    }
    println!("\n{report}");
    Ok(report.is_success())
}

fn run_stage(stage: &Stage, ctx: &Ctx) -> Result<Outcome> {
    for tool in stage.tools {
        if !ctx.workspace.has_program(tool)? {
            let hint = if provision::knows(tool) {
                "; --provision installs it"
            } else {
                ""
            };
            return Ok(Outcome::Skipped(format!("{tool} is not installed{hint}")));
        }
    }
    (stage.run)(ctx)
}

/// Runs `stage` and turns an error into a failure whose note is the error's first line.
fn timed(name: &'static str, what: &str, stage: impl FnOnce() -> Result<Outcome>) -> Entry {
    println!("\n=== {name}: {what}");
    let start = Instant::now();
    let outcome = stage().unwrap_or_else(|error| {
        let message = format!("{error:#}");
        eprintln!("error: {message}");
        Outcome::Failed(message.lines().next().unwrap_or_default().to_owned())
    });
    Entry {
        name,
        outcome,
        time: start.elapsed(),
    }
}

fn tidy_stage(workspace: &Workspace) -> Result<Outcome> {
    let findings = tidy::check(workspace)?;
    println!("{findings}");
    let note = findings.summary();
    Ok(if findings.is_success() {
        Outcome::Passed(note)
    } else {
        Outcome::Failed(note)
    })
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn an_error_is_a_failure_with_its_first_line() {
        let entry = timed("x", "y", || bail!("no disk\nat line 3"));
        assert_eq!(entry.outcome, Outcome::Failed("no disk".to_owned()));
    }

    #[test]
    fn what_failed_is_named() {
        let note = "3 run".to_owned();
        let passed = Outcome::Passed(note.clone());
        assert_eq!(Outcome::unless_failed(&[], note.clone()), passed);
        let failed = Outcome::Failed("2 failed: a, b".to_owned());
        assert_eq!(Outcome::unless_failed(&["a", "b"], note), failed);
    }

    #[test]
    fn a_stage_whose_tool_is_missing_is_skipped() {
        let stage = Stage {
            name: "x",
            what: "y",
            quick: false,
            tools: &["no-such-program-here"],
            extras: &[],
            run: |_| bail!("must not run"),
        };
        let ctx = Ctx {
            workspace: Workspace::discover().unwrap(),
            slow: false,
        };
        let outcome = run_stage(&stage, &ctx).unwrap();
        assert!(matches!(outcome, Outcome::Skipped(reason) if reason.contains("no-such-program")));
    }

    #[test]
    fn stage_names_are_unique_and_their_tools_can_be_provisioned() {
        for (i, stage) in STAGES.iter().enumerate() {
            assert!(
                STAGES[..i].iter().all(|other| other.name != stage.name),
                "{}",
                stage.name
            );
            for tool in stage.tools.iter().chain(stage.extras) {
                assert!(provision::knows(tool), "{tool}");
            }
        }
    }
}
