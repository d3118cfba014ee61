//! Any bytes: what a host, a supervisor, the kernel's lists of processes or a
//! command line could say is understood or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| backend_local::supervisor::fuzz(bytes));
