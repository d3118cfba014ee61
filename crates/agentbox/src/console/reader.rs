//! The input of the console. Reading blocks, so it has its own thread, which the
//! program does not wait for when it ends.

mod editor;
pub(crate) mod input;
mod plain;

use std::sync::mpsc as blocking;

use console_tools::Definitions;
use tokio::sync::mpsc;

use self::input::{Input, Prompt};

/// Reads input on demand.
#[derive(Debug)]
pub(crate) struct Reader {
    wants: blocking::Sender<Definitions>,
    inputs: mpsc::Receiver<Input>,
    /// Whether input was requested that has not arrived yet.
    waiting: bool,
}

impl Reader {
    /// Starts reading from a terminal, or without a prompt line by line.
    pub(crate) fn start(prompt: Option<Prompt>) -> std::io::Result<Self> {
        let (wants, asked) = blocking::channel();
        let (give, inputs) = mpsc::channel(1);
        let runtime = tokio::runtime::Handle::current();
        let thread = std::thread::Builder::new().name("console".to_owned());
        thread.spawn(move || match prompt {
            Some(prompt) => editor::serve(prompt, runtime, &asked, &give),
            None => plain::serve(std::io::stdin().lock(), &asked, &give),
        })?;
        Ok(Self {
            wants,
            inputs,
            waiting: false,
        })
    }

    /// Returns the next input. `tools` are used for completion and to detect incomplete
    /// requests. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self, tools: &Definitions) -> Input {
        if !self.waiting {
            self.waiting = self.wants.send(tools.clone()).is_ok();
        }
        let input = self.inputs.recv().await.unwrap_or(Input::End);
        self.waiting = false;
        input
    }
}
