//! `cargo xtask test-all`: every check of the project, with one table at the end.
//!
//! A stage is one entry of [`STAGES`]. Stages run in that order. A failing stage does
//! not stop the next one, and skipped stages are in the table with the reason.

mod agent;
mod beside;
mod cargo;
mod clients;
mod consumers;
mod coverage;
mod dist;
mod docker;
mod everyday;
mod examples;
mod floors;
mod fuzz;
mod k8s;
mod package;
mod plan;
mod platforms;
mod postgres;
mod report;
mod root;
mod semver;
mod stage;

use std::time::Instant;

use anyhow::Result;

use crate::test_all::beside::Beside;
pub(crate) use crate::test_all::dist::try_archive;
use crate::test_all::plan::Plan;
use crate::test_all::report::{Entry, Report};
use crate::test_all::stage::{Ctx, Outcome, Stage, Tier, stage};
use crate::workspace::Workspace;
use crate::{flags, process, provision, tidy};

/// All stages, in execution order.
const STAGES: &[Stage] = &[
    stage("fmt", "sources are formatted", Tier::Quick, cargo::fmt),
    stage("clippy", "no lint warns", Tier::Quick, cargo::clippy),
    stage("tidy", "the project's own rules hold", Tier::Quick, |ctx| {
        tidy_stage(&ctx.workspace)
    }),
    stage(
        "test",
        "unit and integration tests",
        Tier::Quick,
        cargo::test,
    ),
    stage(
        "doctest",
        "code in the documentation",
        Tier::Quick,
        cargo::doctest,
    ),
    stage("doc", "rustdoc without warnings", Tier::Full, cargo::doc),
    stage(
        "api",
        "what libraries offer is what docs/api says",
        Tier::Default,
        cargo::api,
    ),
    stage(
        "examples",
        "every example runs",
        Tier::Default,
        examples::run,
    ),
    stage(
        "package",
        "a project uses the packages as they are released",
        Tier::Full,
        package::run,
    ),
    stage(
        "semver",
        "no release is broken without its version saying so",
        Tier::Full,
        semver::run,
    ),
    Stage {
        tools: &["cargo-deny"],
        ..stage(
            "deny",
            "licences, bans and sources of dependencies",
            Tier::Full,
            cargo::deny,
        )
    },
    Stage {
        tools: &["psql", "pg_createcluster"],
        ..stage(
            "postgres",
            "a real PostgreSQL keeps our documents",
            Tier::Default,
            postgres::run,
        )
    },
    stage(
        "root",
        "full disks, other file systems, files of others",
        Tier::Default,
        root::run,
    ),
    stage(
        "agent",
        "the program for sandboxes, static and small",
        Tier::Default,
        agent::run,
    ),
    Stage {
        tools: &["docker", "busybox"],
        extras: &["dockerd"],
        ..stage(
            "dist",
            "a release works where there is only a C library",
            Tier::Full,
            dist::run,
        )
    },
    Stage {
        tools: &["docker", "/usr/bin/python3", "node", "npm"],
        extras: &["dockerd", "debootstrap", "busybox"],
        ..stage(
            "docker",
            "sandboxes in containers of a real daemon",
            Tier::Default,
            docker::run,
        )
    },
    Stage {
        extras: k8s::TOOLS,
        ..stage(
            "k8s",
            "sandboxes in pods of a real cluster",
            Tier::Default,
            k8s::run,
        )
    },
    Stage {
        tools: &["/usr/bin/python3", "node", "npm"],
        ..stage(
            "clients",
            "MCP clients of others use the program",
            Tier::Default,
            clients::run,
        )
    },
    Stage {
        beside: Some("docker"),
        ..stage(
            "consumers",
            "published crates alone, and the code in Markdown as pasted",
            Tier::Default,
            consumers::run,
        )
    },
    Stage {
        extras: platforms::TARGETS,
        beside: Some("docker"),
        ..stage(
            "platforms",
            "macOS, Windows and ARM are compiled",
            Tier::Full,
            platforms::run,
        )
    },
    Stage {
        extras: &["llvm-cov"],
        ..stage(
            "coverage",
            "line coverage of each crate",
            Tier::Full,
            coverage::run,
        )
    },
    Stage {
        tools: &["node", "npm"],
        ..stage(
            "everyday",
            "command lines of other projects are not refused",
            Tier::Full,
            everyday::run,
        )
    },
    Stage {
        tools: &["c++"],
        ..stage(
            "fuzz",
            "a short run of each fuzz target",
            Tier::Full,
            fuzz::run,
        )
    },
];

/// Runs the selected stages and returns whether none of them failed.
pub(crate) fn run(flags: &flags::TestAll) -> Result<bool> {
    let plan = Plan::new(STAGES, flags)?;
    let ctx = Ctx {
        workspace: Workspace::discover()?,
        is_full: flags.full,
        is_random: flags.random,
        is_provisioning: flags.provision,
    };
    let start = Instant::now();
    let mut report = Report::default();
    if flags.provision {
        report.push(timed(
            "provision",
            "what the stages need is installed",
            || provision::run(&ctx.workspace, &plan.tools()).map(Outcome::Passed),
        ));
    }
    let mut beside = Beside::default();
    for stage in plan.stages() {
        let entry = match beside.take(stage) {
            Some(entry) => entry?,
            None => timed(stage.name, stage.what, || {
                beside.start(&ctx, plan.stages(), stage)?;
                run_stage(stage, &ctx)
            }),
        };
        report.push(plan.enforce(entry));
    }
    report.wall = start.elapsed();
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
    fn a_stage_whose_tool_is_missing_is_skipped() {
        let stage = Stage {
            tools: &["no-such-program-here"],
            ..stage("x", "y", Tier::Default, |_| bail!("must not run"))
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
