//! With arbitrary bytes from a host, the server answers or ends, and never panics.
#![no_main]

use std::sync::Arc;

use backend_state::StateBackend;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| sandbox_wire::fuzz::server(bytes, Arc::new(StateBackend::new())));
