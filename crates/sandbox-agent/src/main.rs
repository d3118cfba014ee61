//! The agent: started once inside a sandbox, it serves the files and commands
//! there over its standard input and output until that stream ends, or to clients of a
//! port until none comes any more.
#![allow(
    clippy::print_stdout,
    reason = "a program prints what it was asked for"
)]

mod arguments;
mod listen;
mod serve;
mod socket;
mod stdio;
mod suffixed;

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::task::Poll;

use backend_core::Result;
use rustix::process::DumpableBehavior;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::arguments::{Arguments, Request, USAGE};
use crate::suffixed::suffixed;

const USAGE_ERROR: u8 = 2;

fn main() -> ExitCode {
    backend_local::supervisor::run_if_asked();
    let request = match arguments::parse(std::env::args_os().skip(1)) {
        Ok(request) => request,
        Err(error) => {
            complain(&error);
            return ExitCode::from(USAGE_ERROR);
        }
    };
    match request {
        Request::Help => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        Request::Version => {
            println!("sandbox-agent {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        Request::Serve(arguments)
            if arguments.listen.is_none() && std::io::stdin().is_terminal() =>
        {
            complain(
                "this program is started by programs that drive a sandbox; see `sandbox-agent --help`",
            );
            ExitCode::from(USAGE_ERROR)
        }
        Request::Serve(arguments) => told(run(arguments)),
        Request::Hold => told(hold()),
        Request::Install(path) => told(install(&path)),
    }
}

/// Reports an error and returns the exit code.
fn told(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error.chain().to_string());
            ExitCode::FAILURE
        }
    }
}

fn event_loop() -> Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(|error| {
        backend_core::Error::unavailable("no event loop could be started").with_source(error)
    })
}

/// Waits for a signal that asks the program to end.
fn hold() -> Result<()> {
    event_loop()?.block_on(async { Signals::listen().arrive().await });
    Ok(())
}

/// Copies this program, completely or not at all. The image that it comes from needs no
/// shell, and the container that it is for may have none.
fn install(path: &Path) -> Result<()> {
    let partial = suffixed(path, ".part");
    let copied = std::env::current_exe()
        .and_then(|program| std::fs::copy(program, &partial))
        .and_then(|_| std::fs::rename(&partial, path));
    copied.map_err(|error| {
        let text = format!("the agent cannot be copied to {}", path.display());
        backend_core::Error::unavailable(text).with_source(error)
    })
}

/// Serves until the stream ends, no client comes any more, or a signal asks the program to end.
fn run(arguments: Arguments) -> Result<()> {
    // Commands run as the same user. Without this they could open the agent's
    // streams through /proc and inject their own bytes.
    if let Err(error) = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        complain(&format!("commands can reach the agent's streams: {error}"));
    }
    let runtime = event_loop()?;
    let served = runtime.block_on(async {
        let mut signals = Signals::listen();
        match &arguments.listen {
            Some(listen) => listen::run(&arguments, listen, &mut signals).await,
            None => {
                let backend = serve::open(&arguments)?;
                let (mut input, mut output) = (stdio::input(), stdio::output());
                if let Some(path) = &arguments.socket {
                    let direct = tokio::select! {
                        direct = socket::connect(path, &mut input) => direct?,
                        () = signals.arrive() => return Ok(()),
                    };
                    (input, output) = direct.unwrap_or((input, output));
                }
                serve::serve(backend, &arguments, input, output, signals.arrive()).await
            }
        }
    });
    // A pending read of standard input that cannot be cancelled must not delay
    // the exit.
    runtime.shutdown_background();
    served
}

/// The signals that ask a program to end.
struct Signals([Option<Signal>; 3]);

impl Signals {
    /// Listens from now on. A signal that cannot be listened for keeps its
    /// default action.
    fn listen() -> Self {
        let kinds = [
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::interrupt(),
        ];
        Self(kinds.map(|kind| signal(kind).ok()))
    }

    async fn arrive(&mut self) {
        std::future::poll_fn(|context| {
            let mut signals = self.0.iter_mut().flatten();
            if signals.any(|signal| signal.poll_recv(context).is_ready()) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

/// Prints a message to standard error, if that is open.
fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "sandbox-agent: {text}");
}
