//! Where lines come from. Reading blocks, so it has a thread of its own: one that
//! nobody waits for when the program ends.

mod editor;
mod plain;

use std::path::PathBuf;
use std::sync::mpsc as blocking;

use console_tools::{Chat, Definitions};
use tokio::sync::mpsc;

/// What came in.
#[derive(Debug)]
pub(crate) enum Input {
    /// One or more requests, or a part of one if nothing more comes.
    Text(String),
    /// Ctrl-C at the prompt; whether nothing was typed.
    Interrupted { empty: bool },
    /// Nothing more comes.
    End,
    /// Nothing more can be read.
    Failed(String),
}

/// How lines are read on a terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    pub(crate) prompt: String,
    pub(crate) colour: bool,
    /// Where earlier lines are kept.
    pub(crate) history: Option<PathBuf>,
    /// Lists directories, and asks nobody.
    pub(crate) chat: Chat,
}

/// Reads on demand.
#[derive(Debug)]
pub(crate) struct Reader {
    wants: blocking::Sender<Definitions>,
    inputs: mpsc::Receiver<Input>,
    /// Whether something was asked for and has not come yet.
    waiting: bool,
}

impl Reader {
    /// Reads from a terminal, or without one line by line.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub(crate) fn start(terminal: Option<Terminal>) -> std::io::Result<Self> {
        let (wants, asked) = blocking::channel();
        let (give, inputs) = mpsc::channel(1);
        let runtime = tokio::runtime::Handle::current();
        let thread = std::thread::Builder::new().name("console".to_owned());
        thread.spawn(move || match terminal {
            Some(terminal) => editor::serve(terminal, runtime, &asked, &give),
            None => plain::serve(std::io::stdin().lock(), &asked, &give),
        })?;
        Ok(Self {
            wants,
            inputs,
            waiting: false,
        })
    }

    /// The next input. What is typed is read with these tools in mind. Dropping
    /// this loses nothing.
    pub(crate) async fn next(&mut self, tools: &Definitions) -> Input {
        if !self.waiting {
            self.waiting = self.wants.send(tools.clone()).is_ok();
        }
        let input = self.inputs.recv().await.unwrap_or(Input::End);
        self.waiting = false;
        input
    }
}
