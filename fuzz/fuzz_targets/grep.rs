//! Any pattern on any bytes finds the same lines in memory and through a reader.
#![no_main]

use backend_core::VPath;
use backend_core::ops::{FileMatches, GrepQuery};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

fn lines(file: &FileMatches) -> Vec<(u64, Vec<u8>)> {
    let lines = file.lines();
    lines
        .map(|line| (line.number, line.bytes.to_vec()))
        .collect()
}

fuzz_target!(|input: (&str, &[u8], bool, bool, u8)| {
    let (pattern, content, literal, multi_line, context) = input;
    let context = usize::from(context % 4);
    let query = GrepQuery::new(pattern, VPath::root())
        .literal(literal)
        .multi_line(multi_line)
        .context(context, context);
    let Ok((_, grep)) = query.compile() else {
        return;
    };
    let path = VPath::root();
    let mut worker = grep.worker();
    let memory = worker.search_bytes(&path, &Bytes::copy_from_slice(content));
    let reader = worker.search_reader(&path, content);
    match (memory, reader) {
        (Ok(memory), Ok(reader)) => assert_eq!(lines(&memory), lines(&reader)),
        (Err(_), Err(_)) => {}
        (memory, reader) => panic!("{memory:?} but {reader:?}"),
    }
});
