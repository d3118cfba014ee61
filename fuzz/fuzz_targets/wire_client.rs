//! With arbitrary bytes from an agent, a call returns a result or an error, and never
//! panics.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| sandbox_wire::fuzz::client(bytes));
