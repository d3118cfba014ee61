//! The supervisor of local commands as a program of its own.

fn main() {
    backend_local::supervisor::run_if_asked();
    // Anybody who starts it by hand sees a failure and nothing else.
    std::process::exit(2);
}
