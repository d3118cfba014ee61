//! `cargo xtask test-all`: every check of the project, with one table at the end.
//!
//! A stage is one entry of [`STAGES`]. Stages run in that order. A failing stage does
//! not stop the next one, and skipped stages are in the table with the reason.

mod agent;
mod beside;
mod browser;
mod cargo;
mod clients;
mod consumers;
mod coverage;
mod daytona;
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
use crate::{book, flags, process, provision, tidy};

/// Writes stages: the smallest tier that includes it, the name, the function, what it
/// checks, and the fields that [`stage()`] leaves empty.
macro_rules! stages {
    ($($tier:ident $name:literal, $run:expr, $what:literal $(, $field:ident: $value:expr)*;)+) => {
        &[$(Stage { $($field: $value,)* ..stage($name, $what, Tier::$tier, $run) }),+]
    };
}

/// All stages, in execution order.
const STAGES: &[Stage] = stages! {
    Quick "fmt", cargo::fmt, "sources are formatted";
    Quick "clippy", cargo::clippy, "no lint warns";
    Quick "tidy", tidy_stage, "the project's own rules hold";
    Quick "test", cargo::test, "unit and integration tests";
    Quick "doctest", cargo::doctest, "code in the documentation";
    Full "doc", cargo::doc, "rustdoc without warnings";
    Full "api", cargo::api, "what libraries offer is what docs/api says";
    Default "examples", examples::run, "every example runs";
    Full "book", book_stage, "the documentation is a book whose links lead somewhere", tools: &["mdbook"];
    Full "package", package::run, "a project uses the packages as they are released";
    Full "semver", semver::run, "no release is broken without its version saying so";
    Full "deny", cargo::deny, "licences, bans and sources of dependencies", tools: &["cargo-deny"];
    Default "postgres", postgres::run, "a real PostgreSQL keeps our documents",
        tools: &["psql", "pg_createcluster"];
    Default "root", root::run, "full disks, other file systems, files of others";
    Default "agent", agent::run, "the program for sandboxes, static and small";
    Full "dist", dist::run, "a release works where there is only a C library",
        tools: &["docker", "busybox"], extras: &["dockerd"];
    Default "docker", docker::run, "sandboxes in containers of a real daemon",
        tools: &["docker", "/usr/bin/python3", "node", "npm"],
        extras: &["dockerd", "debootstrap", "busybox"];
    Default "k8s", k8s::run, "sandboxes in pods of a real cluster",
        tools: &["/usr/bin/python3", "node", "npm"], extras: k8s::TOOLS;
    Full "daytona", daytona::run, "hosted sandboxes, on a stand-in that real clients have tested",
        tools: &["/usr/bin/python3", "go", "git"];
    Default "clients", clients::run, "MCP clients of others use the program",
        tools: &["/usr/bin/python3", "node", "npm"];
    Full "browser", browser::run, "the pages of web_app and predictive_analytics in headless Chromium",
        tools: &["node", "npm", browser::CHROMIUM];
    Full "consumers", consumers::run,
        "published crates alone, and the code in Markdown as pasted", beside: Some("docker");
    Full "platforms", platforms::run, "macOS, Windows and ARM are compiled",
        extras: platforms::TARGETS, beside: Some("k8s");
    Full "coverage", coverage::run, "line coverage of each crate", extras: &["llvm-cov"],
        beside: Some("docker");
    Full "everyday", everyday::run, "command lines of other projects are not refused",
        tools: &["node", "npm"];
    Full "fuzz", fuzz::run, "a short run of each fuzz target", tools: &["c++"],
        beside: Some("k8s");
};

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

fn tidy_stage(ctx: &Ctx) -> Result<Outcome> {
    let findings = tidy::check(&ctx.workspace)?;
    println!("{findings}");
    let note = findings.summary();
    Ok(if findings.is_success() {
        Outcome::Passed(note)
    } else {
        Outcome::Failed(note)
    })
}

fn book_stage(ctx: &Ctx) -> Result<Outcome> {
    let book = book::build(&ctx.workspace)?;
    for problem in &book.problems {
        println!("{problem}");
    }
    Ok(match book.problems.len() {
        0 => Outcome::Passed(format!("{} pages", book.pages)),
        problems => Outcome::Failed(format!("{problems} links or pages")),
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
