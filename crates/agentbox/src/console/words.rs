//! Splits the user's input into words, with shell quoting.
//!
//! Quotes may span lines. A word `<<TAG` stands for the following lines, up to a line
//! `TAG`.

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// Its value, without quotes.
    pub(crate) text: String,
    /// Number of bytes at the start of `text` that were not quoted.
    pub(crate) plain: usize,
    /// Its offset in the input.
    pub(crate) start: usize,
    /// The terminator of the heredoc that it stands for.
    pub(crate) tag: Option<HeredocTag>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeredocTag {
    name: String,
    /// `<<-`: leading tabs of a line are ignored.
    tabs: bool,
}

/// The missing part of incomplete input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MissingInput {
    /// A line that contains this character.
    Char(char),
    /// A line that equals this, perhaps after tabs.
    Line(String),
    Any,
}

impl MissingInput {
    /// Returns `true` if a line may complete the input.
    pub(crate) fn is_met_by(&self, line: &str) -> bool {
        match self {
            Self::Char(c) => line.contains(*c),
            Self::Line(tag) => line.trim_start_matches('\t').trim_end() == tag,
            Self::Any => true,
        }
    }
}

/// The words of the first command of an input.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    /// The words; the last one may be incomplete.
    pub(crate) all: Vec<Word>,
    /// Number of bytes of the input that they take.
    pub(crate) used: usize,
    /// The missing part, if the input is incomplete.
    pub(crate) open: Option<MissingInput>,
}

/// Splits the first command of `input`, starting at the byte `from`.
pub(crate) fn split(input: &str, from: usize) -> Words {
    let mut words = line(input, from);
    if words.open.is_none() {
        bodies(input, &mut words);
    }
    words
}

fn line(input: &str, from: usize) -> Words {
    let mut words = Words {
        used: input.len(),
        ..Words::default()
    };
    let mut word: Option<Word> = None;
    // The quote that is open.
    let mut quote: Option<char> = None;
    let text = input.get(from..).unwrap_or_default();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if quote.is_none() && c.is_whitespace() {
            words.all.extend(word.take());
            if c == '\n' {
                words.used = from + at + 1;
                tags(&mut words.all);
                return words;
            }
            continue;
        }
        // A continued line.
        if quote != Some('\'') && c == '\\' && chars.next_if(|next| next.1 == '\n').is_some() {
            continue;
        }
        let now = word.get_or_insert_with(|| Word {
            start: from + at,
            plain: usize::MAX,
            ..Word::default()
        });
        let plain = now.plain.min(now.text.len());
        match (quote, c) {
            (None, '\'' | '"') => (quote, now.plain) = (Some(c), plain),
            (Some(open), c) if open == c => quote = None,
            (None, '\\') => {
                now.plain = plain;
                match chars.next() {
                    Some((_, next)) => now.text.push(next),
                    None => words.open = Some(MissingInput::Any),
                }
            }
            (Some('"'), '\\') => {
                let escaped = chars.next_if(|next| "\"\\$`".contains(next.1));
                now.text.push(escaped.map_or('\\', |(_, next)| next));
            }
            (_, c) => now.text.push(c),
        }
    }
    if let Some(quote) = quote {
        words.open = Some(MissingInput::Char(quote));
    }
    words.all.extend(word);
    tags(&mut words.all);
    words
}

/// Finds the words that begin a heredoc.
fn tags(words: &mut Vec<Word>) {
    let mut found: Vec<Word> = Vec::with_capacity(words.len());
    for mut word in std::mem::take(words) {
        word.plain = word.plain.min(word.text.len());
        // `<< TAG` equals `<<TAG`.
        let before = found.last_mut().filter(|last| {
            last.tag.is_none()
                && last.plain == last.text.len()
                && matches!(&*last.text, "<<" | "<<-")
        });
        if let Some(before) = before
            && is_tag(&word.text)
        {
            let tabs = before.text.len() > 2;
            before.tag = Some(HeredocTag {
                name: word.text,
                tabs,
            });
            continue;
        }
        if word.plain >= 2
            && let Some(name) = word.text.strip_prefix("<<")
        {
            let (name, tabs) = match name.strip_prefix('-') {
                Some(name) => (name, true),
                None => (name, false),
            };
            if is_tag(name) {
                let name = name.to_owned();
                word.tag = Some(HeredocTag { name, tabs });
            }
        }
        found.push(word);
    }
    *words = found;
}

fn is_tag(name: &str) -> bool {
    let mut bytes = name.bytes();
    let first = bytes.next();
    first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Reads the bodies of heredocs.
fn bodies(input: &str, words: &mut Words) {
    let Words { all, used, open } = words;
    for word in all {
        let Some(tag) = &word.tag else { continue };
        let mut body = String::new();
        let mut ended = false;
        let rest = input.get(*used..).unwrap_or_default();
        for line in rest.split_inclusive('\n') {
            *used += line.len();
            let line = if tag.tabs {
                line.trim_start_matches('\t')
            } else {
                line
            };
            let text = line.strip_suffix('\n').unwrap_or(line);
            if text.strip_suffix('\r').unwrap_or(text) == tag.name {
                ended = true;
                break;
            }
            body.push_str(line);
        }
        if !ended {
            *open = Some(MissingInput::Line(tag.name.clone()));
            return;
        }
        word.text = body;
        word.plain = 0;
    }
}

/// Quotes a text as one word.
pub(crate) fn quote(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./,:@%+*?".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(input: &str) -> Vec<String> {
        let words = split(input, 0);
        assert_eq!(words.open, None, "{input:?}");
        words.all.into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn quotes_are_those_of_a_shell() {
        assert_eq!(
            texts(r#"a 'b c' "d \"e\" \n" f\ g"#),
            ["a", "b c", r#"d "e" \n"#, "f g"]
        );
        assert_eq!(texts("'' x'y'z"), ["", "xyz"]);
        assert_eq!(texts("a 'two\nlines'"), ["a", "two\nlines"]);
        assert_eq!(texts("a \\\nb"), ["a", "b"]);
        assert_eq!(texts("a \\\n b"), ["a", "b"]);
    }

    #[test]
    fn what_is_missing_is_known() {
        assert_eq!(split("a 'b", 0).open, Some(MissingInput::Char('\'')));
        assert_eq!(split("a \"b", 0).open, Some(MissingInput::Char('"')));
        assert_eq!(split("a \\", 0).open, Some(MissingInput::Any));
        assert_eq!(
            split("a <<X\nb\n", 0).open,
            Some(MissingInput::Line("X".into()))
        );
    }

    #[test]
    fn text_on_lines_of_its_own() {
        assert_eq!(
            texts("w a <<EOF\none 'two\n\nEOF\n"),
            ["w", "a", "one 'two\n\n"]
        );
        assert_eq!(texts("w <<A <<B\n1\nA\n2\nB"), ["w", "1\n", "2\n"]);
        assert_eq!(texts("w << EOF\nx\nEOF"), ["w", "x\n"]);
        assert_eq!(texts("w <<-EOF\n\tx\n\tEOF"), ["w", "x\n"]);
        assert_eq!(texts("w '<<EOF'"), ["w", "<<EOF"]);
        assert_eq!(
            texts("echo $((1 << 2)) <<<x"),
            ["echo", "$((1", "<<", "2))", "<<<x"]
        );
        let input = "w <<EOF\nx\nEOF\nls\n";
        assert_eq!(&input[split(input, 0).used..], "ls\n");
    }

    #[test]
    fn what_was_quoted_is_known() {
        let words = split(r#"path=x pa"th"=x 'path=x'"#, 0).all;
        let plain: Vec<usize> = words.iter().map(|word| word.plain).collect();
        assert_eq!(plain, [6, 2, 0]);
    }

    #[test]
    fn what_would_mean_something_is_quoted() {
        for (text, quoted) in [
            ("a/b.rs", "a/b.rs"),
            ("--a", "'--a'"),
            ("{a}", "'{a}'"),
            ("", "''"),
        ] {
            assert_eq!(quote(text), quoted);
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_quoted(text in any::<String>()) {
            prop_assert_eq!(texts(&format!("x {} y", quote(&text))), vec!["x".to_owned(), text, "y".to_owned()]);
        }

        #[test]
        fn no_input_is_too_odd(text in "[a<'\"\\\\ \n\t-]{0,40}|.{0,20}") {
            let words = split(&text, 0);
            prop_assert!(text.is_char_boundary(words.used));
            for word in &words.all {
                prop_assert!(text.is_char_boundary(word.start));
                prop_assert!(word.text.is_char_boundary(word.plain));
            }
        }
    }
}
