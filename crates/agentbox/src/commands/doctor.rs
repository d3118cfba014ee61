//! `agentbox doctor`: reports the abilities of this machine, and anything missing.

mod backend;
#[cfg(feature = "docker")]
mod containers;
mod finding;
#[cfg(local)]
mod machine;
#[cfg(not(local))]
mod no_machine;
mod services;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use self::backend::UsedBackend;
use self::finding::{Finding, Status};
#[cfg(not(local))]
use self::no_machine as machine;
use crate::app::App;
use crate::exit::{self, Failure};
use crate::options::CommonOptions;
use crate::output;
use crate::signals::Interrupts;
use crate::terminal::safe::sanitized;
use crate::terminal::wrap;

/// Options of `doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Prints every finding as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(options: &CommonOptions, args: &Args) -> Result<ExitCode, Failure> {
    let interrupts = Interrupts::watch()?;
    let look = async {
        let (app, configuration) = configuration(options);
        let (backend, finding) = UsedBackend::of(app);
        let mut findings = vec![configuration];
        findings.extend(finding);
        findings.extend(machine::findings(&backend).await);
        #[cfg(feature = "docker")]
        findings.extend(containers::findings(&backend).await);
        findings.extend(services::findings());
        (backend, findings)
    };
    let (backend, findings) = interrupts.unless(look).await?;
    let works = findings.iter().all(Finding::is_fine);
    if args.json {
        let findings: Vec<Value> = findings.iter().map(Finding::as_json).collect();
        output::print_json(&json!({"works": works, "findings": findings}))?;
    } else {
        let columns = std::io::stdout().is_terminal().then(wrap::columns);
        output::print(&as_text(&backend, &findings, works, columns))?;
    }
    Ok(ExitCode::from(if works {
        exit::SUCCESS
    } else {
        exit::ENVIRONMENT
    }))
}

fn configuration(options: &CommonOptions) -> (Option<App>, Finding) {
    let finding =
        Finding::new("configuration", "flags, variables and the config file").needed(true);
    match App::new(options) {
        Ok(app) => {
            let found = match &app.config.file {
                Some(file) => format!("read from {}", file.display()),
                None => "there is no config file; the defaults are used".to_owned(),
            };
            (Some(app), finding.ok(found))
        }
        Err(failure) => (None, finding.wrong(&failure)),
    }
}

fn as_text(
    backend: &UsedBackend,
    findings: &[Finding],
    works: bool,
    columns: Option<usize>,
) -> String {
    use anstyle::AnsiColor::{Green, Red, Yellow};
    let width = findings.iter().map(|finding| finding.name.len()).max();
    let width = width.unwrap_or_default();
    let column = "MISSING".len() + width + 4;
    let mut text = String::new();
    for finding in findings {
        let (word, colour) = match finding.status {
            Status::Ok => ("ok     ", Green),
            _ if finding.needed => ("MISSING", Red),
            Status::Doubtful => ("doubt  ", Yellow),
            Status::Missing => ("missing", Yellow),
        };
        let style = colour.on_default();
        let Finding { name, purpose, .. } = finding;
        let found = sanitized(&finding.found);
        let left = format!("{style}{word}{style:#}  {name:width$}");
        let about = format!("{purpose}: {found}");
        text.push_str(&wrap::beside(&left, column, &about, columns));
        if let Some(fix) = &finding.fix {
            let indent = wrap::indent(column, columns);
            let fix = format!("{:indent$}fix: {}\n", "", sanitized(fix));
            text.push_str(&wrap::lines(&fix, columns));
        }
    }
    let which = match &backend.spec {
        Some(spec) => format!("The backend {}", sanitized(spec)),
        None => "The default backend".to_owned(),
    };
    let verdict = if works {
        format!("\n{which} works here.\n")
    } else {
        format!("\n{which} does not work here; fix what is MISSING.\n")
    };
    text.push_str(&wrap::lines(&verdict, columns));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::kind::Tables;

    #[test]
    fn lines_break_at_words_beside_the_names() {
        let backend = UsedBackend {
            spec: None,
            kinds: Vec::new(),
            tables: Tables::new(),
        };
        let finding = Finding::new("sandbox-agent", "fast calls into containers");
        let finding = finding.missing("is not found", "run agentbox agent install");
        let shown = |columns| {
            let text = as_text(&backend, std::slice::from_ref(&finding), true, columns);
            anstream::adapter::strip_str(&text).to_string()
        };
        assert_eq!(
            shown(None),
            "missing  sandbox-agent  fast calls into containers: is not found\n\
             \x20                       fix: run agentbox agent install\n\n\
             The default backend works here.\n"
        );
        assert_eq!(
            shown(Some(50)),
            "missing  sandbox-agent  fast calls into\n\
             \x20                       containers: is not found\n\
             \x20                       fix: run agentbox agent\n\
             \x20                       install\n\n\
             The default backend works here.\n"
        );
        assert!(shown(Some(40)).lines().all(|line| line.len() <= 40));
    }
}
