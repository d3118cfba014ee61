//! `cargo xtask test-all`: every check of the project, with one table at the end.
//!
//! A stage is one entry of [`STAGES`]. Stages run in that order. A failing stage does
//! not stop the next one, and skipped stages are in the table with the reason.

mod agent;
mod cargo;
mod clients;
mod consumers;
mod coverage;
mod dist;
mod docker;
mod everyday;
mod examples;
mod fuzz;
mod package;
mod plan;
mod platforms;
mod postgres;
mod report;
mod root;
mod semver;

use std::time::Instant;

use anyhow::Result;

pub(crate) use crate::test_all::dist::try_archive;
use crate::test_all::plan::Plan;
use crate::test_all::report::{Entry, Report};
use crate::workspace::Workspace;
use crate::{flags, process, provision, tidy};

/// All stages, in execution order.
const STAGES: &[Stage] = &[
    Stage {
        name: "fmt",
        what: "sources are formatted",
        tier: Tier::Quick,
        tools: &[],
        extras: &[],
        run: cargo::fmt,
    },
    Stage {
        name: "clippy",
        what: "no lint warns",
        tier: Tier::Quick,
        tools: &[],
        extras: &[],
        run: cargo::clippy,
    },
    Stage {
        name: "tidy",
        what: "the project's own rules hold",
        tier: Tier::Quick,
        tools: &[],
        extras: &[],
        run: |ctx| tidy_stage(&ctx.workspace),
    },
    Stage {
        name: "test",
        what: "unit and integration tests",
        tier: Tier::Quick,
        tools: &[],
        extras: &[],
        run: cargo::test,
    },
    Stage {
        name: "doctest",
        what: "code in the documentation",
        tier: Tier::Quick,
        tools: &[],
        extras: &[],
        run: cargo::doctest,
    },
    Stage {
        name: "doc",
        what: "rustdoc without warnings",
        tier: Tier::Default,
        tools: &[],
        extras: &[],
        run: cargo::doc,
    },
    Stage {
        name: "api",
        what: "what libraries offer is what docs/api says",
        tier: Tier::Default,
        tools: &[],
        extras: &[],
        run: cargo::api,
    },
    Stage {
        name: "examples",
        what: "every example runs",
        tier: Tier::Default,
        tools: &[],
        extras: &[],
        run: examples::run,
    },
    Stage {
        name: "consumers",
        what: "published crates alone, and the code in Markdown as pasted",
        tier: Tier::Default,
        tools: &[],
        extras: &[],
        run: consumers::run,
    },
    Stage {
        name: "package",
        what: "a project uses the packages as they are released",
        tier: Tier::Full,
        tools: &[],
        extras: &[],
        run: package::run,
    },
    Stage {
        name: "semver",
        what: "no release is broken without its version saying so",
        tier: Tier::Full,
        tools: &[],
        extras: &[],
        run: semver::run,
    },
    Stage {
        name: "deny",
        what: "licences, bans and sources of dependencies",
        tier: Tier::Full,
        tools: &["cargo-deny"],
        extras: &[],
        run: cargo::deny,
    },
    Stage {
        name: "postgres",
        what: "a real PostgreSQL keeps our documents",
        tier: Tier::Default,
        tools: &["psql", "pg_createcluster"],
        extras: &[],
        run: postgres::run,
    },
    Stage {
        name: "root",
        what: "full disks, other file systems, files of others",
        tier: Tier::Default,
        tools: &[],
        extras: &[],
        run: root::run,
    },
    Stage {
        name: "agent",
        what: "the program for sandboxes, static and small",
        tier: Tier::Default,
        tools: &[],
        extras: &[],
        run: agent::run,
    },
    Stage {
        name: "dist",
        what: "a release works where there is only a C library",
        tier: Tier::Full,
        tools: &["docker", "busybox"],
        extras: &["dockerd"],
        run: dist::run,
    },
    Stage {
        name: "docker",
        what: "sandboxes in containers of a real daemon",
        tier: Tier::Default,
        tools: &["docker", "/usr/bin/python3", "node", "npm"],
        extras: &["dockerd", "debootstrap", "busybox"],
        run: docker::run,
    },
    Stage {
        name: "clients",
        what: "MCP clients of others use the program",
        tier: Tier::Default,
        tools: &["/usr/bin/python3", "node", "npm"],
        extras: &[],
        run: clients::run,
    },
    Stage {
        name: "coverage",
        what: "line coverage of each crate",
        tier: Tier::Full,
        tools: &[],
        extras: &["llvm-cov"],
        run: coverage::run,
    },
    Stage {
        name: "platforms",
        what: "macOS, Windows and ARM are compiled",
        tier: Tier::Full,
        tools: &[],
        extras: platforms::TARGETS,
        run: platforms::run,
    },
    Stage {
        name: "everyday",
        what: "command lines of other projects are not refused",
        tier: Tier::Full,
        tools: &["node", "npm"],
        extras: &[],
        run: everyday::run,
    },
    Stage {
        name: "fuzz",
        what: "a short run of each fuzz target",
        tier: Tier::Full,
        tools: &["c++"],
        extras: &[],
        run: fuzz::run,
    },
];

/// The extent of a run. Each tier includes the stages of the previous ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tier {
    /// `--quick`: no extra tools, little time.
    Quick,
    /// Everything that tests the product. No tool is compiled for it.
    Default,
    /// `--full`: also tools that inspect the code, and frameworks that use the program.
    Full,
}

/// One check of `test-all`.
#[derive(Debug)]
struct Stage {
    /// The name for `--only` and `--require`.
    name: &'static str,
    /// A short description of the property it checks.
    what: &'static str,
    /// The smallest tier that includes it.
    tier: Tier,
    /// Required programs. Without them the stage is skipped. Those that `provision`
    /// knows can be installed.
    tools: &'static [&'static str],
    /// Optional programs that `provision` installs for it.
    extras: &'static [&'static str],
    run: fn(&Ctx) -> Result<Outcome>,
}

/// The context passed to every stage.
#[derive(Debug)]
struct Ctx {
    workspace: Workspace,
    /// Whether `--full` was given.
    is_full: bool,
    /// Whether property tests and fuzzing try new inputs instead of fixed ones.
    is_random: bool,
    /// Whether missing tools are installed, with `--provision`.
    is_provisioning: bool,
}

/// The result of a stage, with a note for the table. An error counts as a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Passed(String),
    Failed(String),
    Skipped(String),
}

impl Outcome {
    /// Passes with `note`, unless some of several checks have failed.
    fn unless_failed(failed: &[&str], note: String) -> Self {
        match failed {
            [] => Self::Passed(note),
            _ => Self::Failed(format!("{} failed: {}", failed.len(), failed.join(", "))),
        }
    }
}

/// Runs the selected stages and returns whether none of them failed.
pub(crate) fn run(flags: &flags::TestAll) -> Result<bool> {
    let plan = Plan::new(STAGES, flags)?;
    let ctx = Ctx {
        workspace: Workspace::discover()?,
        is_full: flags.full,
        is_random: flags.random,
        is_provisioning: flags.provision,
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

/// Runs `stage` and converts an error into a failure whose note is the error's first
/// line.
fn timed(name: &'static str, what: &str, stage: impl FnOnce() -> Result<Outcome>) -> Entry {
    println!("\n=== {name}: {what}");
    let start = Instant::now();
    let cpu_before = process::cpu_of_children();
    let outcome = stage().unwrap_or_else(|error| {
        let message = format!("{error:#}");
        eprintln!("error: {message}");
        Outcome::Failed(message.lines().next().unwrap_or_default().to_owned())
    });
    Entry {
        name,
        outcome,
        wall: start.elapsed(),
        cpu: process::cpu_of_children().saturating_sub(cpu_before),
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
            tier: Tier::Default,
            tools: &["no-such-program-here"],
            extras: &[],
            run: |_| bail!("must not run"),
        };
        let ctx = Ctx {
            workspace: Workspace::discover().unwrap(),
            is_full: false,
            is_random: false,
            is_provisioning: false,
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
