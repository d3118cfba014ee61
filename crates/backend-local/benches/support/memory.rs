//! Measures the memory that a search takes, in a separate process.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use backend_core::ops::GrepQuery;
use backend_core::{Backend as _, VPath};
use backend_local::LocalBackend;
use backend_testkit::measure;
use serde_json::{Value, json};

use super::child;

/// The argument that names the directory in which a child searches.
pub(crate) const CHILD: &str = "search";

/// The pattern. It occurs now and then in the searched files.
const PATTERN: &str = "needle";

/// Searches what a row is about in a child.
pub(crate) fn measure(id: &str, scratch: &Path) {
    let root = scratch.join(id);
    fs::create_dir(&root).unwrap();
    match id {
        "local_memory_big" => write_big(&root.join("lines.txt")),
        _ => write_many(&root),
    }
    let found = child::printed(&[format!("--{CHILD}").as_ref(), root.as_os_str()]);
    let number = |key| found.get(key).and_then(Value::as_u64).unwrap();
    measure::memory(id, number("bytes"), None, number("hits"));
    fs::remove_dir_all(&root).unwrap();
}

/// Writes 2 GB of lines of 100 bytes, with 200 needles.
fn write_big(path: &Path) {
    let line = |number| {
        let word = if number == 0 { PATTERN } else { "straw" };
        format!("{:<99}\n", format!("{number:08} {word} and other words"))
    };
    let block: String = (0..100_000).map(line).collect();
    let mut file = File::create(path).unwrap();
    for _ in 0..200 {
        file.write_all(block.as_bytes()).unwrap();
    }
}

/// Writes 200k small files, of which every hundredth contains a needle.
fn write_many(root: &Path) {
    for dir in 0..1_000 {
        let path = root.join(format!("d{dir:04}"));
        fs::create_dir(&path).unwrap();
        for file in 0..200 {
            let word = if file % 100 == 0 { PATTERN } else { "straw" };
            let text = format!("directory {dir}\nfile {file}\n{word}\n");
            fs::write(path.join(format!("f{file:03}.txt")), text).unwrap();
        }
    }
}

/// In the child: searches with the default limits.
pub(crate) fn search(root: &Path) -> Value {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let backend = LocalBackend::builder(root).open().unwrap();
    let idle = child::status("VmRSS:");
    let query = GrepQuery::new(PATTERN, VPath::root());
    let found = runtime.block_on(backend.grep(query)).unwrap();
    let peak = child::status("VmHWM:");
    json!({ "bytes": peak - idle, "hits": found.matches })
}
