//! `agentbox doctor`: reports the abilities of this machine, and anything missing.

#[cfg(containers)]
mod agents;
#[cfg(feature = "docker")]
mod containers;
mod finding;
#[cfg(feature = "daytona")]
mod hosted;
#[cfg(local)]
mod machine;
#[cfg(not(local))]
mod no_machine;
#[cfg(feature = "k8s")]
mod pods;

use std::env::consts::EXE_SUFFIX;
use std::io::IsTerminal as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use self::finding::{Finding, IMAGE, Status};
#[cfg(not(local))]
use self::no_machine as machine;
use crate::app::App;
use crate::backend;
use crate::backend::kind::{Kind, Tables};
use crate::exit::{self, Failure};
use crate::options::CommonOptions;
use crate::output;
use crate::signals::Interrupts;
use crate::system;
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
        #[cfg(feature = "k8s")]
        findings.extend(pods::findings(&backend).await);
        #[cfg(feature = "daytona")]
        findings.extend(hosted::findings(&backend).await);
        #[cfg(containers)]
        findings.push(agents::finding(&backend));
        findings.push(program("python3", "MCP clients in Python"));
        findings.push(program("node", "MCP clients in JavaScript"));
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

/// The backend that the other commands would use.
#[derive(Debug)]
struct UsedBackend {
    /// Its specification; `None` is the default.
    spec: Option<String>,
    /// The kinds of backends it consists of, if they are known.
    kinds: Vec<Kind>,
    tables: Tables,
}

impl UsedBackend {
    fn uses(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }

    /// Returns the backend, and a finding about it unless it is the default and fine.
    fn of(app: Option<App>) -> (Self, Option<Finding>) {
        let Some(app) = app else {
            let usual = Self {
                spec: None,
                kinds: vec![Kind::Local],
                tables: Tables::new(),
            };
            return (usual, None);
        };
        let spec = (!app.spec.implied).then(|| app.spec.text());
        let finding = Finding::new("backend", "where the files are").needed(true);
        let (kinds, finding) = match backend::check(&app.spec) {
            Ok(kinds) => (kinds, spec.clone().map(|spec| finding.ok(spec))),
            Err(failure) => (Vec::new(), Some(finding.wrong(&failure))),
        };
        let tables = app.config.backends;
        let backend = Self {
            spec,
            kinds,
            tables,
        };
        (backend, finding)
    }
}

/// Looks for an interpreter that MCP clients run on.
fn program(name: &'static str, purpose: &'static str) -> Finding {
    let finding = Finding::new(name, purpose);
    let path = system::variable("PATH").unwrap_or_default();
    let mut paths =
        std::env::split_paths(&path).map(|directory| directory.join(format!("{name}{EXE_SUFFIX}")));
    let found = paths.find(|path| {
        let found = path.metadata();
        found.is_ok_and(|found| found.is_file() && system::is_executable(&found))
    });
    match found {
        Some(path) => finding.ok(path.display().to_string()),
        None => finding.missing("is not in PATH", format!("install {name} if you need it")),
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
    let is_unsure = |finding: &Finding| finding.name == IMAGE && finding.status != Status::Ok;
    let verdict = if works && findings.iter().any(is_unsure) {
        format!("\n{which} works here, if its image can be obtained.\n")
    } else if works {
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
