//! Tests of terminal rendering.

use proptest::prelude::*;

use super::*;

#[test]
fn applies_what_a_terminal_applies() {
    for (bytes, shown) in [
        (&b""[..], ""),
        (b"plain\n", "plain\n"),
        (b"no newline", "no newline"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"10%\r20%\r100%\n", "100%\n"),
        (b"longer\rshort", "shortr"),
        (b"ab\x08c", "ac"),
        (b"\x08\x08a", "a"),
        (b"a\tb", "a\tb"),
        (b"\x1b[1;31mred\x1b[m", "red"),
        (b"\x1b[38:2::1:2:3mred", "red"),
        (b"wait\x1b[2K\rdone", "done"),
        (b"wait\r\x1b[Kdone", "done"),
        (b"wait\r    \rok\n", "ok\n"),
        (b"trailing  \n", "trailing  \n"),
        (b"abcdef\x1b[3D\x1b[K", "abc"),
        (b"abcdef\x1b[3D\x1b[1Kx", "   xef"),
        (b"a\x1b[3Cb", "a   b"),
        (b"abc\x1b[2Gx", "axc"),
        (b"abc\x1b[9;2Hx", "axc"),
        (b"\x1b]0;title\x07text", "text"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1bPq#0sixel\x1b\\after", "after"),
        (b"\x1b(Bset\x1b=\x1b[?25l", "set"),
        (b"nul\0bell\x07del\x7f", "nul\u{2400}belldel"),
        (b"form\x0cfeed\x0b", "form\nfeed\n"),
        (b"\xff\xfe\x80caf\xc3\xa9", "\u{fffd}\u{fffd}\u{fffd}café"),
        (b"half \xe2\x82", "half \u{fffd}"),
        (b"half \x1b[3", "half "),
        (b"half \xc3\x1b[m\xa9", "half \u{fffd}\u{fffd}"),
        (
            "nel \u{85} csi \u{9b}".as_bytes(),
            "nel \u{fffd} csi \u{fffd}",
        ),
    ] {
        assert_eq!(
            render(bytes),
            shown,
            "{:?}",
            bytes.escape_ascii().to_string()
        );
    }
}

#[test]
fn a_string_that_is_not_closed_hides_one_line() {
    assert_eq!(render(b"a\x1b]0;title\nb\n"), "a\nb\n");
    assert_eq!(render(b"a\x1bPdata\nb\x07\n"), "a\nb\n");
    assert_eq!(render(b"a\x1b]0;t\x18b"), "ab");
    // A bell does not close these.
    assert_eq!(render(b"\x1b_apc\x07still\x1b\\text"), "text");
    assert_eq!(render(b"\x1b\x1b]0;t\x07x\x1b\n]0;t\x07y"), "x\ny");
}

#[test]
fn several_bars_are_redrawn_in_place() {
    let mut bytes = b"start\na 0%\nb 0%\n".to_vec();
    for percent in 1..=100 {
        let drawn = format!("\x1b[2A\r\x1b[Ka {percent}%\n\x1b[Kb {percent}%\n");
        bytes.extend_from_slice(drawn.as_bytes());
    }
    assert_eq!(render(&bytes), "start\na 100%\nb 100%\n");
    assert_eq!(render(b"one\ntwo\nthree\x1b[2F\x1b[Jnew\n"), "new\n");
    assert_eq!(render(b"one\ntwo\x1b[1A\x1b[9Bx"), "one\ntwox");
}

#[test]
fn clearing_the_screen_loses_nothing() {
    assert_eq!(render(b"one\x1b[H\x1b[2Jtwo\x1b[3J\n"), "one\ntwo\n\n");
    assert_eq!(render(b"one\n\x1bctwo"), "one\ntwo");
    assert_eq!(render(b"one\ntwo\x1b[A\x1b[2Jx"), "one\ntwo\nx");
}

#[test]
fn what_scrolled_away_is_final() {
    let mut bytes = b"first\n".to_vec();
    bytes.extend(std::iter::repeat_n(b'\n', ROWS));
    bytes.extend_from_slice(b"\x1b[999A\x1b[2Kx");
    let shown = render(&bytes);
    assert!(shown.starts_with("first\n"), "{shown:?}");
    assert!(shown.contains('x'));
}

#[test]
fn a_progress_bar_is_one_line_in_little_memory() {
    let mut renderer = Renderer::new();
    let mut most = 0;
    for step in 0..10_000 {
        renderer.push(format!("\r\x1b[2K[{:>50}] {step}", "#").as_bytes());
        most = most.max(renderer.take_done().len());
    }
    assert_eq!(most, 0);
    let shown = renderer.finish();
    assert_eq!(shown.lines().count(), 1);
    assert!(shown.ends_with("] 9999"), "{shown}");
}

#[test]
fn a_very_long_line_stays_one_line() {
    let long = "ab".repeat(3 * COLUMNS);
    assert_eq!(render(long.as_bytes()), long);
    // A carriage return goes back to the last part only.
    let shown = render(format!("{long}c\rX\n").as_bytes());
    assert_eq!(shown, format!("{long}X\n"));
    // Text that cannot change is not held back.
    let mut renderer = Renderer::new();
    let mut taken = 0;
    for _ in 0..10 {
        renderer.push(&[b'x'; 100 * COLUMNS]);
        taken += renderer.take_done().len();
    }
    let all = 10 * 100 * COLUMNS;
    assert!(taken + ROWS * COLUMNS >= all, "{taken}");
    assert_eq!(taken + renderer.finish().len(), all);
}

#[test]
fn moving_far_right_makes_few_spaces() {
    let far = format!("{:256}x", "");
    for bytes in [&b"\x1b[65535Cx"[..], b"\x1b[4000Gx", b"\x1b[1;999Hx"] {
        assert_eq!(render(bytes), far);
    }
    assert!(render(b"\x1b[4000Gx\x1b[2K\x1b[4000C\x1b[4000Cy").len() <= 258);
    // Where there is text, the cursor can move to its end.
    let long = "a".repeat(1_000);
    let shown = render(format!("{long}\r\x1b[998Cbbb").as_bytes());
    assert_eq!(shown, format!("{}bbb", "a".repeat(998)));
    // Erased text does not extend that range.
    let shown = render(format!("{long}\x1b[2Kb").as_bytes());
    assert_eq!(shown, format!("{:256}b", ""));
}

#[test]
fn draining_tells_each_piece_once() {
    let mut renderer = Renderer::new();
    renderer.push(b"one\ntw");
    assert_eq!(renderer.drain(), "one\ntw");
    renderer.push(b"o\n\xe2\x82");
    assert_eq!(renderer.drain(), "o\n");
    renderer.push(b"\xac\x1b[3");
    assert_eq!(renderer.drain(), "€");
    renderer.push(b"1mred");
    assert_eq!(renderer.drain(), "red");
    assert_eq!(renderer.drain(), "");
    assert_eq!(renderer.finish(), "");
}

/// Random bytes with many control characters and sequences.
fn output() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..6),
        "[a-z é\u{4e2d}\t\n]{0,8}".prop_map(String::into_bytes),
        "\x1b\\[[0-9;?]{0,4}[A-HJKfmHhl@]".prop_map(String::into_bytes),
        "[\x1b\x07\x08\r\n\\[\\]P\\\\]{0,4}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn shows_text_and_nothing_else(bytes in output()) {
        let shown = render(&bytes);
        let control = |c: char| c.is_control() && c != '\n' && c != '\t';
        prop_assert!(!shown.contains(control), "{:?}", shown);
        prop_assert_eq!(render(shown.as_bytes()), shown);
    }

    #[test]
    fn plain_text_is_shown_as_it_is(text in "[^\\p{Cc}]{0,40}([\n\t][^\\p{Cc}]{0,40}){0,80}") {
        prop_assert_eq!(render(text.as_bytes()), text);
    }

    #[test]
    fn pieces_do_not_matter(bytes in output(), cuts in prop::collection::vec(1usize..9, 1..20)) {
        let mut renderer = Renderer::new();
        let mut shown = String::new();
        let (mut rest, mut cuts) = (&bytes[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
            renderer.push(piece);
            shown.push_str(&renderer.take_done());
            rest = after;
        }
        shown.push_str(&renderer.finish());
        prop_assert_eq!(shown, render(&bytes));
    }
}
