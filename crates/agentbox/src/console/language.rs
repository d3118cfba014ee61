//! Parses the user's input into tool calls.
//!
//! ```text
//! read src/main.rs --offset 10      fields in the order of the schema, or by name
//! edit a.txt old new --replace-all  a flag is a field that is true
//! write a.txt <<EOF                 text on lines of its own
//! run --timeout 5 cargo test        the rest of the line is the command; so is !cargo test
//! glob {"pattern": "*.rs"}          as a model would
//! shell vim a.txt                   on the user's terminal; so is !vim a.txt
//! attach bg_1                       a background shell on the user's terminal
//! ```

use console_tools::Definitions;
use serde_json::{Map, Value};

use super::schema::{self, Field, Kind};
use super::words::{self, MissingInput, Word};
use crate::terminal::wrap::shortened;

/// Short names and their tools. The first tool that is offered is used.
pub(crate) const SHORT_NAMES: &[(&str, &[&str])] = &[
    ("ls", &["ls", "list_files"]),
    ("read", &["read_file"]),
    ("cat", &["read_file"]),
    ("write", &["write_file"]),
    ("edit", &["edit_file", "hashline_edit"]),
    ("glob", &["glob", "list_files"]),
    ("rm", &["delete_file"]),
    ("mv", &["move_file"]),
    ("cp", &["copy_file"]),
    ("run", &["execute"]),
    ("bg", &["run_in_background"]),
    ("out", &["read_output"]),
    ("in", &["write_input"]),
    ("kill", &["kill_shell"]),
    ("shells", &["list_shells"]),
];

/// Maximum number of characters of a line that are echoed in a message.
const SHOWN_CHARS: usize = 200;

/// Minimum similarity for a name to be suggested.
const MIN_SIMILARITY: f64 = 0.84;

/// The console's own commands.
pub(crate) const BUILTINS: &[&str] = &["help", "tools", "shell", "attach", "quit"];

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Request {
    Nothing,
    Help(Option<String>),
    Tools,
    Quit,
    Terminal(TerminalRequest),
    Call { tool: String, arguments: Value },
}

/// A request that gives the user's terminal to a shell in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TerminalRequest {
    /// To a program, or to a new shell.
    Run(Option<String>),
    /// To the background shell with this id.
    Attach(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ParseError {
    /// More lines are needed.
    Incomplete(MissingInput),
    /// The input is invalid. Holds the message, with advice.
    Invalid(String),
}

pub(crate) fn full_name<'n>(name: &'n str, tools: &Definitions) -> &'n str {
    if tools.get(name).is_some() {
        return name;
    }
    let Some((_, full)) = SHORT_NAMES.iter().find(|(short, _)| *short == name) else {
        return name;
    };
    let offered = full.iter().find(|full| tools.get(full).is_some());
    offered.or(full.first()).copied().unwrap_or(name)
}

/// Returns the names of all tools, full and short.
pub(crate) fn tool_names(tools: &Definitions) -> impl Iterator<Item = &str> + Clone {
    let full = tools.iter().map(|tool| tool.name.as_str());
    let short = SHORT_NAMES.iter().map(|(short, _)| *short);
    full.chain(short.filter(move |short| tools.get(full_name(short, tools)).is_some()))
}

/// Parses the first request of `input`. Returns it with the number of bytes it takes.
pub(crate) fn parse(input: &str, tools: &Definitions) -> Result<(Request, usize), ParseError> {
    let start = input.len() - input.trim_start().len();
    let text = input.get(start..).unwrap_or_default();
    if text.is_empty() {
        return Ok((Request::Nothing, input.len()));
    }
    if text.starts_with('#') {
        let line = text.find('\n').map_or(text.len(), |end| end + 1);
        return Ok((Request::Nothing, start + line));
    }
    let (name, after) = match text.strip_prefix('!') {
        Some(_) => ("run", start + 1),
        None => {
            let end = text.find(char::is_whitespace).unwrap_or(text.len());
            (text.get(..end).unwrap_or_default(), start + end)
        }
    };
    let tool = full_name(name, tools);
    let Some(definition) = tools.get(tool) else {
        if !is_builtin(name) {
            // The text of a heredoc must not be taken for commands.
            if let Some(until @ MissingInput::Line(_)) = words::split(input, after).open {
                return Err(ParseError::Incomplete(until));
            }
            return Err(ParseError::Invalid(unknown(name, text, tools)));
        }
        let words = complete(words::split(input, after))?;
        let request = match name {
            "shell" => {
                let line = input.get(after..words.used).unwrap_or_default().trim();
                // As on the command line.
                let line = line.strip_prefix("-- ").unwrap_or(line).trim_start();
                let line = (!line.is_empty()).then(|| line.to_owned());
                Request::Terminal(TerminalRequest::Run(line))
            }
            name => builtin(name, &words.all)?,
        };
        return Ok((request, words.used));
    };
    let fields = schema::fields(definition);
    let mut given = GivenFields::new(tool, &fields);
    let rest = input.get(after..).unwrap_or_default();
    let line = text.starts_with('!');
    let (arguments, used) =
        if !line && rest.trim_start().starts_with('{') && !verbatim_json(rest, given.verbatim) {
            let (arguments, used) = json(rest)?;
            (arguments, after + used)
        } else {
            let words = complete(words::split(input, after))?;
            let at = if line { 0 } else { given.take(&words.all)? };
            let arguments = if line || given.verbatim {
                command(input, &words, at, &fields, given.values)?
            } else {
                Value::Object(given.values)
            };
            (arguments, words.used)
        };
    let tool = tool.to_owned();
    Ok((Request::Call { tool, arguments }, used))
}

/// Returns `true` if a word looks like `-l` or `-la` and is not quoted.
fn is_short_option(word: &Word) -> bool {
    let letters = word.text.strip_prefix('-').unwrap_or_default();
    word.plain >= 2 && letters.starts_with(|letter: char| letter.is_ascii_alphabetic())
}

/// Returns `true` if a command begins with a brace of the shell, as in `{ ls; }`.
fn verbatim_json(rest: &str, verbatim: bool) -> bool {
    let inside = rest.trim_start().strip_prefix('{').unwrap_or_default();
    verbatim && !inside.trim_start().starts_with(['"', '}'])
}

fn complete(words: words::Words) -> Result<words::Words, ParseError> {
    match words.open {
        Some(until) => Err(ParseError::Incomplete(until)),
        None => Ok(words),
    }
}

fn is_builtin(name: &str) -> bool {
    BUILTINS.contains(&name) || matches!(name, "?" | "exit" | "q")
}

/// Parses one of the console's own commands.
fn builtin(name: &str, words: &[Word]) -> Result<Request, ParseError> {
    let request = match (name, words) {
        ("help" | "?", [about]) => return Ok(Request::Help(Some(about.text.clone()))),
        ("help" | "?", _) => Request::Help(None),
        ("attach", [id]) => {
            let id = id.text.clone();
            return Ok(Request::Terminal(TerminalRequest::Attach(id)));
        }
        ("attach", _) => {
            return Err(ParseError::Invalid(
                "attach needs the id of one background shell; type shells to see them".to_owned(),
            ));
        }
        ("tools", _) => Request::Tools,
        _ => Request::Quit,
    };
    match words.first() {
        Some(word) => Err(ParseError::Invalid(format!(
            "{name} does not know what '{}' is; type {name} alone",
            word.text
        ))),
        None => Ok(request),
    }
}

/// Returns the message about an unknown name. Most often it is a shell command.
fn unknown(name: &str, text: &str, tools: &Definitions) -> String {
    let tool = full_name(name, tools);
    if tool == "execute" || tool == "run_in_background" {
        return "no commands run here: the backend runs none, or the rules deny them; use \
                --backend local:DIR or docker:IMAGE"
            .to_owned();
    }
    let known = tool != name || SHORT_NAMES.iter().any(|(_, full)| full.contains(&name));
    if known {
        return format!("the tool {tool} is not offered here; type tools to see those that are");
    }
    let suggestion = suggestion(name, tools);
    if tools.get("execute").is_none() {
        return format!("there is no tool '{name}'{suggestion}; type tools to see those there are");
    }
    let line = text.lines().next().unwrap_or_default().trim_end();
    let line = shortened(line, SHOWN_CHARS);
    // Alone, `cd` would have no effect: every command starts in the same directory.
    let elsewhere = if name == "cd" { " && COMMAND" } else { "" };
    format!("there is no tool '{name}'{suggestion}; to run a command: !{line}{elsewhere}")
}

/// Returns ` (did you mean X?)` for an unknown name.
pub(crate) fn suggestion(name: &str, tools: &Definitions) -> String {
    let mut all = tool_names(tools).chain(BUILTINS.iter().copied());
    let name = name.to_lowercase();
    let scored = all
        .clone()
        .map(|known| (strsim::jaro_winkler(&name, known), known));
    let best = scored.max_by(|one, two| one.0.total_cmp(&two.0));
    let similar = best.filter(|(similarity, _)| *similarity > MIN_SIMILARITY);
    // That finds nothing in common between names as short as `cta` and `cat`.
    let is_near = |known: &&str| name.len() >= 3 && strsim::osa_distance(&name, known) <= 1;
    match similar
        .map(|(_, known)| known)
        .or_else(|| all.find(is_near))
    {
        Some(best) => format!(" (did you mean {best}?)"),
        None => String::new(),
    }
}

/// Parses a JSON object. Returns it with the number of bytes it takes.
fn json(rest: &str) -> Result<(Value, usize), ParseError> {
    let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    let value = match stream.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) if !error.is_eof() => {
            return Err(ParseError::Invalid(format!(
                "the arguments are not valid JSON: {error}; correct them, or give fields by name"
            )));
        }
        _ => return Err(ParseError::Incomplete(MissingInput::Char('}'))),
    };
    let end = stream.byte_offset();
    let after = rest.get(end..).unwrap_or_default();
    let line = after.split_inclusive('\n').next().unwrap_or_default();
    if !line.trim().is_empty() {
        return Err(ParseError::Invalid(format!(
            "'{}' follows the arguments; give one JSON object and nothing else",
            line.trim()
        )));
    }
    Ok((value, end + line.len()))
}

/// Returns the arguments of a command tool: the line from word `at` on, as typed.
fn command(
    input: &str,
    words: &words::Words,
    at: usize,
    fields: &[Field],
    mut values: Map<String, Value>,
) -> Result<Value, ParseError> {
    let rest = words.all.get(at..).unwrap_or_default();
    let Some(field) = fields.first() else {
        return Ok(Value::Object(values));
    };
    let first = match (rest.first(), values.contains_key(&field.name)) {
        (Some(_), true) => return Err(given_twice(&field.name)),
        (Some(first), false) => first,
        (None, true) => return Ok(Value::Object(values)),
        (None, false) => {
            let why = "there is no command; write one, such as !ls";
            return Err(ParseError::Invalid(why.to_owned()));
        }
    };
    let line = match rest {
        // The whole line is quoted: no program has such a name.
        [one] if one.plain == 0 && one.tag.is_none() && one.text.contains(char::is_whitespace) => {
            one.text.as_str()
        }
        _ => input.get(first.start..words.used).unwrap_or_default(),
    };
    values.insert(field.name.clone(), Value::from(line.trim_end()));
    Ok(Value::Object(values))
}

pub(crate) struct GivenFields<'f> {
    tool: &'f str,
    fields: &'f [Field],
    /// Whether fields are only options, before a command that is the rest of the line.
    pub(crate) verbatim: bool,
    pub(crate) values: Map<String, Value>,
}

impl<'f> GivenFields<'f> {
    pub(crate) fn new(tool: &'f str, fields: &'f [Field]) -> Self {
        Self {
            tool,
            fields,
            verbatim: schema::takes_command(fields),
            values: Map::new(),
        }
    }

    /// Takes words as fields. Returns the number of words taken.
    pub(crate) fn take(&mut self, words: &[Word]) -> Result<usize, ParseError> {
        let mut options = true;
        let mut left = words.iter().enumerate();
        while let Some((at, word)) = left.next() {
            let option = word
                .text
                .strip_prefix("--")
                .filter(|_| options && word.plain >= 2);
            match option {
                Some("") => options = false,
                Some(option) => {
                    let (name, value) = match option.split_once('=') {
                        Some((name, value)) => (name, Some(value.to_owned())),
                        None => (option, None),
                    };
                    let (field, flag) = self.named(name)?;
                    let value = match (value, flag) {
                        (Some(value), Some(true) | None) => value,
                        (Some(_), Some(false)) => return Err(self.unknown(name)),
                        (None, Some(flag)) => flag.to_string(),
                        (None, None) => match left.next() {
                            Some((_, next)) => next.text.clone(),
                            None => {
                                return Err(ParseError::Invalid(format!(
                                    "--{name} has no value; write --{name} VALUE"
                                )));
                            }
                        },
                    };
                    self.set(field, &value)?;
                }
                None if self.verbatim => return Ok(at),
                None if options && is_short_option(word) => return Err(self.short(word)),
                None => match self.assigned(word) {
                    Some((field, value)) => self.set(field, value)?,
                    None => {
                        let field = self.next_field().ok_or_else(|| self.too_many(word))?;
                        self.set(field, &word.text)?;
                    }
                },
            }
            if self.verbatim && !options {
                return Ok(at + 1);
            }
        }
        Ok(words.len())
    }

    /// Returns the error for a short option, which the tools' namesakes have.
    fn short(&self, word: &Word) -> ParseError {
        let (tool, option) = (self.tool, &word.text);
        ParseError::Invalid(format!(
            "{tool} has no option {option}; type help {tool} to see its options, quote text that \
             begins with a dash, or put ! before the line to run it as a command"
        ))
    }

    /// Returns the field of an option and, if it is a flag, its value.
    pub(crate) fn named(&self, name: &str) -> Result<(&'f Field, Option<bool>), ParseError> {
        let name = name.replace('-', "_");
        let find = |name: &str| self.fields.iter().find(|field| field.name == name);
        if let Some(field) = find(&name) {
            let flag = (field.kind == Kind::Flag).then_some(true);
            return Ok((field, flag));
        }
        let field = name.strip_prefix("no_").and_then(find);
        match field.filter(|field| field.kind == Kind::Flag) {
            Some(field) => Ok((field, Some(false))),
            None => Err(self.unknown(&name)),
        }
    }

    /// Parses `field=value`, if there is such a field and its name is not quoted.
    pub(crate) fn assigned<'w>(&self, word: &'w Word) -> Option<(&'f Field, &'w str)> {
        let (name, value) = word.text.split_once('=')?;
        let field = self.fields.iter().find(|field| field.name == name)?;
        (word.plain > name.len()).then_some((field, value))
    }

    /// Returns the field of the next positional word.
    pub(crate) fn next_field(&self) -> Option<&'f Field> {
        self.fields.iter().find(|field| self.lacks(field))
    }

    /// Returns `true` if a positional field was not given yet.
    pub(crate) fn lacks(&self, field: &Field) -> bool {
        field.is_positional() && !self.values.contains_key(&field.name)
    }

    fn set(&mut self, field: &Field, text: &str) -> Result<(), ParseError> {
        let value = value(field, text)?;
        match (self.values.get_mut(&field.name), value) {
            (None, value) => drop(self.values.insert(field.name.clone(), value)),
            (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
            _ => return Err(given_twice(&field.name)),
        }
        Ok(())
    }

    fn unknown(&self, name: &str) -> ParseError {
        let mut names: Vec<&str> = self.fields.iter().map(|field| &*field.name).collect();
        if names.is_empty() {
            names.push("none");
        }
        let names = names.join(", ");
        let tool = self.tool;
        ParseError::Invalid(format!(
            "{tool} has no field '{name}'; its fields are {names}"
        ))
    }

    fn too_many(&self, word: &Word) -> ParseError {
        let word = words::quote(&word.text);
        let tool = self.tool;
        ParseError::Invalid(format!(
            "{tool} has no field left for {word}; quote text with spaces, or see 'help {tool}'"
        ))
    }
}

fn given_twice(name: &str) -> ParseError {
    ParseError::Invalid(format!("{name} is given twice; give it once"))
}

fn value(field: &Field, text: &str) -> Result<Value, ParseError> {
    if field.nullable && text == "null" {
        return Ok(Value::Null);
    }
    of_kind(&field.kind, text).ok_or_else(|| {
        let what = match field.kind {
            Kind::Integer => "a whole number",
            Kind::Number => "a number",
            Kind::Flag => "true or false",
            _ => "JSON",
        };
        ParseError::Invalid(format!("{} must be {what}, not '{text}'", field.name))
    })
}

fn of_kind(kind: &Kind, text: &str) -> Option<Value> {
    match kind {
        Kind::Text => Some(Value::from(text)),
        Kind::Integer => text.parse::<i64>().ok().map(Value::from),
        Kind::Number => {
            let number: f64 = text.parse().ok()?;
            serde_json::Number::from_f64(number).map(Value::Number)
        }
        Kind::Flag => text.parse::<bool>().ok().map(Value::from),
        Kind::List(_) if text.trim_start().starts_with('[') => serde_json::from_str(text).ok(),
        Kind::List(of) => of_kind(of, text).map(|one| Value::Array(vec![one])),
        Kind::Json => match serde_json::from_str(text) {
            Ok(value) => Some(value),
            Err(_) if text.trim_start().starts_with(['{', '[', '"']) => None,
            Err(_) => Some(Value::from(text)),
        },
    }
}

#[cfg(test)]
pub(crate) mod tests;
