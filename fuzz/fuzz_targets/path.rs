//! Any two strings give a stable absolute path, or an error with a reason.
#![no_main]

use backend_core::VPath;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str)| {
    let base = VPath::parse(input.0).unwrap_or_default();
    match base.join(input.1) {
        Ok(path) => {
            assert!(path.as_str().starts_with('/'));
            assert!(path.components().all(|name| !matches!(name, "." | "..")));
            assert_eq!(VPath::parse(path.as_str()).as_ref(), Ok(&path));
            assert_eq!(VPath::root().join(path.as_str()).as_ref(), Ok(&path));
            assert_eq!(path.ancestors().count(), path.components().count());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
