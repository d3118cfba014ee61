//! Reading windows of lines.

use backend_core::ErrorKind;
use backend_core::limits::WINDOW_LINES;
use backend_core::ops::TextOptions;

use crate::env::Env;
use crate::failure::{CaseResult, Failure};
use crate::{check, check_eq};

fn from(offset: u64) -> TextOptions {
    TextOptions::default().offset(offset)
}

async fn numbered(t: &Env, options: TextOptions) -> Result<Vec<(u64, String)>, Failure> {
    let window = t.window("file", options).await?;
    let lines = window.lines();
    Ok(lines
        .map(|line| (line.number, line.text.to_owned()))
        .collect())
}

/// Checks that an offset is past the end and that the message contains the length.
async fn past_the_end(t: &Env, offset: u64, length: &str) -> CaseResult {
    match t.window("file", from(offset)).await {
        Err(error) => {
            check_eq!(error.kind(), ErrorKind::InvalidInput)?;
            check!(error.message().contains(length), "{error}")
        }
        Ok(window) => Err(Failure::new(format!("offset {offset} gave {window:?}"))),
    }
}

/// The text of a line does not include its number.
pub async fn lines_have_numbers_beside_them(t: &Env) -> CaseResult {
    t.put("file", "one\n  two\nthree\n").await?;
    let expected = [(1, "one"), (2, "  two"), (3, "three")];
    let expected = expected.map(|(number, text)| (number, text.to_owned()));
    check_eq!(numbered(t, TextOptions::default()).await?, expected)
}

/// With an offset, lines keep their real numbers.
pub async fn numbers_are_real(t: &Env) -> CaseResult {
    t.put("file", "a\nb\nc\nd\n").await?;
    let lines = numbered(t, from(2)).await?;
    check_eq!(lines, [(3, "c".to_owned()), (4, "d".to_owned())])
}

/// A trailing newline is not an extra line.
pub async fn trailing_newline_is_no_line(t: &Env) -> CaseResult {
    t.put("file", "x\ny\n").await?;
    check_eq!(t.lines("file").await?, ["x", "y"])
}

/// A last line without a newline is a line.
pub async fn last_line_without_newline(t: &Env) -> CaseResult {
    t.put("file", "x\ny").await?;
    check_eq!(t.lines("file").await?, ["x", "y"])
}

/// Blank lines count.
pub async fn blank_lines_count(t: &Env) -> CaseResult {
    t.put("file", "\n").await?;
    check_eq!(t.lines("file").await?, [""])?;
    t.put("file", "a\n\n\nb\n\n").await?;
    check_eq!(t.lines("file").await?, ["a", "", "", "b", ""])
}

/// An empty file gives a window without lines.
pub async fn empty_file(t: &Env) -> CaseResult {
    t.put("file", "").await?;
    let window = t.window("file", TextOptions::default()).await?;
    check_eq!((window.line_count(), window.more), (0, false))?;
    check_eq!(window.total_lines, Some(0))
}

/// An offset past the end is an error that names the length.
pub async fn offset_past_the_end_names_the_length(t: &Env) -> CaseResult {
    t.put("file", "a\nb\nc\n").await?;
    for offset in [3, 4, 1_000_000] {
        past_the_end(t, offset, "3 lines").await?;
    }
    t.put("file", "").await?;
    past_the_end(t, 1, "empty").await
}

/// The largest offset does not overflow.
pub async fn greatest_offset(t: &Env) -> CaseResult {
    t.put("file", "a\nb\n").await?;
    past_the_end(t, u64::MAX, "2 lines").await?;
    past_the_end(t, u64::MAX - 1, "2 lines").await
}

/// The largest limit does not overflow.
pub async fn greatest_limit(t: &Env) -> CaseResult {
    t.put("file", "a\nb\n").await?;
    let options = from(1).limit(usize::MAX).max_bytes(usize::MAX);
    check_eq!(numbered(t, options).await?, [(2, "b".to_owned())])
}

/// `\r\n` is a line end.
pub async fn crlf_is_a_line_end(t: &Env) -> CaseResult {
    t.put("file", "a\r\nb\r\n").await?;
    check_eq!(t.lines("file").await?, ["a", "b"])
}

/// `\r` alone is content.
pub async fn lone_cr_is_content(t: &Env) -> CaseResult {
    t.put("file", "a\rb\nc\r\r\nd\r").await?;
    check_eq!(t.lines("file").await?, ["a\rb", "c\r", "d\r"])
}

/// Other Unicode line separators are content.
pub async fn other_separators_are_content(t: &Env) -> CaseResult {
    let line = "a\u{b}b\u{c}c\u{1c}d\u{85}e\u{2028}f\u{2029}g";
    t.put("file", line).await?;
    check_eq!(t.lines("file").await?, [line])
}

/// A limit ends the window, which says that more lines follow and where.
pub async fn limit_ends_the_window(t: &Env) -> CaseResult {
    t.put("file", "a\nb\nc\nd\n").await?;
    let window = t.window("file", from(1).limit(2)).await?;
    check_eq!(window.line_count(), 2)?;
    check_eq!((window.more, window.next_offset()), (true, Some(3)))?;
    let window = t.window("file", from(3).limit(2)).await?;
    check_eq!((window.more, window.next_offset()), (false, None))
}

/// A window that ends with the file says that nothing follows.
pub async fn exactly_the_limit_has_no_more(t: &Env) -> CaseResult {
    for content in ["a\nb\n", "a\nb"] {
        t.put("file", content).await?;
        let window = t.window("file", from(0).limit(2)).await?;
        check_eq!((window.line_count(), window.more), (2, false))?;
    }
    Ok(())
}

/// The default limit is two thousand lines.
pub async fn default_limit(t: &Env) -> CaseResult {
    t.put("file", "x\n".repeat(WINDOW_LINES + 1)).await?;
    let window = t.window("file", TextOptions::default()).await?;
    check_eq!((window.line_count(), window.more), (2_000, true))
}

/// A limit of zero is rejected.
pub async fn zero_limit_is_invalid(t: &Env) -> CaseResult {
    t.put("file", "x\n").await?;
    let window = t.window("file", from(0).limit(0)).await;
    t.fails(ErrorKind::InvalidInput, window)
}

/// The number of lines is known at the end of the file, and elsewhere on request.
pub async fn total_is_counted_when_asked(t: &Env) -> CaseResult {
    t.put("file", "a\nb\nc\nd").await?;
    let window = t.window("file", from(0).limit(2).count_total(true)).await?;
    check_eq!(window.total_lines, Some(4))?;
    let window = t.window("file", from(2)).await?;
    check_eq!(window.total_lines, Some(4))
}

/// A long line is cut between characters, and the number of missing bytes is reported.
pub async fn long_line_is_cut(t: &Env) -> CaseResult {
    t.put("file", format!("{}\nnext\n", "é".repeat(100)))
        .await?;
    let window = t.window("file", from(0).max_line_bytes(11)).await?;
    let lines: Vec<_> = window
        .lines()
        .map(|line| (line.text.to_owned(), line.cut_bytes))
        .collect();
    check_eq!(lines, [("é".repeat(5), 190), ("next".to_owned(), 0)])?;
    check!(window.lines().next().is_some_and(|line| {
        line.to_string().contains("190") && line.to_string().starts_with("ééééé")
    }))
}

/// A window ends before it exceeds the byte limit, including line endings, but always
/// has at least one line.
pub async fn max_bytes_end_the_window(t: &Env) -> CaseResult {
    t.put("file", "12345\n12345\n12345\n").await?;
    let window = t.window("file", from(0).max_bytes(11)).await?;
    check_eq!((window.line_count(), window.next_offset()), (2, Some(2)))?;
    let window = t.window("file", from(2).max_bytes(1)).await?;
    check_eq!((window.line_count(), window.more), (1, false))
}

/// Binary content is rejected.
pub async fn binary_is_not_text(t: &Env) -> CaseResult {
    t.put("file", b"\x7fELF\0\xff\xfe\0\0").await?;
    let window = t.window("file", TextOptions::default()).await;
    t.fails(ErrorKind::NotText, window)
}

/// Text that contains a NUL is text.
pub async fn nul_in_text_is_shown(t: &Env) -> CaseResult {
    t.put("file", "a\0b\nc\n").await?;
    check_eq!(t.lines("file").await?, ["a\0b", "c"])
}

/// Bytes that are not UTF-8 are replaced, never dropped.
pub async fn invalid_utf8_is_replaced(t: &Env) -> CaseResult {
    t.put("file", b"caf\xe9\nok\n").await?;
    check_eq!(t.lines("file").await?, ["caf\u{fffd}", "ok"])
}

/// A UTF-8 byte-order mark is not content.
pub async fn utf8_mark_is_not_content(t: &Env) -> CaseResult {
    t.put("file", "\u{feff}a\nb\n").await?;
    check_eq!(t.lines("file").await?, ["a", "b"])
}

/// UTF-16 with a byte-order mark is text.
pub async fn utf16_is_text(t: &Env) -> CaseResult {
    let units = || "\u{feff}héllo\r\n🦀\n".encode_utf16();
    let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
    for content in [little, big] {
        t.put("file", content).await?;
        check_eq!(t.lines("file").await?, ["héllo", "🦀"])?;
    }
    Ok(())
}

/// A missing file and a directory give different errors.
pub async fn missing_and_directory(t: &Env) -> CaseResult {
    t.put("directory/file", "x").await?;
    let window = t.window("missing", TextOptions::default()).await;
    t.fails(ErrorKind::NotFound, window)?;
    let window = t.window("directory", TextOptions::default()).await;
    t.fails(ErrorKind::IsADirectory, window)?;
    let window = t.window("directory/file/x", TextOptions::default()).await;
    t.fails(ErrorKind::NotADirectory, window)
}

/// A window far into a large file has the right lines.
pub async fn deep_window(t: &Env) -> CaseResult {
    let lines: Vec<_> = (1..=200_000).map(|n| format!("line {n}\r\n")).collect();
    t.put("file", lines.concat()).await?;
    let lines = numbered(t, from(150_000).limit(2)).await?;
    let expected = [(150_001, "line 150001"), (150_002, "line 150002")];
    let expected = expected.map(|(number, text)| (number, text.to_owned()));
    check_eq!(lines, expected)
}
