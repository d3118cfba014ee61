//! `agentbox doctor`: reports the abilities of this machine, and anything missing.

#[cfg(feature = "docker")]
mod containers;
#[cfg_attr(not(local), path = "doctor/no_machine.rs")]
mod machine;
mod services;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::json;

use crate::app::App;
use crate::backend::Tables;
use crate::cli::Global;
use crate::console::wrap;
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

/// The result of one check.
#[derive(Debug, Serialize)]
struct Finding {
    /// The thing that was checked.
    name: &'static str,
    /// Its purpose.
    purpose: &'static str,
    /// Whether the backend needs it.
    needed: bool,
    ok: bool,
    /// Whether it is present but not as it should be.
    doubtful: bool,
    /// A description of the current state.
    found: String,
    /// The advice on how to fix it.
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

    /// Sets whether the backend needs it.
    fn needed(mut self, needed: bool) -> Self {
        self.needed = needed;
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

    /// Takes an error whose message ends with the fix.
    fn wrong(mut self, message: &str) -> Self {
        let (found, fix) = match message.rsplit_once("; ") {
            Some((found, fix)) => (found, Some(fix.to_owned())),
            None => (message, None),
        };
        (self.found, self.fix) = (found.to_owned(), fix);
        self
    }
}

/// The backend that the other commands would use.
#[derive(Debug)]
struct Backend {
    /// Its specification; `None` is the default.
    spec: Option<String>,
    /// The kinds of backends it consists of, if they are known.
    kinds: Vec<&'static str>,
    tables: Tables,
}

impl Backend {
    fn uses(&self, kind: &str) -> bool {
        self.kinds.contains(&kind)
    }

    /// Returns the backend of a configuration. Returns a finding about it too, unless
    /// it is the default and fine.
    fn of(app: Option<App>) -> (Self, Option<Finding>) {
        let Some(app) = app else {
            let usual = Self {
                spec: None,
                kinds: vec!["local"],
                tables: Tables::new(),
            };
            return (usual, None);
        };
        let backend = &app.spec;
        let spec = (!backend.implied).then(|| backend.text());
        let finding = Finding::new("backend", "where the files are").needed(true);
        let (kinds, finding) = match backend.check() {
            Ok(kinds) => (kinds, spec.clone().map(|spec| finding.ok(spec))),
            Err(failure) => (Vec::new(), Some(finding.wrong(&failure.to_string()))),
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

pub(crate) async fn run(global: &Global, args: &Args) -> Result<ExitCode, Failure> {
    let interrupts = Interrupts::watch()?;
    let look = async {
        let (app, configuration) = configuration(global);
        let (backend, finding) = Backend::of(app);
        let mut findings = vec![configuration];
        findings.extend(finding);
        findings.extend(machine::findings(&backend).await);
        #[cfg(feature = "docker")]
        findings.extend(containers::findings(&backend).await);
        findings.extend(services::findings());
        (backend, findings)
    };
    let (backend, findings) = match interrupts.unless(look).await {
        Ok(found) => found,
        Err(code) => return Ok(ExitCode::from(code)),
    };
    let works = findings.iter().all(|finding| finding.ok || !finding.needed);
    if args.json {
        output::print_json(&json!({"works": works, "findings": findings}))?;
    } else {
        let columns = std::io::stdout().is_terminal().then(wrap::columns);
        output::print(&as_text(&backend, &findings, works, columns))?;
    }
    Ok(ExitCode::from(match works {
        true => exit::SUCCESS,
        false => exit::ENVIRONMENT,
    }))
}

fn configuration(global: &Global) -> (Option<App>, Finding) {
    let finding =
        Finding::new("configuration", "flags, variables and the config file").needed(true);
    match App::new(global) {
        Ok(app) => {
            let found = match &app.config.file {
                Some(file) => format!("read from {}", file.display()),
                None => "there is no config file; the defaults are used".to_owned(),
            };
            (Some(app), finding.ok(found))
        }
        Err(failure) => (None, finding.wrong(&failure.to_string())),
    }
}

fn as_text(backend: &Backend, findings: &[Finding], works: bool, columns: Option<usize>) -> String {
    use anstyle::AnsiColor::{Green, Red, Yellow};
    let width = findings.iter().map(|finding| finding.name.len()).max();
    let width = width.unwrap_or_default();
    let column = "MISSING".len() + width + 4;
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
        let found = output::sanitized(&finding.found);
        let left = format!("{style}{word}{style:#}  {name:width$}");
        let about = format!("{purpose}: {found}");
        text.push_str(&wrap::beside(&left, column, &about, columns));
        if let Some(fix) = &finding.fix {
            let indent = wrap::indent(column, columns);
            let fix = format!("{:indent$}fix: {}\n", "", output::sanitized(fix));
            text.push_str(&wrap::lines(&fix, columns));
        }
    }
    let which = match &backend.spec {
        Some(spec) => format!("The backend {}", output::sanitized(spec)),
        None => "The default backend".to_owned(),
    };
    let verdict = match works {
        true => format!("\n{which} works here.\n"),
        false => format!("\n{which} does not work here; fix what is MISSING.\n"),
    };
    text.push_str(&wrap::lines(&verdict, columns));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_words_beside_the_names() {
        let backend = Backend {
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
