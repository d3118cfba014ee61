//! The supervisor of local commands as a separate program.
#![allow(clippy::print_stderr, reason = "a program may say why it does nothing")]

fn main() -> std::process::ExitCode {
    backend_local::supervisor::run_if_asked();
    eprintln!(
        "agentbox-supervisor: started by programs that run commands through backend-local, \
         and of no use by itself; put it beside such a program"
    );
    std::process::ExitCode::from(2)
}
