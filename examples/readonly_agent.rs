//! A code-review bot: it reads a directory, changes nothing, and its findings are data.
//!
//! `cargo run --example readonly_agent -- BASE_URL MODEL DIR` reviews a directory. Without
//! arguments a script on loopback plays the model, and the code is made up.
//!
//! Look at:
//! - `reviewer`: read-only twice over. The rules offer no tool that changes anything, and
//!   the backend could not do it anyway;
//! - `ReportFinding`: a tool of our own. A finding about a line that does not exist is an
//!   error that the model reads and mends, so no invented one gets through.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example shows what it does, and reads its key from the environment"
)]

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use backend_core::BackendExt as _;
use backend_local::LocalBackend;
use console_tools::{Context, CustomTool, Reply, ToolError, ToolResult, Toolset};
use examples::chat::{Endpoint, Error, Model, Script, Turn, begin, brief, print};
use permissions::{Access, Op, Preset};
use serde_json::json;

/// Number of findings after which the bot is told to stop.
const MAX_FINDINGS: usize = 50;

#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Finding {
    /// The file.
    path: String,
    /// The line, counted from 1.
    line: usize,
    severity: Severity,
    /// The problem and its solution, in one sentence.
    message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Note,
    Problem,
}

/// The findings so far. Clones share them.
#[derive(Debug, Clone, Default)]
struct ReportFinding(Arc<Mutex<Vec<Finding>>>);

impl CustomTool for ReportFinding {
    type Args = Finding;
    const NAME: &'static str = "report_finding";
    const DESCRIPTION: &'static str = "Reports one finding of the review.";
    const OPERATIONS: &'static [Op] = &[Op::Read];

    fn accesses(&self, context: &Context, finding: &Finding) -> Result<Vec<Access>, ToolError> {
        Ok(vec![Access::file(Op::Read, context.path(&finding.path)?)])
    }

    async fn run(&self, context: &Context, finding: Finding) -> ToolResult {
        let text = context.backend.read_to_string(&finding.path).await?;
        let lines = text.lines().count();
        if finding.line == 0 || finding.line > lines {
            let path = &finding.path;
            let text = format!("{path} has {lines} lines; report one of them");
            return Err(ToolError::fixable(text));
        }
        let mut findings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if findings.len() == MAX_FINDINGS {
            return Err(ToolError::refused("these are enough findings; stop here"));
        }
        findings.push(finding);
        Ok(Reply::text("Reported."))
    }
}

fn reviewer(dir: &Path, report: &ReportFinding) -> Result<Toolset, Error> {
    let backend = LocalBackend::builder(dir).read_only(true).open()?;
    let toolset = Toolset::builder(Arc::new(backend))
        .ruleset(Preset::Readonly.ruleset())
        .tool(report.clone());
    Ok(toolset.build()?)
}

async fn review(dir: &Path, model: &Model) -> Result<Vec<Finding>, Error> {
    let report = ReportFinding::default();
    let chat = reviewer(dir, &report)?.conversation("review");
    let task = "Review this code. Report each finding with report_finding, then sum up.";
    let mut messages = begin(&chat, task).await?;
    model.converse(&chat, &mut messages, &mut print).await?;
    let findings = report.0.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(findings.clone())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let findings = match &arguments[..] {
        [] => {
            let made_up = made_up_code()?;
            review(made_up.path(), &Model::scripted(script()).await?).await?
        }
        [base_url, model, dir] => {
            let model = Model::at(Endpoint {
                base_url: base_url.clone(),
                model: model.clone(),
                key: std::env::var("OPENAI_API_KEY").ok(),
            })?;
            review(Path::new(dir), &model).await?
        }
        _ => return Err("usage: readonly_agent [BASE_URL MODEL DIR]".into()),
    };
    println!("\n\n# The review");
    for Finding {
        path,
        line,
        severity,
        message,
    } in findings
    {
        println!(
            "{}:{line}: {severity:?}: {}",
            brief(&path, 1),
            brief(&message, 1)
        );
    }
    Ok(())
}

fn made_up_code() -> Result<tempfile::TempDir, Error> {
    let dir = tempfile::tempdir()?;
    let code = "def mean(xs):\n    return sum(xs) / len(xs)\n";
    std::fs::write(dir.path().join("stats.py"), code)?;
    std::fs::write(dir.path().join(".env"), "TOKEN=1\n")?;
    Ok(dir)
}

/// Stands for a model: it reads, tries what it may not do, and miscounts a line.
fn script() -> Script {
    let finding = |line: usize| {
        json!({"path": "stats.py", "line": line, "severity": "problem",
            "message": "An empty list divides by zero; return None for it."})
    };
    Script::new()
        .says("I read the code.")
        .calls("read_file", json!({"path": "stats.py"}))
        .turn(
            Turn::default()
                .calls("write_file", json!({"path": "stats.py", "content": ""}))
                .calls("execute", json!({"command": "rm stats.py"}))
                .calls("read_file", json!({"path": ".env"})),
        )
        .says("I only report, then.")
        .calls("report_finding", finding(12))
        .calls("report_finding", finding(2))
        .says("One problem.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_reports_what_is_there_and_changes_nothing() {
        let dir = made_up_code().unwrap();
        let before = std::fs::read(dir.path().join("stats.py")).unwrap();
        let model = Model::scripted(script()).await.unwrap();
        let findings = review(dir.path(), &model).await.unwrap();
        let found: Vec<_> = findings.iter().map(|finding| finding.line).collect();
        assert_eq!(found, [2], "the line that does not exist is not reported");
        assert_eq!(findings[0].severity, Severity::Problem);
        assert_eq!(std::fs::read(dir.path().join("stats.py")).unwrap(), before);
    }

    #[tokio::test]
    async fn it_has_no_tool_that_changes_anything() {
        let dir = made_up_code().unwrap();
        let toolset = reviewer(dir.path(), &ReportFinding::default()).unwrap();
        let names: Vec<_> = toolset
            .definitions()
            .iter()
            .map(|tool| tool.name.to_string())
            .collect();
        assert_eq!(names, ["ls", "read_file", "glob", "grep", "report_finding"]);
        let chat = toolset.conversation("test");
        let secret = chat.call("read_file", json!({"path": ".env"})).await;
        assert!(!secret.is_success(), "{}", secret.text);
    }
}
