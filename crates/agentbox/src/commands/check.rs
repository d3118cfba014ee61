//! `agentbox check PRESET|FILE OPERATION TARGET`: explains a decision.

mod rule_line;

use std::fmt::Write as _;
use std::process::ExitCode;

use backend_core::VPath;
use permissions::access::Intent;
use permissions::approval::{Asked, Question};
use permissions::command::CommandContext;
use permissions::{Access, Action, Op, Policy, Reason, Target, Verdict, Vote};
use serde_json::{Value, json};

use crate::exit::{self, Failure};
use crate::output;
use crate::rules::{Rules, Source};
use crate::terminal::safe::sanitized;

/// Options of `check`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The rules: default, permissive, readonly, strict, or a file.
    #[arg(value_name = "PRESET|FILE")]
    rules: String,
    /// read, write, edit, delete, move, copy, ls, glob, grep or execute.
    operation: Op,
    /// The path as an agent sees it, or the command line.
    target: String,
    /// The destination, for move and copy.
    #[arg(value_name = "TO")]
    to: Option<String>,
    /// Prints the decision and every vote as JSON.
    #[arg(long)]
    json: bool,
}

/// One access of the operation, and the verdict on it.
type Part = (Access, Verdict);

#[derive(Debug)]
struct Explanation<'a> {
    args: &'a Args,
    rules: Rules,
    parts: Vec<Part>,
    /// The commands that a command line would run.
    commands: Vec<String>,
    decision: Action,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let rules = Rules::named(&args.rules)?;
    let policy = Policy::builder()
        .ruleset(&rules.ruleset, &VPath::root())
        .build();
    let (parts, commands) = parts(&policy, args)?;
    let decision = parts.iter().map(|(_, verdict)| verdict.action()).max();
    let explanation = Explanation {
        args,
        rules,
        parts,
        commands,
        decision: decision.unwrap_or(Action::Deny),
    };
    if args.json {
        output::print_json(&explanation.as_json())?;
    } else {
        output::print(&explanation.as_text())?;
    }
    Ok(ExitCode::from(match explanation.decision {
        Action::Allow => exit::SUCCESS,
        Action::Deny => 1,
        Action::Ask => 2,
    }))
}

/// Returns the accesses with their verdicts, and the commands of a command line.
fn parts(policy: &Policy, args: &Args) -> Result<(Vec<Part>, Vec<String>), Failure> {
    let path = |text: &str| {
        let path = VPath::root().join(text);
        path.map_err(|error| Failure::usage(error.to_string()))
    };
    let two = matches!(args.operation, Op::Move | Op::Copy);
    if args.to.is_some() != two {
        let operation = args.operation;
        return Err(Failure::usage(if two {
            format!("{operation} needs a second path, the destination; add it")
        } else {
            format!("{operation} has one target; quote it if it has spaces")
        }));
    }
    let target = || path(&args.target);
    let to = || path(args.to.as_deref().unwrap_or_default());
    let intent = match args.operation {
        Op::Read => Intent::read(target()?),
        Op::Write => Intent::write(target()?),
        Op::Edit => Intent::edit(target()?),
        Op::Delete => Intent::delete(target()?),
        Op::Move => Intent::rename(target()?, to()?),
        Op::Copy => Intent::copy(target()?, to()?),
        Op::Ls => Intent::ls(target()?),
        Op::Glob => Intent::glob(target()?),
        Op::Grep => Intent::grep(target()?),
        Op::Connect => {
            let port = args.target.parse().map_err(|_| {
                Failure::usage("connect needs a port, a number from 1 to 65535".to_owned())
            })?;
            return Ok((
                vec![(Access::port(port), policy.judge_port(port))],
                Vec::new(),
            ));
        }
        Op::Execute | Op::Terminal => {
            let root = VPath::root();
            let mut judged = policy.judge_command(CommandContext::new(&args.target, &root));
            if args.operation == Op::Terminal {
                let access = Access::terminal(&*args.target);
                judged.parts.push((access, policy.judge_terminal()));
            }
            return Ok((judged.parts, judged.commands));
        }
    };
    let judge = |access: Access| {
        let path = access.path().cloned().unwrap_or_default();
        let verdict = policy.judge(access.op, &path, access.kind, access.bytes);
        (access, verdict)
    };
    Ok((intent.accesses().map(judge).collect(), Vec::new()))
}

impl Explanation<'_> {
    /// Returns the question that the user would be asked.
    fn question(&self) -> Option<String> {
        if self.decision != Action::Ask {
            return None;
        }
        let asking = |(_, verdict): &&Part| verdict.action() == Action::Ask;
        let asking = self.parts.iter().filter(asking);
        let asked = asking.clone();
        let asked = asked.map(|(access, _)| Asked::new(access.op, access.target.clone()));
        let mut question = Question::new("check", asked.collect());
        for (access, verdict) in asking {
            question = question.reason(format!("{access}: {}", verdict.decisive()));
        }
        Some(question.to_string())
    }

    fn as_text(&self) -> String {
        let bold = anstyle::Style::new().bold();
        let (decision, operation) = (self.decision, self.args.operation);
        let target = sanitized(&self.args.target);
        let mut text = format!("{bold}{decision}{bold:#}  {operation} {target}\n");
        if self.commands.len() > 1 {
            let _ = writeln!(text, "it would run:");
            for command in &self.commands {
                let _ = writeln!(text, "  {}", sanitized(command));
            }
        }
        for (access, verdict) in &self.parts {
            let access = access.to_string();
            for vote in verdict.votes() {
                let _ = write!(text, "  {}: {vote}", sanitized(&access));
                if let Source::File(path, _) = &self.rules.source
                    && let Some(line) = rule_line::line(vote, &self.rules)
                {
                    let _ = write!(text, " [{}:{line}]", path.display());
                }
                text.push('\n');
            }
        }
        if let Some(question) = self.question() {
            let _ = writeln!(text, "the user would be asked:");
            // The votes above show the rest.
            let said = |line: &&str| !line.starts_with("asks: ") && !line.starts_with("because: ");
            for line in question.lines().filter(said) {
                let _ = writeln!(text, "  {line}");
            }
        }
        text
    }

    fn as_json(&self) -> Value {
        let votes = self.parts.iter().flat_map(|(access, verdict)| {
            let votes = verdict.votes();
            votes.map(|vote| vote_json(access, vote, &self.rules))
        });
        let rules = match &self.rules.source {
            Source::Preset(preset) => json!({"preset": preset.name()}),
            Source::File(path, _) => json!({"file": path}),
            Source::Config => Value::Null,
        };
        json!({
            "rules": rules,
            "operation": self.args.operation.as_str(),
            "target": self.args.target,
            "to": self.args.to,
            "decision": self.decision.as_str(),
            "commands": self.commands,
            "votes": votes.collect::<Vec<Value>>(),
            "question": self.question(),
        })
    }
}

fn vote_json(access: &Access, vote: &Vote, rules: &Rules) -> Value {
    let rule = match &vote.reason {
        Reason::Rule(rule) => json!({
            "section": rule.op.as_str(),
            "number": rule.index + 1,
            "pattern": rule.pattern,
            "description": rule.description,
        }),
        _ => Value::Null,
    };
    let target = match &access.target {
        Target::Path(path) => json!(path.as_str()),
        Target::Command(line) => json!(line),
        Target::Port(port) => json!(port),
    };
    json!({
        "operation": access.op.as_str(),
        "target": target,
        "layer": vote.layer.to_string(),
        "action": vote.action.as_str(),
        "why": vote.to_string(),
        "rule": rule,
        "line": rule_line::line(vote, rules),
    })
}
