//! Stage `root`: tests that mount file systems and change the owner of files.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use anyhow::Result;

use crate::test_all::cargo::{cargo, run_tests};
use crate::test_all::stage::{Ctx, Outcome};

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    // The entry is owned by the user of this process.
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(Outcome::Skipped("only root may mount".to_owned()));
    }
    let mut command = cargo(ctx, "test", &["--tests", "--", "--ignored", "needs_root"])?;
    Ok(run_tests(&mut command)?.outcome())
}
