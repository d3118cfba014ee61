//! Shell built-ins that run code, or change the meaning of names and directories.

use super::{Stdin, Walk};
use crate::directory::Directories;
use crate::findings::NoteKind;
use crate::named_path::PathUse;
use crate::options::{self, Row};
use crate::shell;
use crate::tables;
use crate::word::Word;

impl Walk<'_> {
    /// Walks `eval`: the words are joined to a program.
    pub(super) fn eval(&mut self, words: &[Word]) {
        let options = usize::from(words.get(1).and_then(Word::literal) == Some("--"));
        let words: Vec<&Word> = words.iter().skip(1 + options).collect();
        if let Some(word) = words.iter().find(|word| word.literal().is_none()) {
            return self.computed_code(word, "what 'eval' runs is computed");
        }
        let text: Vec<&str> = words.iter().filter_map(|word| word.literal()).collect();
        self.program(&text.join(" "), Stdin::None);
    }

    /// Walks the program of `trap 'program' SIGNAL`.
    pub(super) fn trap(&mut self, words: &[Word], stdin: Stdin) {
        let parsed = options::parse(&Row::new("trap", "lpP", ""), words);
        self.options("trap", &parsed, words, stdin);
        if let [program, _, ..] = parsed.operands.as_slice()
            && let Some(word) = words.get(*program)
            && !word.is("-")
        {
            let from = self.findings.mark();
            self.string_command(&word.clone());
            if let Some(program) = word.literal() {
                self.set_trap(program, from);
            }
        }
    }

    /// Checks for `set -k`, with which later arguments can be assignments.
    pub(super) fn set(&mut self, words: &[Word]) {
        let options = words.iter().skip(1).map(Word::shown);
        let mut options = options.take_while(|text| text != "--" && text != "-");
        let keyword =
            |text: String| text == "keyword" || text.starts_with(['-', '+']) && text.contains('k');
        if options.any(keyword) {
            self.computed("'set -k' changes what the rest of the line means");
        }
    }

    pub(super) fn change_directory(&mut self, base: &str, words: &[Word]) {
        let parsed = options::parse(&Row::new("cd", "+LPe", ""), words);
        let stacks = base == "popd" || base == "pushd";
        let operand = parsed.operands(words).next();
        let rotates = |word: &Word| word.starts_with("+") || word.starts_with("-");
        match operand {
            None if !stacks && parsed.unknown.is_empty() => self.dirs.change_to_home(),
            Some(word) if !stacks || base == "pushd" && !rotates(word) => {
                self.named(word, PathUse::Read);
                self.dirs.change_to(word);
                let up = word.shown().split('/').any(|name| name == "..");
                if up && parsed.has(&["P"]) {
                    // The parent of the link's target.
                    self.dirs.change_to_unknown();
                    self.computed("'cd -P' leads above what a link leads to");
                }
            }
            // Back to an earlier directory. All of them are kept.
            _ => self.dirs.change_to_unknown(),
        }
        if !parsed.unknown.is_empty() {
            self.dirs.change_to_unknown();
        }
    }

    /// Checks built-ins that change the meaning of names.
    pub(super) fn rebinds(&mut self, base: &str, words: &[Word]) {
        let args = words.iter().skip(1);
        let options = args.clone().filter(|word| word.starts_with("-"));
        let letters: String = options.map(Word::shown).collect();
        let bad = match base {
            "alias" => args
                .clone()
                .any(|word| word.shown().contains('=') || word.is_computed()),
            "enable" => letters.contains(['f', 'n', 'd']),
            "hash" => letters.contains('p'),
            "complete" | "compgen" => letters.contains(['C', 'F', 'W']),
            "shopt" => args.clone().any(|word| {
                let known = |text| tables::SHOPT.contains(&text);
                !word.starts_with("-") && !word.literal().is_some_and(known)
            }),
            _ => true,
        };
        if bad {
            self.computed(format!("'{base}' changes what names stand for"));
        }
    }

    /// Checks built-ins that set variables.
    pub(super) fn sets(&mut self, base: &str, words: &[Word]) {
        let by_option = base == "printf";
        let declares = matches!(base, "declare" | "typeset" | "local");
        let mut set_next = false;
        for (at, word) in words.iter().enumerate().skip(1) {
            let text = word.literal().map(str::to_owned);
            let name = word.split_equals().map(|(name, _)| name).or(text);
            let Some(name) = name else {
                // A name may have an index, which is evaluated.
                let may_be_option = at == 1 && Directories::begins_computed(word);
                let named = !by_option || set_next || word.starts_with("-v") || may_be_option;
                self.numbers |= word.is_computed() && named;
                if word.is_computed() && !by_option && !matches!(base, "let" | "read") {
                    let text = format!("'{base}' sets variables whose names are computed");
                    self.findings.note(NoteKind::Opaque, text);
                }
                continue;
            };
            let is_option = name.starts_with('-');
            if declares && is_option && name.contains('n') {
                self.computed(format!("'{base} -n' gives a variable another name"));
            }
            self.numbers |= declares && is_option && name.contains('i') || base == "let";
            // The value of an array is read once more: `declare -a x="$y"`.
            self.arrays |= declares && is_option && name.contains(['a', 'A']);
            let value = word.split_equals().map(|(_, value)| value);
            self.numbers |= declares && self.arrays && value.is_some_and(|it| it.is_computed());
            let compound = |(_, value): (String, Word)| value.starts_with("(");
            let evaluates = name.contains('[')
                || base == "let"
                || declares && word.split_equals().is_some_and(compound);
            if evaluates && word.shown().contains(['`', '$']) {
                self.computed(format!("'{base}' runs what stands in an argument"));
            }
            if !is_option && (!by_option || set_next) {
                let bare = name
                    .split(['[', '+', '-', '*', '/'])
                    .next()
                    .unwrap_or_default();
                if shell::is_name(bare) && (base != "export" || word.split_equals().is_some()) {
                    self.variable(bare, true);
                }
            }
            set_next = name == "-v";
        }
    }
}
