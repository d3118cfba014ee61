//! [`Transcript`]: the results of a script, as text.

use std::fmt::{self, Write as _};

use serde_json::Value;
use similar::TextDiff;

use crate::{BlockSummary, Environment, Outcome, Script, Step, YesNo};

/// The transcript of the bundled conversation.
const EXPECTED: &str = include_str!("../data/transcript.txt");

/// The beginning of every step.
const HEAD: &str = "step ";

/// The results of a script.
///
/// Each step begins with a line `step N in conversation: tool arguments`. The following
/// lines appear where they apply: the purpose of the step (`why:`), the questions and
/// answer (`asked:`), `ok` or `error`, the text with `| ` before each line, a line
/// `block:` for each block that is not text, and `data:` as one line of JSON with
/// sorted keys. Control characters are written as `<U+001B>`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transcript {
    /// The steps, in order.
    pub entries: Vec<Entry>,
}

/// The result of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The step's number in the script, from 1.
    pub number: usize,
    /// The transcript of the step.
    pub text: String,
}

impl Entry {
    /// Formats the result of a step. The outcome must already be masked.
    pub fn new(number: usize, step: &Step, outcome: &Outcome) -> Self {
        let arguments = line(&Value::Object(step.arguments.clone()));
        let mut text = format!(
            "{HEAD}{number} in {}: {} {arguments}\n",
            step.conversation, step.tool
        );
        if let Some(say) = &step.say {
            push(&mut text, "why: ", say);
        }
        if outcome.questions > 0 || step.answer.is_some() {
            let answer = match step.answer {
                Some(YesNo::Yes) => "yes",
                Some(YesNo::No) => "no",
                None => "no question expected",
            };
            let asked = outcome.questions;
            let s = if asked == 1 { "" } else { "s" };
            push(&mut text, "asked: ", &format!("{asked} time{s}, {answer}"));
        }
        text.push_str(if outcome.is_error { "error\n" } else { "ok\n" });
        for line in outcome.text.split('\n') {
            push(&mut text, if line.is_empty() { "|" } else { "| " }, line);
        }
        for BlockSummary {
            media_type,
            bytes,
            hash,
        } in &outcome.blocks
        {
            let shown = format!("{media_type}, {bytes} bytes, sha256 {hash}");
            push(&mut text, "block: ", &shown);
        }
        if let Some(data) = &outcome.structured {
            push(&mut text, "data: ", &line(data));
        }
        Self { number, text }
    }
}

/// Adds a line, with control characters escaped.
fn push(out: &mut String, before: &str, line: &str) {
    out.push_str(before);
    for c in line.chars() {
        if c.is_control() {
            // Writing to a string cannot fail.
            let _ = write!(out, "<U+{:04X}>", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out.push('\n');
}

/// Formats JSON on one line, independent of the order of the keys.
fn line(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted.to_string()
}

impl Transcript {
    /// Returns the expected transcript of the bundled conversation, where commands run.
    pub fn expected() -> Self {
        Self::parse(EXPECTED)
    }

    /// Parses a written transcript.
    pub fn parse(text: &str) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        for line in text.split_inclusive('\n') {
            let number = line.strip_prefix(HEAD).and_then(|rest| {
                let (number, _) = rest.split_once(' ')?;
                number.parse().ok()
            });
            if let Some(number) = number {
                let text = line.to_owned();
                entries.push(Entry { number, text });
            } else if let Some(last) = entries.last_mut() {
                last.text.push_str(line);
            }
        }
        for entry in &mut entries {
            let end = entry.text.trim_end_matches('\n').len();
            entry.text.truncate(end);
            entry.text.push('\n');
        }
        Self { entries }
    }

    /// Removes the steps that cannot be played in an environment.
    #[must_use]
    pub fn for_environment(mut self, script: &Script, environment: &Environment) -> Self {
        self.entries.retain(|entry| {
            let at = entry.number.checked_sub(1);
            let step = at.and_then(|at| script.steps.get(at));
            step.is_none_or(|step| environment.can_play(step))
        });
        self
    }

    /// Returns a unified diff from the expected transcript, if they differ.
    pub fn difference(&self, expected: &Self) -> Option<String> {
        let (now, wanted) = (self.to_string(), expected.to_string());
        (now != wanted).then(|| {
            TextDiff::from_lines(&wanted, &now)
                .unified_diff()
                .context_radius(4)
                .header("expected", "played")
                .to_string()
        })
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<&str> = self.entries.iter().map(|entry| &*entry.text).collect();
        f.write_str(&texts.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn script() -> Script {
        let script = json!({
            "files": [],
            "conversations": [{"name": "one", "capability": {}}],
            "steps": [
                {"in": "one", "tool": "ls", "arguments": {"b": 1, "a": "x\ny"}, "answer": "no"},
                {"in": "one", "tool": "execute", "arguments": {}, "needs": ["commands"], "say": "so"},
            ],
        });
        Script::from_json(&script.to_string()).unwrap()
    }

    fn transcript(script: &Script) -> Transcript {
        let first = Outcome {
            text: "step 9 in x\n\n\u{1b}[1mb\r\n".to_owned(),
            is_error: true,
            blocks: vec![BlockSummary::new("image/png", b"abc")],
            structured: Some(json!({"z": {"y": 1, "x": 2}, "a": 3})),
            questions: 1,
        };
        Transcript {
            entries: vec![
                Entry::new(1, &script.steps[0], &first),
                Entry::new(2, &script.steps[1], &Outcome::default()),
            ],
        }
    }

    #[test]
    fn a_transcript_reads_back() {
        let script = script();
        let transcript = transcript(&script);
        let expected = "step 1 in one: ls {\"a\":\"x\\ny\",\"b\":1}\n\
                        asked: 1 time, no\n\
                        error\n\
                        | step 9 in x\n\
                        |\n\
                        | <U+001B>[1mb<U+000D>\n\
                        |\n\
                        block: image/png, 3 bytes, sha256 ba7816bf8f01cfea\n\
                        data: {\"a\":3,\"z\":{\"x\":2,\"y\":1}}\n\
                        \n\
                        step 2 in one: execute {}\n\
                        why: so\n\
                        ok\n\
                        |\n";
        assert_eq!(transcript.to_string(), expected);
        assert_eq!(Transcript::parse(expected), transcript);
        let some = transcript.for_environment(&script, &Environment::default());
        assert_eq!(some.entries.len(), 1);
    }

    #[test]
    fn a_question_that_nobody_foresaw_shows() {
        let script = script();
        let asked = Outcome {
            questions: 2,
            ..Outcome::default()
        };
        let entry = Entry::new(2, &script.steps[1], &asked);
        assert!(
            entry.text.contains("asked: 2 times, no question expected"),
            "{}",
            entry.text
        );
    }

    #[test]
    fn a_difference_is_shown_with_its_step() {
        let script = script();
        let (one, mut two) = (transcript(&script), transcript(&script));
        assert_eq!(one.difference(&two), None);
        two.entries[0].text = two.entries[0].text.replace("error", "ok");
        let shown = one.difference(&two).unwrap();
        assert!(shown.contains("-ok\n+error\n"), "{shown}");
        assert!(shown.contains("step 1 in one"), "{shown}");
    }
}
