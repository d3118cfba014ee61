//! Arbitrary bytes as a document are loaded and written back unchanged, or rejected.
#![no_main]

use backend_state::Snapshot;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|json: &[u8]| {
    if let Ok(snapshot) = Snapshot::from_json(json) {
        let Ok(written) = snapshot.to_json() else {
            return;
        };
        assert!(!written.contains("\\u0000"));
        let again = Snapshot::from_json(&written).expect("what was written can be loaded");
        assert!(again == snapshot);
    }
});
