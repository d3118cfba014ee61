//! Asks the user at the terminal.

#[cfg(not(windows))]
mod keyboard;
#[cfg(windows)]
mod keyboard_windows;

use std::io;

use async_trait::async_trait;
use permissions::approval::{
    Answer, Approver, ApproverError, Asked, Effect, Interactive, Question, Remember,
};
use permissions::{Op, Target};
use tokio::sync::Mutex;

#[cfg(windows)]
use self::keyboard_windows as keyboard;
use super::show::Screen;
use crate::terminal::{BOLD, DIM, safe, wrap};

/// Maximum number of items listed in a line.
const MAX_ITEMS: usize = 8;

/// Maximum length of each item, in characters.
const MAX_ITEM_CHARS: usize = 300;

/// The user at the terminal.
#[derive(Debug)]
pub(crate) struct TerminalApprover {
    screen: Screen,
    /// Serializes questions.
    turn: Mutex<()>,
}

impl TerminalApprover {
    pub(crate) fn new(screen: Screen) -> Self {
        let turn = Mutex::default();
        Self { screen, turn }
    }

    async fn ask_user(&self, question: &Question) -> io::Result<Answer> {
        self.screen.print(&question_text(question, self.screen))?;
        // Anything typed before the question appeared is not an answer to it.
        keyboard::discard_input()?;
        let (kinds, what) = (kinds(question), what(question));
        loop {
            self.screen.prompt(&offer(&kinds, what))?;
            let line = keyboard::read_answer().await?;
            if line.is_empty() {
                self.screen.print("\n")?;
                return Ok(Answer::no());
            }
            let answer = read(&line);
            let told = match answer.as_ref().map(|answer| &answer.remember) {
                Some(Remember::No) => String::new(),
                Some(Remember::Session) => not_again(format!("any {kinds}")),
                Some(_) => not_again(format!("the same {what}")),
                None => format!(
                    "y allows this once. Until you leave, s allows the same {what} again, and a \
                     allows any {kinds}. n refuses; words after it say why."
                ),
            };
            let told = wrap::lines(&told, self.screen.width());
            self.screen.print(&told)?;
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
    }
}

fn not_again(what: String) -> String {
    format!("Until you leave, you will not be asked about {what}.")
}

/// Returns the operations that a question is about. An answer to a default leaves the
/// questions of rules.
fn kinds(question: &Question) -> String {
    let kind = |op: Op| match op {
        Op::Execute => "command",
        op => op.as_str(),
    };
    let (by_rule, by_default): (Vec<_>, Vec<_>) = question
        .ops()
        .into_iter()
        .partition(|(_, by_rule)| *by_rule);
    let joined = |ops: Vec<(Op, bool)>| {
        let kinds: Vec<&str> = ops.into_iter().map(|(op, _)| kind(op)).collect();
        kinds.join(" or ")
    };
    match (joined(by_rule), joined(by_default)) {
        (rule, default) if rule.is_empty() && default.is_empty() => "operation".to_owned(),
        (rule, default) if default.is_empty() => rule,
        (rule, default) if rule.is_empty() => format!("{default} unless a rule asks"),
        (rule, default) => format!("{rule}, or {default} unless a rule asks"),
    }
}

/// Returns the noun for what a remembered answer applies to.
fn what(question: &Question) -> &'static str {
    let is_command = |asked: &Asked| matches!(asked.target, Target::Command(_));
    let is_port = |asked: &Asked| matches!(asked.target, Target::Port(_));
    if question.asked.iter().all(is_command) {
        "command"
    } else if question.asked.iter().all(is_port) {
        "port"
    } else {
        "path"
    }
}

/// Returns the possible answers, the narrowest first.
fn offer(kinds: &str, what: &str) -> String {
    format!(
        "Allow it? [y]es, once; [s]ame {what}, this session; [a]ny {kinds}, this session; [n]o:"
    )
}

fn read(line: &str) -> Option<Answer> {
    let line = line.trim();
    let (word, note) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match (word.to_ascii_lowercase().as_str(), note.trim()) {
        ("y" | "yes", "") => Some(Answer::yes()),
        ("s" | "same", "") => Some(Answer::yes().remember(Remember::Path)),
        ("a" | "any", "") => Some(Answer::yes().remember(Remember::Session)),
        ("n" | "no", "") => Some(Answer::no()),
        ("n" | "no", note) => Some(Answer::no().note(note)),
        _ => None,
    }
}

/// Formats a question. Lines that only repeat the first one or the effect are left out.
fn question_text(question: &Question, screen: Screen) -> String {
    let all = question.to_string();
    let first = all.lines().next().unwrap_or_default();
    let width = screen.width();
    let mut text = screen.paint(BOLD, &wrap::hard(first, width));
    let dim = |line: &str| {
        let broken = wrap::hard(&wrap::lines(line, width), width);
        screen.paint(DIM, &broken)
    };
    let mut add = |line: &str| {
        text.push('\n');
        text.push_str(line);
    };
    let asked: Vec<String> = question.asked.iter().map(ToString::to_string).collect();
    if asked.len() > 1 {
        add(&dim(&listed("asks", asked.iter().map(|one| &**one))));
    }
    if !question.reasons.is_empty() {
        let reasons = question.reasons.iter().map(|reason| {
            let about = asked.iter().find_map(|asked| reason.strip_prefix(&**asked));
            let why = about.and_then(|rest| rest.strip_prefix(": "));
            why.unwrap_or(reason)
        });
        add(&dim(&listed("because", reasons)));
    }
    if let Some(how) = question.enforcement_text() {
        add(&dim(&format!("path rules: {how}")));
    }
    let effect = question.effect.to_string();
    match &question.effect {
        Effect::Diff { .. } | Effect::Write { .. } => {
            add(&screen.diff(&wrap::hard(&effect, width)));
        }
        // A short command is in the first line already.
        Effect::Command(_) if first.ends_with(effect.trim_start_matches("$ ")) => {}
        _ if effect.is_empty() => {}
        _ => add(&wrap::hard(&safe::text(&effect), width)),
    }
    if let Some(unseen) = question.effect.unseen() {
        add(&screen.paint(BOLD, &format!("{unseen}; a yes counts for all of it")));
    }
    text
}

/// Lists the first items in one line.
fn listed<'t>(what: &str, texts: impl ExactSizeIterator<Item = &'t str>) -> String {
    let more = texts.len().saturating_sub(MAX_ITEMS);
    let short = |text: &str| {
        let text = safe::text(text).replace('\n', "␊");
        wrap::shortened(&text, MAX_ITEM_CHARS)
    };
    let mut shown: Vec<String> = texts.take(MAX_ITEMS).map(short).collect();
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    format!("{what}: {}", shown.join("; "))
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        let _turn = self.turn.lock().await;
        let answer = self.ask_user(question).await;
        answer.map_err(|error| {
            ApproverError::new(format!("the terminal cannot be used: {error}; try again"))
        })
    }
}

/// Returns an approver that refuses every question, because there is no terminal.
pub(crate) fn no_terminal(instead: &'static str) -> Interactive {
    Interactive::new(move |_| async move {
        Err(ApproverError::new(format!(
            "cannot ask: not a terminal; run agentbox in one, or {instead}"
        )))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Screen = Screen::new(true, false);

    #[test]
    fn answers() {
        assert_eq!(read("y\n"), Some(Answer::yes()));
        assert_eq!(read(" YES \n"), Some(Answer::yes()));
        assert_eq!(read("n\n"), Some(Answer::no()));
        assert_eq!(read("no  not now\n"), Some(Answer::no().note("not now")));
        assert_eq!(read("s\n"), Some(Answer::yes().remember(Remember::Path)));
        assert_eq!(read("a\n"), Some(Answer::yes().remember(Remember::Session)));
        for unclear in ["\n", "always\n", "yn\n", "y maybe\n", "ja\n", "1\n"] {
            assert_eq!(read(unclear), None, "{unclear:?}");
        }
    }

    #[test]
    fn scopes_are_named_and_the_narrowest_is_first() {
        let path = Target::Path("/a".parse().unwrap());
        let asked = [Op::Write, Op::Edit].map(|op| Asked::new(op, path.clone()));
        let command = Asked::new(Op::Execute, Target::Command("ls".into()));
        for (asked, same, any) in [
            (
                asked.to_vec(),
                "[s]ame path",
                "[a]ny write or edit unless a rule asks, this session",
            ),
            (
                vec![asked[0].clone().by_rule(true), asked[1].clone()],
                "[s]ame path",
                "[a]ny write, or edit unless a rule asks, this session",
            ),
            (
                vec![command.by_rule(true)],
                "[s]ame command",
                "[a]ny command, this session",
            ),
            (vec![], "[s]ame", "[a]ny operation, this session"),
        ] {
            let question = Question::new("s", asked);
            let offered = offer(&kinds(&question), what(&question));
            let at = |text: &&str| offered.find(*text).unwrap_or_else(|| panic!("{offered}"));
            let order = ["[y]es, once", same, any, "[n]o:"];
            assert!(order.is_sorted_by_key(at), "{offered}");
        }
    }

    #[test]
    fn questions_have_coloured_diffs() {
        let question = Question::new("s", Vec::new())
            .effect(Effect::diff("/a", b"one\n", b"two\n"))
            .reason("it asks");
        let screen = Screen::new(true, true);
        let text = question_text(&question, screen);
        assert!(text.starts_with("\x1b[1mEdit /a"), "{text:?}");
        assert!(text.contains("\x1b[2mbecause: it asks\x1b[0m"), "{text:?}");
        assert!(
            text.ends_with("\x1b[31m-one\x1b[0m\n\x1b[32m+two\x1b[0m"),
            "{text:?}"
        );
    }

    #[test]
    fn no_part_of_a_long_line_passes_for_a_question() {
        let width = PLAIN.width().unwrap();
        // The terminal would wrap the line before text that looks like the question's
        // end.
        let filler = |before: usize| " ".repeat(width - before);
        let diff = format!("x{}--- a small change\n", filler(2));
        let line = format!("true{}Allow it? [y]es\n", filler(6));
        for effect in [
            Effect::diff("/a", b"", diff.as_bytes()),
            Effect::command(line),
            Effect::command(format!("true{}rm -rf b", filler("Run true".len()))),
        ] {
            let text = question_text(&Question::new("s", Vec::new()).effect(effect), PLAIN);
            for forged in ["--- a small", "Allow it?", "rm -rf b"] {
                assert!(!text.lines().any(|line| line.starts_with(forged)), "{text}");
            }
            let fits = |line: &str| textwrap::core::display_width(line) <= width;
            assert!(text.lines().all(fits) && text.contains("\n↪ "), "{text}");
        }
    }

    #[test]
    fn what_is_not_shown_is_said_last() {
        let long: String = (0..5_000).map(|n| format!("line {n}\n")).collect();
        let question = Question::new("s", Vec::new());
        let text = question_text(
            &question.effect(Effect::write("/a", None, long.as_bytes())),
            PLAIN,
        );
        let last = text.lines().last().unwrap();
        assert!(
            last.ends_with("more lines are not shown; a yes counts for all of it"),
            "{last}"
        );
    }

    #[test]
    fn questions_say_everything_once() {
        let ask = |line: &str| {
            let asked = Asked::new(Op::Execute, Target::Command(line.into()));
            let reason = format!("{asked}: a rule");
            let question = Question::new("s", vec![asked]).effect(Effect::command(line));
            question_text(&question.reason(reason), PLAIN)
        };
        assert_eq!(ask("ls -la"), "Run ls -la\nbecause: a rule");
        // The part that does not fit into the first line follows.
        let text = ask("echo a\nrm -r b");
        assert!(text.ends_with("\n$ echo a\n> rm -r b"), "{text}");
        let long = format!("echo {}; rm b", "x".repeat(5_000));
        let whole: String = ask(&long).split("\n↪ ").collect();
        assert!(whole.ends_with(&format!("$ {long}")));
        let hostile = ask("echo \x1b[2J");
        assert!(!hostile.contains('\x1b'), "{hostile:?}");
        let all = listed("asks", vec!["a"; 20].into_iter());
        assert_eq!(all, "asks: a; a; a; a; a; a; a; a; 12 more");
    }
}
