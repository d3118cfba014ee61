//! Any pattern on any path gives a result or a typed error, and pruning never loses a
//! match.
#![no_main]

use backend_core::VPath;
use backend_core::search::Glob;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str)| {
    let Ok(glob) = Glob::new(input.0) else {
        return;
    };
    let Ok(path) = VPath::parse(input.1) else {
        return;
    };
    let root = VPath::root();
    if glob.matches(&root, &path) {
        for above in path.ancestors() {
            assert!(
                glob.may_match_beneath(&root, &above),
                "{glob} matches {path} beneath {above}, which it prunes"
            );
        }
    }
    if let Some(name) = path.file_name() {
        glob.names_hidden(name);
    }
});
