//! The input of the console, on a thread that the program's end does not wait for.

mod editor;
mod plain;

use std::path::PathBuf;
use std::sync::mpsc as blocking;

use console_tools::{Chat, Definitions};
use tokio::sync::mpsc;

#[derive(Debug)]
pub(crate) enum Input {
    /// One or more requests, or an incomplete one at the end of input.
    Text(String),
    /// Ctrl-C at the prompt; `empty` if nothing was typed.
    Interrupted {
        empty: bool,
    },
    End,
    Failed(String),
}

/// The settings for reading from a terminal.
#[derive(Debug)]
pub(crate) struct Prompt {
    pub(crate) text: String,
    pub(crate) colour: bool,
    pub(crate) history: Option<PathBuf>,
    /// Lists directories for completion, without asking for approval.
    pub(crate) chat: Chat,
}

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
        thread.spawn(move || {
            let mut read: Box<dyn FnMut(Definitions) -> Input> = match prompt {
                Some(prompt) => Box::new(editor::reader(prompt, runtime)),
                None => Box::new(plain::reader(std::io::stdin().lock())),
            };
            while let Ok(tools) = asked.recv() {
                let input = read(tools);
                let is_last = matches!(input, Input::End | Input::Failed(_));
                if give.blocking_send(input).is_err() || is_last {
                    return;
                }
            }
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
