//! Tests of the file tools, by dialect.

mod console;
mod filesystem;
