//! Programs outside the workspace that run a command, each with a different `main`.
//!
//! A program that calls `supervisor::run_if_asked` is started a second time by its own
//! backend, so this can only be tested in a program with its own `main`.

use anyhow::{Context as _, Result};

use super::project::{Program, Project};
use crate::metadata::Package;
use crate::process;
use crate::test_all::stage::Ctx;

const LIST: &str = r#"[dependencies]
backend-core = "0.1"
backend-local = "0.1"
tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
"#;

const CALL: &str = "backend_local::supervisor::run_if_asked();";

/// The name of each program, its `main`, and whether its commands have a supervisor.
pub(super) const MAINS: &[(&str, &str, bool)] = &[
    ("plain", "fn main() {\n    CALL\n    WAIT\n}\n", true),
    (
        "one-thread",
        "#[tokio::main(flavor = \"current_thread\")]\nasync fn main() {\n    CALL\n    WORK.await\n}\n",
        true,
    ),
    (
        "many-threads",
        "#[tokio::main]\nasync fn main() {\n    CALL\n    WORK.await\n}\n",
        true,
    ),
    ("plain-without", "fn main() {\n    WAIT\n}\n", false),
    (
        "async-without",
        "#[tokio::main]\nasync fn main() {\n    WORK.await\n}\n",
        false,
    ),
];

/// The common part of the programs.
const WORK: &str = r#"
async fn work(supervised: bool) {
    let directory = std::env::temp_dir();
    let builder = backend_local::LocalBackend::builder(&directory).enable_execute(true);
    let backend = builder.open().expect("the directory opens");
    let line = "echo ran; tr '\\0' ' ' < /proc/$PPID/cmdline";
    let command = backend_core::ops::Command::new(line);
    let done = backend_core::Sandbox::execute(&backend, command).await;
    let done = done.expect("the command runs");
    let output = done.stdout.text();
    let parent = output.strip_prefix("ran\n").expect("the command prints");
    assert_eq!(parent.starts_with("agentbox-supervisor "), supervised, "{parent}");
}
"#;

/// Builds and runs all programs.
pub(super) fn run(ctx: &Ctx, own: &[&Package]) -> Result<()> {
    let program = |(name, main, supervised): &(&str, &str, bool)| Program {
        name: (*name).to_owned(),
        path: format!("{name}.rs"),
        source: source(main, *supervised),
    };
    let project = Project {
        name: "programs".to_owned(),
        list: LIST.to_owned(),
        programs: MAINS.iter().map(program).collect(),
    };
    project.write(ctx, own)?;
    for (name, ..) in MAINS {
        process::run(&mut project.cargo(ctx, &["run", "--bin", name])?)
            .with_context(|| format!("{name} does not run a command"))?;
    }
    Ok(())
}

fn source(main: &str, supervised: bool) -> String {
    let work = format!("work({supervised})");
    let wait = format!(
        "let runtime = tokio::runtime::Runtime::new().expect(\"a runtime starts\");\n    \
         runtime.block_on({work});"
    );
    let main = main.replace("CALL", CALL);
    let main = main.replace("WAIT", &wait).replace("WORK", &work);
    format!("//! Runs one command.\n\n{main}{WORK}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supervisor_is_expected_where_it_is_called_for() {
        for (name, main, supervised) in MAINS {
            let text = source(main, *supervised);
            assert_eq!(text.contains("run_if_asked"), *supervised, "{name}");
            assert!(text.contains(&format!("work({supervised})")), "{name}");
            assert!(!text.contains("WORK") && !text.contains("WAIT"), "{name}");
        }
    }
}
