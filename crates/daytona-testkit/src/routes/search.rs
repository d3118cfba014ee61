//! Files of the toolbox: searched by content and by name, and text in them replaced.

use std::fs;
use std::io;

use axum::body::Bytes;
use axum::extract::Query;
use axum::routing::{get, post};
use axum::{Json, Router};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Routes, Toolbox, read};
use crate::paths::Paths;
use crate::refusal::{Answer, Refusal};

/// A file with a NUL byte in its beginning of this size is not searched.
const HEAD_BYTES: usize = 512;

/// A longer line ends the search in its file.
const MAX_LINE_BYTES: usize = 64 * 1024;

pub(super) fn routes() -> Routes {
    Router::new()
        .route("/files/find", get(find))
        .route("/files/search", get(search))
        .route("/files/replace", post(replace))
}

#[derive(Deserialize)]
struct Search {
    path: String,
    pattern: String,
}

/// Returns a path and all beneath it, in the order of their names. Links are not followed.
fn walk(paths: &Paths, path: &str) -> Vec<(String, fs::FileType)> {
    // The root is no entry of a directory.
    let place = paths.entry(path).or_else(|_| paths.find(path));
    let found = || place?.path().symlink_metadata();
    let Ok(metadata) = found() else {
        return Vec::new();
    };
    let mut all = vec![(path.to_owned(), metadata.file_type())];
    if metadata.is_dir() {
        let listed = paths
            .find(path)
            .and_then(|place| fs::read_dir(place.path()));
        let names = listed.into_iter().flatten().filter_map(Result::ok);
        let mut names: Vec<_> = names
            .map(|it| it.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        for name in names {
            let child = format!("{}/{name}", path.trim_end_matches('/'));
            all.extend(walk(paths, &child));
        }
    }
    all
}

async fn find(toolbox: Toolbox, Query(query): Query<Search>) -> Answer<Json<Value>> {
    let find = move |paths: &Paths| {
        let mut matches = Vec::new();
        for (file, kind) in walk(paths, &query.path) {
            if kind.is_file() {
                let content = paths.find(&file).and_then(|place| fs::read(place.path()));
                find_in(
                    &file,
                    &content.unwrap_or_default(),
                    &query.pattern,
                    &mut matches,
                );
            }
        }
        Value::from(matches)
    };
    Ok(Json(toolbox.with_files(find).await?))
}

fn find_in(file: &str, content: &[u8], pattern: &str, matches: &mut Vec<Value>) {
    if content.iter().take(HEAD_BYTES).any(|byte| *byte == 0) {
        return;
    }
    let content = content.strip_suffix(b"\n").unwrap_or(content);
    for (index, line) in content.split(|byte| *byte == b'\n').enumerate() {
        if line.len() > MAX_LINE_BYTES {
            return;
        }
        let line = String::from_utf8_lossy(line);
        let line = line.strip_suffix('\r').unwrap_or(&line);
        if line.contains(pattern) {
            matches.push(json!({"file": file, "line": index + 1, "content": line}));
        }
    }
}

async fn search(toolbox: Toolbox, Query(query): Query<Search>) -> Answer<Json<Value>> {
    let search = move |paths: &Paths| {
        let all = walk(paths, &query.path).into_iter().map(|(path, _)| path);
        let is_match = |path: &String| {
            let name = path
                .trim_end_matches('/')
                .rsplit('/')
                .next()
                .unwrap_or(path);
            matches(
                &query.pattern.chars().collect::<Vec<_>>(),
                &name.chars().collect::<Vec<_>>(),
            )
        };
        all.filter(is_match).collect::<Vec<_>>()
    };
    Ok(Json(json!({"files": toolbox.with_files(search).await?})))
}

/// Whether a name matches a pattern of Go's `filepath.Match`.
fn matches(pattern: &[char], name: &[char]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        (['*', rest @ ..], _) => (0..=name.len()).any(|n| matches(rest, &name[n..])),
        (['?', rest @ ..], [_, name @ ..]) => matches(rest, name),
        (['[', rest @ ..], [first, name @ ..]) => match class(rest, *first) {
            Some((true, rest)) => matches(rest, name),
            _ => false,
        },
        (['\\', wanted, rest @ ..], [first, name @ ..])
        | ([wanted, rest @ ..], [first, name @ ..]) => wanted == first && matches(rest, name),
        _ => false,
    }
}

/// Returns whether a class has a character, and the pattern after the class.
fn class(pattern: &[char], wanted: char) -> Option<(bool, &[char])> {
    let (is_negated, mut rest) = match pattern {
        ['^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (mut has_it, mut is_first) = (false, true);
    loop {
        match rest {
            [']', after @ ..] if !is_first => return Some((has_it != is_negated, after)),
            [low, '-', high, after @ ..] if *high != ']' => {
                has_it |= (*low..=*high).contains(&wanted);
                rest = after;
            }
            [one, after @ ..] => {
                has_it |= *one == wanted;
                rest = after;
            }
            [] => return None,
        }
        is_first = false;
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Replace {
    files: Vec<String>,
    pattern: String,
    new_value: Option<String>,
}

async fn replace(toolbox: Toolbox, body: Bytes) -> Answer<Json<Value>> {
    let request: Replace = read(&body)?;
    let Some(new_value) = request.new_value else {
        return Err(Refusal::files(
            StatusCode::BAD_REQUEST,
            "newValue is required",
        ));
    };
    let replace = move |paths: &Paths| {
        let replace_in = |file: &String| -> io::Result<()> {
            let place = paths.find(file)?;
            let content = fs::read_to_string(place.path())?;
            fs::write(place.path(), content.replace(&request.pattern, &new_value))
        };
        let results = request.files.iter().map(|file| match replace_in(file) {
            Ok(()) => json!({"file": file, "success": true}),
            Err(error) => json!({"file": file, "success": false, "error": error.to_string()}),
        });
        results.collect::<Vec<_>>()
    };
    Ok(Json(toolbox.with_files(replace).await?.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_go() {
        let is_match = |pattern: &str, name: &str| {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            matches(&chars(pattern), &chars(name))
        };
        assert!(is_match("*.txt", "a.txt"));
        assert!(!is_match("*.txt", "a.txt~"));
        assert!(is_match("?[a-c][^x]\\*", "zby*"));
        assert!(!is_match("[a-c]", "d"));
        assert!(!is_match("[a-", "a"));
        assert!(is_match("*", ""));
    }

    #[test]
    fn a_long_line_ends_the_search_in_its_file() {
        let mut content = b"one hit\n".to_vec();
        content.extend(vec![b'x'; MAX_LINE_BYTES + 1]);
        content.extend(b"\nanother hit\n");
        let mut matches = Vec::new();
        find_in("f", &content, "hit", &mut matches);
        assert_eq!(
            matches,
            [json!({"file": "f", "line": 1, "content": "one hit"})]
        );
        find_in("f", b"\0 hit", "hit", &mut matches);
        assert_eq!(matches.len(), 1);
    }
}
