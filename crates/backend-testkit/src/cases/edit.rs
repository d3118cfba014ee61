//! Replacing exact pieces of text.

use std::sync::Arc;

use backend_core::ops::{Content, ContentHash, EditOptions, EditOutcome};
use backend_core::text::EditError;
use backend_core::{BackendExt as _, Edit, Error, ErrorKind, Result};

use super::concurrent::at_once;
use crate::env::Env;
use crate::failure::{CaseResult, Failure};
use crate::{check, check_eq};

async fn edit(t: &Env, path: &str, edits: &[Edit]) -> Result<EditOutcome> {
    let path = t.backend().path(path)?;
    t.backend().edit(&path, edits, EditOptions::default()).await
}

/// Returns the content of a file after edits.
async fn edited(t: &Env, content: impl Into<Content>, edits: &[Edit]) -> Result<Vec<u8>, Failure> {
    t.put("file", content).await?;
    edit(t, "file", edits).await?;
    t.get("file").await
}

/// Returns the error of rejected edits, after checking that the file is unchanged.
async fn refused(t: &Env, content: &[u8], edits: &[Edit]) -> Result<Error, Failure> {
    t.put("file", content).await?;
    let Err(error) = edit(t, "file", edits).await else {
        return Err(Failure::new(format!("it was not refused: {edits:?}")));
    };
    check_eq!(t.get("file").await?, content)?;
    Ok(error)
}

/// The only occurrence of the text is replaced, and nothing else.
pub async fn replaces_the_one_place(t: &Env) -> CaseResult {
    let after = edited(t, "one\ntwo\nthree\n", &[Edit::new("two", "zwei")]).await?;
    check_eq!(after, b"one\nzwei\nthree\n")?;
    let after = edited(t, "naïve café\n", &[Edit::new("ï", "i")]).await?;
    check_eq!(after, "naive café\n".as_bytes())
}

/// Text that does not occur has its own error kind. The error contains the nearest
/// line, as text and as data.
pub async fn missing_text_names_the_nearest_line(t: &Env) -> CaseResult {
    let content = b"fn main() {\n\treturn total;\n}\n";
    let error = refused(t, content, &[Edit::new("    return total;", "")]).await?;
    check_eq!(error.kind(), ErrorKind::NoMatch)?;
    check!(error.message().contains("line 2"), "{error}")?;
    let near = match error.edit_error() {
        Some(EditError::NoMatch { candidates, .. }) => candidates.as_slice(),
        _ => &[],
    };
    check_eq!(near.iter().map(|near| near.line).collect::<Vec<_>>(), [2])
}

/// Text with several occurrences has its own error kind. The error says how many there
/// are and where, as text and as data.
pub async fn ambiguous_is_refused(t: &Env) -> CaseResult {
    let error = refused(t, b"x x\nx\n-\nx x x x\n", &[Edit::new("x", "y")]).await?;
    check_eq!(error.kind(), ErrorKind::MultipleMatches)?;
    check!(error.message().contains('7'), "{error}")?;
    let Some(EditError::MultipleMatches { count, lines, .. }) = error.edit_error() else {
        return Err(Failure::new(format!("no data: {error:?}")));
    };
    check_eq!((*count, lines.as_slice()), (7, [1, 2, 4].as_slice()))
}

/// Overlapping occurrences are counted separately.
pub async fn overlapping_is_ambiguous(t: &Env) -> CaseResult {
    let error = refused(t, b"aaa", &[Edit::new("aa", "b")]).await?;
    check_eq!(error.kind(), ErrorKind::MultipleMatches)
}

/// All occurrences are replaced if the edit says so, and new text is not searched
/// again.
pub async fn replace_all_replaces_all(t: &Env) -> CaseResult {
    t.put("file", "a.a\na\n").await?;
    let outcome = edit(t, "file", &[Edit::new("a", "aa").all()]).await?;
    check_eq!(outcome.replacements, [3])?;
    check_eq!(t.get("file").await?, b"aa.aa\naa\n")?;
    let error = refused(t, b"nothing of it\n", &[Edit::new("x", "y").all()]).await?;
    check_eq!(error.kind(), ErrorKind::NoMatch)
}

/// Empty old text is rejected, even in an empty file.
pub async fn empty_old_is_invalid(t: &Env) -> CaseResult {
    for content in ["text\n", ""] {
        for edit in [Edit::new("", "new"), Edit::new("", "new").all()] {
            let error = refused(t, content.as_bytes(), &[edit]).await?;
            check_eq!(error.kind(), ErrorKind::InvalidInput)?;
        }
    }
    Ok(())
}

/// An edit that changes nothing is rejected.
pub async fn same_text_is_invalid(t: &Env) -> CaseResult {
    let error = refused(t, b"text\n", &[Edit::new("text", "text")]).await?;
    check_eq!(error.kind(), ErrorKind::InvalidInput)
}

/// An empty list of edits is rejected.
pub async fn no_edits_is_invalid(t: &Env) -> CaseResult {
    let error = refused(t, b"text\n", &[]).await?;
    check_eq!(error.kind(), ErrorKind::InvalidInput)
}

/// A missing file is not created.
pub async fn missing_file(t: &Env) -> CaseResult {
    for path in ["missing", "no/such/file"] {
        let edited = edit(t, path, &[Edit::new("old", "new")]).await;
        t.fails(ErrorKind::NotFound, edited)?;
    }
    check!(t.names("").await?.is_empty(), "something was created")
}

/// A directory cannot be edited.
pub async fn directory(t: &Env) -> CaseResult {
    t.put("directory/file", "old").await?;
    for path in ["directory", "."] {
        let edited = edit(t, path, &[Edit::new("old", "new")]).await;
        t.fails(ErrorKind::IsADirectory, edited)?;
    }
    check_eq!(t.get("directory/file").await?, b"old")
}

/// A path below a file cannot be edited.
pub async fn beneath_a_file(t: &Env) -> CaseResult {
    t.put("file", "old").await?;
    let edited = edit(t, "file/beneath", &[Edit::new("old", "new")]).await;
    t.fails(ErrorKind::NotADirectory, edited)?;
    check_eq!(t.get("file").await?, b"old")
}

/// The line endings of other lines are kept.
pub async fn crlf_is_kept(t: &Env) -> CaseResult {
    let after = edited(t, "one\r\ntwo\r\nthree\r\n", &[Edit::new("two", "2")]).await?;
    check_eq!(after, b"one\r\n2\r\nthree\r\n")
}

/// If all line endings are `\r\n`, `\n` stands for them in the old and the new text.
pub async fn newline_means_crlf_in_a_crlf_file(t: &Env) -> CaseResult {
    let edits = [Edit::new("one\ntwo\n", "1\n2\n2b\n")];
    let after = edited(t, "zero\r\none\r\ntwo\r\nthree", &edits).await?;
    check_eq!(after, b"zero\r\n1\r\n2\r\n2b\r\nthree")
}

/// If line endings are mixed, each is kept and none stands for another.
pub async fn mixed_line_ends_are_kept(t: &Env) -> CaseResult {
    let content = "one\r\ntwo\nthree\rfour\r\n";
    let after = edited(t, content, &[Edit::new("two\n", "2\n")]).await?;
    check_eq!(after, b"one\r\n2\nthree\rfour\r\n")?;
    let error = refused(t, content.as_bytes(), &[Edit::new("one\ntwo", "12")]).await?;
    check_eq!(error.kind(), ErrorKind::NoMatch)
}

/// A file that is not UTF-8 is not edited, even if it looks like text.
pub async fn not_utf8_is_refused(t: &Env) -> CaseResult {
    let latin1 = b"plain\ncaf\xe9\n".as_slice();
    let utf16 = b"\xff\xfeplain\n\0".as_slice();
    for content in [latin1, utf16] {
        let error = refused(t, content, &[Edit::new("plain", "new")]).await?;
        check_eq!(error.kind(), ErrorKind::NotText)?;
    }
    Ok(())
}

/// A byte-order mark is kept.
pub async fn byte_order_mark_is_kept(t: &Env) -> CaseResult {
    let after = edited(t, "\u{feff}one\ntwo\n", &[Edit::new("one", "1")]).await?;
    check_eq!(after, "\u{feff}1\ntwo\n".as_bytes())
}

/// A file without a final newline stays without one.
pub async fn missing_final_newline_is_kept(t: &Env) -> CaseResult {
    let after = edited(t, "one\ntwo", &[Edit::new("one", "1")]).await?;
    check_eq!(after, b"1\ntwo")?;
    let after = edited(t, "one\ntwo", &[Edit::new("two", "2")]).await?;
    check_eq!(after, b"one\n2")
}

/// Each edit applies to the result of the previous one.
pub async fn several_edits_apply_in_order(t: &Env) -> CaseResult {
    let edits = [
        Edit::new("a", "b c"),
        Edit::new("b", "d"),
        Edit::new("d c", "e"),
    ];
    check_eq!(edited(t, "a\n", &edits).await?, b"e\n")
}

/// If one edit cannot be applied, none is.
pub async fn several_edits_all_or_none(t: &Env) -> CaseResult {
    let good = Edit::new("one", "1");
    for (bad, kind) in [
        (Edit::new("missing", "x"), ErrorKind::NoMatch),
        (Edit::new("t", "x"), ErrorKind::MultipleMatches),
        (Edit::new("", "x"), ErrorKind::InvalidInput),
    ] {
        for edits in [[good.clone(), bad.clone()], [bad, good.clone()]] {
            let error = refused(t, b"one two three\n", &edits).await?;
            check_eq!(error.kind(), kind)?;
        }
    }
    Ok(())
}

/// A file that has changed since the caller read it is not edited, even if the text
/// occurs.
pub async fn expected_hash_must_hold(t: &Env) -> CaseResult {
    t.put("file", "one\ntwo\n").await?;
    let path = t.path("file")?;
    let edits = [Edit::new("two", "2")];
    let stale = EditOptions::default().expected(ContentHash::of(b"two\n"));
    let edited = t.backend().edit(&path, &edits, stale).await;
    t.fails(ErrorKind::Conflict, edited)?;
    check_eq!(t.get("file").await?, b"one\ntwo\n")?;
    let right = EditOptions::default().expected(ContentHash::of(b"one\ntwo\n"));
    t.backend().edit(&path, &edits, right).await?;
    check_eq!(t.get("file").await?, b"one\n2\n")
}

/// An empty file exists, and has no text to replace.
pub async fn empty_file_has_nothing_to_replace(t: &Env) -> CaseResult {
    let error = refused(t, b"", &[Edit::new("old", "new")]).await?;
    check_eq!(error.kind(), ErrorKind::NoMatch)
}

/// Of concurrent edits, each is in the file or its call has failed.
pub async fn concurrent_edits_lose_nothing(t: &Env) -> CaseResult {
    let lines: Vec<_> = (0..16).map(|line| format!("<{line}>\n")).collect();
    t.put("file", lines.concat()).await?;
    let results = at_once((0..16).map(|line| {
        let backend = Arc::clone(t.backend());
        let (old, new) = (format!("<{line}>"), format!("[{line}]"));
        async move { backend.replace_text("file", &old, &new).await }
    }));
    let mut expected = String::new();
    for (line, result) in results.await?.into_iter().enumerate() {
        if result.is_ok() {
            expected += &format!("[{line}]\n");
        } else {
            t.fails(ErrorKind::Conflict, result)?;
            expected += &format!("<{line}>\n");
        }
    }
    check!(expected.contains('['), "no edit was made")?;
    check_eq!(t.get("file").await?, expected.as_bytes())
}

/// Neither the old nor the new text is a pattern.
pub async fn special_characters_are_literal(t: &Env) -> CaseResult {
    let special = ".*[$^]+?(a|b){2}\\/&\\1\\n$1${2}`id`'\"#%s";
    let content = format!("abc\n{special}\n\\n\n");
    let after = edited(t, content, &[Edit::new(special, "&\\0$0")]).await?;
    check_eq!(after, b"abc\n&\\0$0\n\\n\n")?;
    let after = edited(t, "abc\nold\n", &[Edit::new("old", special)]).await?;
    check_eq!(after, format!("abc\n{special}\n").as_bytes())?;
    let error = refused(t, b"abc\n", &[Edit::new(".", "x")]).await?;
    check_eq!(error.kind(), ErrorKind::NoMatch)
}

/// Text may span several lines and begin and end anywhere in them.
pub async fn multi_line_text(t: &Env) -> CaseResult {
    let edits = [Edit::new("ne\n\n  two\nth", "N\nTH")];
    let after = edited(t, "one\n\n  two\nthree\n", &edits).await?;
    check_eq!(after, b"oN\nTHree\n")
}

/// A NUL in UTF-8 text is an ordinary character.
pub async fn text_with_nul_can_be_edited(t: &Env) -> CaseResult {
    let edits = [Edit::new("b\0c", "\0"), Edit::new("end", "fin")];
    let after = edited(t, b"a\0b\0c\nend", &edits).await?;
    check_eq!(after, b"a\0\0\nfin")
}

/// The outcome says how often each text was replaced, where the first occurrence was,
/// and the new state of the file.
pub async fn outcome_tells_what_happened(t: &Env) -> CaseResult {
    t.put("file", "one\ntwo é\nx x\nx").await?;
    let edits = [Edit::new("two", "2"), Edit::new("x", "y").all()];
    let outcome = edit(t, "file", &edits).await?;
    let after = t.get("file").await?;
    let hash = ContentHash::of(&after);
    check_eq!(after, "one\n2 é\ny y\ny".as_bytes())?;
    check_eq!(
        outcome,
        EditOutcome::new(vec![1, 3], 2, after.len() as u64, hash)
    )
}

/// Empty new text deletes the old text, down to an empty file.
pub async fn empty_new_deletes(t: &Env) -> CaseResult {
    let after = edited(t, "one\ntwo\nthree\n", &[Edit::new("two\n", "")]).await?;
    check_eq!(after, b"one\nthree\n")?;
    check_eq!(edited(t, "all", &[Edit::new("all", "")]).await?, b"")
}

/// Line endings can be changed like other text.
pub async fn carriage_return_only_change(t: &Env) -> CaseResult {
    let after = edited(t, "a\r\nb", &[Edit::new("\r\n", "\n")]).await?;
    check_eq!(after, b"a\nb")?;
    let after = edited(t, "a\nb", &[Edit::new("\n", "\r\n")]).await?;
    check_eq!(after, b"a\r\nb")?;
    let after = edited(t, "a\r\nb\r", &[Edit::new("\r", "").all()]).await?;
    check_eq!(after, b"a\nb")
}
