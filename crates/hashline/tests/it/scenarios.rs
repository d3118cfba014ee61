//! Runs every directory of `tests/scenarios`: a text, edits of it, and the expected result.
//!
//! A directory has `input.txt`, `edit.toml`, and either `expected.txt`, optionally with
//! `summary.txt`, or `error.txt`. Texts are compared byte by byte, messages without the line
//! end of their file.
use std::error::Error;
use std::fs;
use std::path::Path;

use hashline::{
    Anchor, Applied, ApplyOptions, Edit, EditFields, Format, RangeEnd, TagWidth, apply,
};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    context: Option<usize>,
    tag_width: Option<u8>,
    max_line_bytes: Option<usize>,
    #[serde(default)]
    edit: Vec<Change>,
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum Change {
    Replace {
        start: String,
        end: Option<End>,
        content: String,
    },
    InsertAfter {
        at: String,
        content: String,
    },
    InsertBefore {
        at: String,
        content: String,
    },
    InsertFirst {
        content: String,
    },
    Delete {
        start: String,
        end: Option<End>,
    },
    Fields {
        start_line: usize,
        start_hash: String,
        new_content: String,
        end_line: Option<usize>,
        end_hash: Option<String>,
        #[serde(default)]
        insert_after: bool,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum End {
    Line(usize),
    Anchor(String),
}

impl End {
    fn parse(self) -> Result<RangeEnd, Box<dyn Error>> {
        Ok(match self {
            Self::Line(line) => line.into(),
            Self::Anchor(text) => text.parse::<Anchor>()?.into(),
        })
    }
}

impl Change {
    fn edit(self) -> Result<Edit, Box<dyn Error>> {
        Ok(match self {
            Self::Replace {
                start,
                end,
                content,
            } => Edit::Replace {
                start: start.parse()?,
                end: end.map(End::parse).transpose()?,
                content,
            },
            Self::InsertAfter { at, content } => Edit::InsertAfter {
                anchor: at.parse()?,
                content,
            },
            Self::InsertBefore { at, content } => Edit::InsertBefore {
                anchor: at.parse()?,
                content,
            },
            Self::InsertFirst { content } => Edit::InsertFirst { content },
            Self::Delete { start, end } => Edit::Delete {
                start: start.parse()?,
                end: end.map(End::parse).transpose()?,
            },
            Self::Fields {
                start_line,
                start_hash,
                new_content,
                end_line,
                end_hash,
                insert_after,
            } => Edit::try_from(EditFields {
                start_line,
                start_hash: &start_hash,
                new_content: &new_content,
                end_line,
                end_hash: end_hash.as_deref(),
                insert_after,
            })?,
        })
    }
}

fn run(input: &str, request: Request) -> Result<Applied, Box<dyn Error>> {
    let mut format = Format::default();
    if let Some(digits) = request.tag_width {
        assert_eq!(digits, 4, "only four digits are worth asking for");
        format = format.tag_width(TagWidth::Four);
    }
    if let Some(bytes) = request.max_line_bytes {
        format = format.max_line_bytes(bytes);
    }
    let mut options = ApplyOptions::default().format(format);
    if let Some(context) = request.context {
        options = options.context(context);
    }
    let edits: Vec<_> = request
        .edit
        .into_iter()
        .map(Change::edit)
        .collect::<Result<_, _>>()?;
    Ok(apply(input, &edits, options)?)
}

/// Checks the scenario in `folder` and returns what is wrong with it.
fn check(folder: &Path) -> Result<(), String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let is_known = matches!(
        names[..],
        ["edit.toml", "error.txt" | "expected.txt", "input.txt"]
            | ["edit.toml", "expected.txt", "input.txt", "summary.txt"]
    );
    if !is_known {
        return Err(format!("the files are {names:?}"));
    }
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let message = |name| read(name).strip_suffix('\n').unwrap().to_owned();
    let request = toml::from_str(&read("edit.toml")).map_err(|error| error.to_string())?;
    let result = run(&read("input.txt"), request).map_err(|error| error.to_string());
    match result {
        Err(error) if names.contains(&"error.txt") => same("error", &error, &message("error.txt")),
        Err(error) => Err(format!("refused: {error}")),
        Ok(applied) if names.contains(&"error.txt") => {
            Err(format!("not refused, became {:?}", applied.text))
        }
        Ok(applied) => {
            same("text", &applied.text, &read("expected.txt"))?;
            if names.contains(&"summary.txt") {
                same("summary", &applied.summary, &message("summary.txt"))?;
            }
            Ok(())
        }
    }
}

fn same(what: &str, is: &str, should: &str) -> Result<(), String> {
    if is == should {
        return Ok(());
    }
    Err(format!("the {what} is\n{is:?}\nand should be\n{should:?}"))
}

#[test]
fn every_scenario() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut count = 0;
    let mut wrong = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path
            .file_name()
            .is_some_and(|name| name == ".gitattributes")
        {
            continue;
        }
        count += 1;
        if let Err(error) = check(&path) {
            wrong.push(format!("{}: {error}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(count >= 40, "only {count} scenarios were found");
}
