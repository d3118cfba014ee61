//! Arbitrary output is displayed as text, displays unchanged a second time, and does
//! not depend on how the output was split, as lines and on a screen.
#![no_main]

use console_tools::terminal::{Renderer, render};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], u8)| {
    let (output, piece) = input;
    let whole = render(output);
    assert!(!whole.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
    assert_eq!(render(whole.as_bytes()), whole);

    let mut renderer = Renderer::new();
    let mut shown = String::new();
    for piece in output.chunks(usize::from(piece).max(1)) {
        renderer.push(piece);
        shown.push_str(&renderer.take_done());
    }
    shown.push_str(&renderer.finish());
    assert_eq!(shown, whole);
    console_tools::terminal::fuzz(output, piece.into());
});
