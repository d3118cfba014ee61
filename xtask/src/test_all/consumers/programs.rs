//! Programs outside the workspace that run a command, each with another `main`.
//!
//! A program that calls `supervisor::run_if_asked` is started a second time by
//! its own backend, so this shows only in a program with a `main` of its own.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::manifest;
use crate::process;
use crate::test_all::Ctx;

const CALL: &str = "backend_local::supervisor::run_if_asked();";

/// The name of each, its `main`, and whether its commands have a supervisor.
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

/// The rest of each program.
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

/// Builds and runs them all.
pub(super) fn run(ctx: &Ctx, crates: &[(&str, &Path)]) -> Result<()> {
    let project = ctx.workspace.cache("consumers").join("programs");
    write_project(&project, crates, &ctx.workspace.root().join("Cargo.lock"))
        .with_context(|| format!("cannot write {}", project.display()))?;
    for (name, ..) in MAINS {
        let mut command = ctx.workspace.cargo(["run", "--quiet", "--bin", name])?;
        command
            .arg("--manifest-path")
            .arg(project.join("Cargo.toml"))
            .env("CARGO_TARGET_DIR", ctx.workspace.cache("consumers-target"));
        process::run(&mut command).with_context(|| format!("{name} does not run a command"))?;
    }
    Ok(())
}

fn write_project(project: &Path, crates: &[(&str, &Path)], lock: &Path) -> Result<()> {
    let programs = project.join("src/bin");
    fs::create_dir_all(&programs)?;
    fs::write(project.join("Cargo.toml"), with_tokio(crates))?;
    for (name, main, supervised) in MAINS {
        fs::write(
            programs.join(format!("{name}.rs")),
            source(main, *supervised),
        )?;
    }
    fs::copy(lock, project.join("Cargo.lock"))?;
    Ok(())
}

fn with_tokio(crates: &[(&str, &Path)]) -> String {
    let tokio = "tokio = { version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }\n";
    manifest("programs", crates).replace("\n[workspace]", &format!("{tokio}\n[workspace]"))
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

    #[test]
    fn the_project_depends_on_the_crates_and_tokio() {
        let text = with_tokio(&[("backend-local", Path::new("/r/b"))]);
        let table: toml::Table = text.parse().unwrap();
        let dependencies = table["dependencies"].as_table().unwrap();
        assert!(dependencies.keys().eq(["backend-local", "tokio"]), "{text}");
        assert!(table["workspace"].as_table().unwrap().is_empty());
    }
}
