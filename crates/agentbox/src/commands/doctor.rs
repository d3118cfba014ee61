//! `agentbox doctor`: what this machine can host, and what is missing.

mod containers;
mod machine;
mod services;

use std::fmt::Write as _;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::json;

use crate::app::App;
use crate::cli::Global;
use crate::exit::{self, Failure};
use crate::output;
use crate::signals::Interrupts;

/// Options of `doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Prints every finding as JSON.
    #[arg(long)]
    json: bool,
}

/// What was found about one thing.
#[derive(Debug, Serialize)]
struct Finding {
    /// What was looked at.
    name: &'static str,
    /// What it is good for.
    purpose: &'static str,
    /// Whether the default backend needs it.
    needed: bool,
    ok: bool,
    /// Whether it is there, and not as it should be.
    doubtful: bool,
    /// What is there.
    found: String,
    /// What to do about what is not.
    fix: Option<String>,
}

impl Finding {
    fn new(name: &'static str, purpose: &'static str) -> Self {
        Self {
            name,
            purpose,
            needed: false,
            ok: false,
            doubtful: false,
            found: String::new(),
            fix: None,
        }
    }

    /// The default backend does not work without it.
    fn needed(mut self) -> Self {
        self.needed = true;
        self
    }

    fn ok(mut self, found: impl Into<String>) -> Self {
        self.ok = true;
        self.found = found.into();
        self
    }

    fn doubtful(mut self, found: impl Into<String>, fix: impl Into<String>) -> Self {
        self.doubtful = true;
        self.missing(found, fix)
    }

    fn missing(mut self, found: impl Into<String>, fix: impl Into<String>) -> Self {
        self.found = found.into();
        self.fix = Some(fix.into());
        self
    }
}

pub(crate) async fn run(global: &Global, args: &Args) -> Result<ExitCode, Failure> {
    let interrupts = Interrupts::watch()?;
    let look = async {
        let (app, configuration) = configuration(global);
        let mut findings = vec![configuration];
        findings.extend(machine::findings().await);
        let tables = app.map(|app| app.config.backends).unwrap_or_default();
        findings.extend(containers::findings(&tables).await);
        findings.extend(services::findings());
        findings
    };
    let findings = match interrupts.unless(look).await {
        Ok(findings) => findings,
        Err(code) => return Ok(ExitCode::from(code)),
    };
    let works = findings.iter().all(|finding| finding.ok || !finding.needed);
    if args.json {
        output::print_json(&json!({"works": works, "findings": findings}))?;
    } else {
        output::print(&as_text(&findings, works))?;
    }
    Ok(ExitCode::from(match works {
        true => exit::SUCCESS,
        false => exit::ENVIRONMENT,
    }))
}

fn configuration(global: &Global) -> (Option<App>, Finding) {
    let finding = Finding::new("configuration", "flags, variables and the config file").needed();
    match App::new(global) {
        Ok(app) => {
            let found = match &app.config.file {
                Some(file) => format!("read from {}", file.display()),
                None => "there is no config file; the defaults are used".to_owned(),
            };
            (Some(app), finding.ok(found))
        }
        Err(failure) => {
            let finding = finding.missing(failure.to_string(), "correct it as it says");
            (None, finding)
        }
    }
}

fn as_text(findings: &[Finding], works: bool) -> String {
    use anstyle::AnsiColor::{Green, Red, Yellow};
    let width = findings.iter().map(|finding| finding.name.len()).max();
    let width = width.unwrap_or_default();
    let mut text = String::new();
    for finding in findings {
        let (word, colour) = match (finding.ok, finding.needed) {
            (true, _) => ("ok     ", Green),
            (false, true) => ("MISSING", Red),
            (false, false) if finding.doubtful => ("doubt  ", Yellow),
            (false, false) => ("missing", Yellow),
        };
        let style = colour.on_default();
        let Finding { name, purpose, .. } = finding;
        let found = output::harmless(&finding.found);
        let _ = writeln!(
            text,
            "{style}{word}{style:#}  {name:width$}  {purpose}: {found}"
        );
        if let Some(fix) = &finding.fix {
            let _ = writeln!(text, "         {:width$}  to mend it: {fix}", "");
        }
    }
    let verdict = match works {
        true => "The default backend works here.",
        false => "The default backend does not work here; mend what is MISSING.",
    };
    let _ = writeln!(text, "\n{verdict}");
    text
}
