//! For any bytes, a window of pieces equals a window of the whole, and edits keep all
//! other text.
#![no_main]

use backend_core::ops::TextOptions;
use backend_core::text::{Edit, WindowScanner, apply, window};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], u8, u8, u8, u8, &str, &str)| {
    let (content, offset, limit, width, piece, old, new) = input;
    let request = TextOptions::default()
        .offset(u64::from(offset))
        .limit(usize::from(limit))
        .max_line_bytes(usize::from(width));
    let whole = window(content, request);
    let pieces = WindowScanner::new(request).and_then(|mut scanner| {
        for piece in content.chunks(usize::from(piece).max(1)) {
            scanner.push(piece);
        }
        scanner.finish()
    });
    assert_eq!(whole, pieces);

    let Ok(text) = str::from_utf8(content) else {
        return;
    };
    match apply(text, &[Edit::new(old, new)]) {
        Ok(applied) if text.contains(old) => assert_eq!(applied.text, text.replacen(old, new, 1)),
        Ok(applied) => assert!(applied.text.contains("\r\n") || !applied.text.contains('\n')),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
