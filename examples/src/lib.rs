//! Runnable examples: `cargo run --example quickstart`.
