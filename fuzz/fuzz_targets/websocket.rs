//! With arbitrary bytes from the other side of a websocket, both ends read or end, and never
//! panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| sandbox_wire::fuzz::websocket(bytes));
