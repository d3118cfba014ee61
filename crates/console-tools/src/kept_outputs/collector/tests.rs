//! Tests of the shown and kept parts of outputs of all sizes.

use backend_core::VPath;
use proptest::prelude::*;

use super::*;

fn limits(output: usize, spill: usize) -> Limits {
    Limits {
        output_bytes: output,
        spill_bytes: spill,
        ..Limits::default()
    }
}

fn shown(bytes: &[u8], limits: &Limits) -> (ShownOutput, OutputStore) {
    let outputs = OutputStore::default();
    let mut collector = Collector::new(limits);
    bytes.chunks(7).for_each(|piece| collector.push(piece));
    (collector.finish(limits, &outputs), outputs)
}

fn kept(outputs: &OutputStore, shown: &ShownOutput) -> String {
    let path = VPath::parse(shown.output_file.as_deref().unwrap()).unwrap();
    match outputs.find(&path).unwrap() {
        Some(text) => String::from_utf8(text.into()).unwrap(),
        None => panic!("a directory"),
    }
}

fn lines(count: usize) -> String {
    (1..=count).map(|n| format!("line {n}\n")).collect()
}

#[test]
fn what_fits_is_shown_whole_and_not_kept() {
    let (shown, outputs) = shown(b"\x1b[1mbold\x1b[m\n", &limits(5, 100));
    assert_eq!(shown.text, "bold\n");
    assert_eq!((shown.truncated, shown.output_file), (false, None));
    assert!(outputs.list().is_empty());
}

#[test]
fn more_than_fits_shows_both_ends_and_keeps_all() {
    let all = lines(100);
    let (shown, outputs) = shown(all.as_bytes(), &limits(40, 10_000));
    assert_eq!(
        shown.text,
        "line 1\nline 2\n[... 96 lines (761 bytes) left out; the whole output is in \
         /.agentbox/outputs/1.txt: use read_file or grep on it, commands do not see it ...]\n\
         line 99\nline 100\n"
    );
    assert!(shown.truncated);
    assert_eq!(kept(&outputs, &shown), all);
}

#[test]
fn one_long_line_is_cut_in_the_middle() {
    let (shown, _) = shown("é".repeat(100).as_bytes(), &limits(11, 1_000));
    assert!(
        shown.text.starts_with("éé\n[... 0 lines (192 bytes)"),
        "{}",
        shown.text
    );
    assert!(shown.text.ends_with(" ...]\néé"), "{}", shown.text);
}

#[test]
fn more_than_is_kept_keeps_both_ends() {
    let all = lines(1_000);
    let (shown, outputs) = shown(all.as_bytes(), &limits(40, 100));
    let file = kept(&outputs, &shown);
    assert!(
        file.starts_with("line 1\n") && file.ends_with("line 1000\n"),
        "{file}"
    );
    assert!(
        file.contains("\n[... 8793 bytes were not kept ...]\n"),
        "{file}"
    );
    assert!(shown.text.contains("all but 8793 bytes"), "{}", shown.text);
    assert!(shown.text.contains("996 lines"), "{}", shown.text);
}

#[test]
fn nothing_is_kept_where_nothing_may_be() {
    let (shown, outputs) = shown(lines(100).as_bytes(), &limits(40, 0));
    assert_eq!(shown.output_file, None);
    assert!(
        shown.text.contains("left out; write the output to a file"),
        "{}",
        shown.text
    );
    assert!(outputs.list().is_empty());
}

#[test]
fn limits_of_nothing_break_nothing() {
    for (output, spill) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 3)] {
        let (shown, _) = shown("äöü\nß\n".as_bytes(), &limits(output, spill));
        assert!(shown.truncated, "{output} {spill}");
    }
}

proptest! {
    #[test]
    fn stays_within_its_budget(text in "[a-zé\n]{0,400}", output in 0usize..200, spill in 0usize..300) {
        let limits = limits(output, spill);
        let (shown, outputs) = shown(text.as_bytes(), &limits);
        if text.len() <= output {
            prop_assert_eq!(shown.text, text);
        } else {
            prop_assert!(shown.text.len() <= output + 250, "{}", shown.text);
            prop_assert!(shown.truncated);
            if let Some(path) = &shown.output_file {
                let file = kept(&outputs, &shown);
                prop_assert!(file.len() <= spill.max(output) + 60);
                prop_assert!(shown.text.contains(path.as_str()));
                prop_assert!(text.len() > spill.max(output) || file == text);
            }
        }
    }
}
