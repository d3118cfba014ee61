//! Stage `daytona`: tests on a stand-in for Daytona that need the agent.
//!
//! Such tests are in modules `daytona_*` and are marked as ignored; those that need no agent run
//! with all others. The stand-in is a part of the tests, on loopback.

use anyhow::{Result, ensure};

use crate::agent;
use crate::test_all::cargo::{TestProgram, TestRun, cargo, run_tests};
use crate::test_all::stage::{Ctx, Outcome};

/// The beginning of the names of modules with such tests.
const MODULES: &str = "daytona_";

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let programs = TestProgram::build(cargo(ctx, "test", &["--test", "it"])?)?;
    let agent = agent::build(&ctx.workspace, None)?;
    let mut run = TestRun::default();
    let mut has_any = false;
    for program in &programs {
        for module in program.ignored_modules(ctx, MODULES)? {
            has_any = true;
            let mut command = program.command(ctx)?;
            command.args(["--ignored", &format!("{module}::")]);
            command.env("SANDBOX_AGENT", &agent.path);
            run = run.and(run_tests(&mut command)?);
        }
    }
    ensure!(has_any, "there is no test in a module {MODULES}*");
    Ok(run.outcome())
}
