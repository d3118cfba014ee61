//! Arbitrary text and edits: no panic, anchors that were shown can be applied, and an
//! empty list of edits changes nothing.
#![no_main]

use hashline::{
    Anchor, ApplyOptions, Edit, Format, Tag, TagWidth, View, ViewOptions, apply, render,
};
use libfuzzer_sys::fuzz_target;

/// An edit by line, kind, length and content. The last text is what a model might send
/// as an anchor.
type Plan<'a> = (u8, u8, u8, &'a str, &'a str);

/// Returns edits that fit `shown`, the anchors of a text.
fn fitting(shown: &[Anchor], plans: &[Plan<'_>]) -> Vec<Edit> {
    let edit = |(line, kind, length, content, _): &Plan<'_>| {
        let line = usize::from(*line) % shown.len();
        let last = (line + usize::from(length % 4)).min(shown.len() - 1);
        let (start, end) = (shown[line].clone(), Some(shown[last].clone().into()));
        let content = (*content).to_owned();
        match kind % 5 {
            0 => Edit::Replace {
                start,
                end,
                content,
            },
            1 => Edit::Delete { start, end },
            2 => Edit::InsertAfter {
                anchor: start,
                content,
            },
            3 => Edit::InsertBefore {
                anchor: start,
                content,
            },
            _ => Edit::InsertFirst { content },
        }
    };
    plans.iter().map(edit).collect()
}

fuzz_target!(|input: (&str, Vec<Plan<'_>>, u8, u8, u8)| {
    let (text, plans, offset, limit, width) = input;
    let options = ApplyOptions::default().context(usize::from(limit));
    let same = apply(text, &[], options).expect("nothing to refuse");
    assert_eq!(same.text, text);

    let shown: Vec<Anchor> = render(text)
        .split('\n')
        .map(|line| line.parse().expect("a line as it is shown"))
        .collect();
    if let Ok(applied) = apply(text, &fitting(&shown, &plans), options) {
        let added: usize = applied
            .changed
            .iter()
            .map(|changed| changed.new.len())
            .sum();
        let gone: usize = applied
            .changed
            .iter()
            .map(|changed| changed.old.len())
            .sum();
        let body = text.trim_start_matches('\u{feff}');
        let now = View::new(&applied.text, ViewOptions::everything()).expect("one line at least");
        if !body.is_empty() && shown.len() + added > gone {
            assert_eq!(now.total_lines(), shown.len() + added - gone);
        }
        let _ = applied.excerpt(usize::from(limit), Format::default());
    }

    let format = Format::default()
        .max_line_bytes(usize::from(width))
        .tag_width(TagWidth::Four);
    let window = ViewOptions::default()
        .offset(usize::from(offset))
        .limit(usize::from(limit))
        .max_bytes(usize::from(width) * 4)
        .format(format);
    if let Ok(view) = View::new(text, window) {
        assert_eq!(view.lines().count(), view.line_count());
    }

    // Arbitrary edits that a model may send.
    let mut edits = Vec::new();
    for (line, _, length, content, anchor) in &plans {
        let guess = Anchor::new(usize::from(*line), Tag::of(content, TagWidth::Four));
        let start = anchor.parse().unwrap_or(guess);
        let end = Some((start.line.saturating_add(usize::from(*length))).into());
        edits.push(Edit::Replace {
            start,
            end,
            content: (*content).to_owned(),
        });
    }
    if let Err(error) = apply(text, &edits, options.format(format)) {
        assert!(!error.to_string().is_empty());
    }
});
