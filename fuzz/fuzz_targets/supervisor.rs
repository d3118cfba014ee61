//! Arbitrary bytes as messages of a host or a supervisor, process lists of the kernel,
//! or a command line are parsed or rejected.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| backend_local::supervisor::fuzz(bytes));
