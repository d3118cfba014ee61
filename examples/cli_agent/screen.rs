//! The user's terminal: the model's words as they arrive, its calls, and questions.

use std::io::{BufRead, BufReader, IsTerminal as _, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use examples::chat::{Event, brief, printable};
use permissions::approval::{ApproverError, Interactive};
use permissions::{Answer, Question, Remember};

/// Number of lines shown of a reply. The model reads all of it.
const REPLY_LINES: usize = 12;

/// A terminal. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Screen(Arc<Mutex<Streams>>);

struct Streams {
    input: Box<dyn BufRead + Send>,
    output: Box<dyn Write + Send>,
    /// Where there is a terminal: shows what is going on, in a line that is overwritten.
    progress: Option<Box<dyn Write + Send>>,
    /// Whether the output is in the middle of a line.
    within_line: bool,
}

impl Screen {
    /// Uses the standard streams.
    pub(crate) fn of_this_process() -> Self {
        let errors = std::io::stderr();
        let progress = errors.is_terminal();
        Self::new(
            BufReader::new(std::io::stdin()),
            std::io::stdout(),
            progress.then(|| Box::new(errors) as _),
        )
    }

    pub(crate) fn new(
        input: impl BufRead + Send + 'static,
        output: impl Write + Send + 'static,
        progress: Option<Box<dyn Write + Send>>,
    ) -> Self {
        Self(Arc::new(Mutex::new(Streams {
            input: Box::new(input),
            output: Box::new(output),
            progress,
            within_line: false,
        })))
    }

    /// While a question is open, everything else waits: the question stays readable.
    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints a line.
    pub(crate) fn line(&self, text: &str) {
        self.lock().line(text);
    }

    /// Ends the line that the output is in.
    pub(crate) fn end_line(&self) {
        self.lock().end_line();
    }

    /// Says what is waited for.
    pub(crate) fn waiting(&self, text: &str) {
        self.lock().waiting(text);
    }

    /// Prints an event of the conversation.
    pub(crate) fn show(&self, event: Event<'_>) {
        let mut streams = self.lock();
        match event {
            Event::Text(text) => streams.text(text),
            Event::Call(call) => {
                streams.line(&format!("> {} {}", call.name, brief(&call.arguments, 1)));
                streams.waiting(&call.name);
            }
            Event::Output(_, text) => {
                let last = text.lines().rfind(|line| !line.trim().is_empty());
                streams.waiting(last.unwrap_or(text));
            }
            Event::Reply(_, reply) => {
                streams.line(&brief(&reply.text, REPLY_LINES));
                streams.waiting("the model");
            }
        }
    }

    /// Returns an approver that asks here. It reads on a thread of its own.
    pub(crate) fn approver(&self) -> Interactive {
        let screen = self.clone();
        Interactive::blocking(move |question| Ok::<_, ApproverError>(screen.lock().ask(&question)))
    }
}

impl Streams {
    fn text(&mut self, text: &str) {
        self.clear_progress();
        // A terminal that is gone is no reason to leave work half done.
        let _ = write!(self.output, "{}", printable(text));
        let _ = self.output.flush();
        self.within_line = !text.ends_with('\n');
    }

    fn end_line(&mut self) {
        if self.within_line {
            self.text("\n");
        }
    }

    fn line(&mut self, text: &str) {
        self.end_line();
        self.text(text);
        self.text("\n");
    }

    fn waiting(&mut self, text: &str) {
        if let Some(progress) = &mut self.progress
            && !self.within_line
        {
            let _ = write!(
                progress,
                "\r\x1b[K... waiting for {}",
                printable(&brief(text, 1))
            );
            let _ = progress.flush();
        }
    }

    fn clear_progress(&mut self) {
        if let Some(progress) = &mut self.progress
            && !self.within_line
        {
            let _ = write!(progress, "\r\x1b[K");
            let _ = progress.flush();
        }
    }

    /// Asks until there is an answer. The end of the input is a no.
    fn ask(&mut self, question: &Question) -> Answer {
        self.line(&question.to_string());
        loop {
            self.text("Allow it? [y]es, [n]o, [a]lways: ");
            let mut line = String::new();
            if !matches!(self.input.read_line(&mut line), Ok(1..)) {
                self.line("no (the input has ended)");
                return Answer::no().note("the user is not there to approve it");
            }
            // The user's Enter ended the line.
            self.within_line = false;
            match line.trim() {
                "y" | "yes" => return Answer::yes(),
                "n" | "no" => return Answer::no().note("the user said no"),
                // For the rest of this task, and never against a rule that asks or denies.
                "a" | "always" => return Answer::yes().remember(Remember::Session),
                _ => {}
            }
        }
    }
}
