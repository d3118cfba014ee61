//! The interactive console: the user calls the tools that a model would.

mod ask;
mod complete;
mod help;
mod language;
mod reader;
pub(crate) mod safe;
mod schema;
mod show;
mod signals;
mod words;
pub(crate) mod wrap;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use console_tools::{Chat, Definitions, ToolsetBuilder};
use permissions::approval::Strict;
use serde_json::Value;

use crate::exit;
use language::{ParseError, Request};
use reader::{Input, Reader};
use show::{Live, Screen, Style};
use signals::{INTERRUPTED, Signal, Signals};

/// The parameters of the console. The console sets the approver itself.
#[derive(Debug)]
pub(crate) struct Session {
    builder: ToolsetBuilder,
    /// Advice on how to allow an operation that needs approval.
    allowing: &'static str,
    backend: Option<String>,
    history: Option<PathBuf>,
}

impl Session {
    pub(crate) fn new(builder: ToolsetBuilder, allowing: &'static str) -> Self {
        Self {
            builder,
            allowing,
            backend: None,
            history: default_history(),
        }
    }

    /// Sets the backend's specification, such as `local:DIR`. The prompt shows the part
    /// before the colon.
    #[must_use]
    pub(crate) fn backend(mut self, name: impl Into<String>) -> Self {
        self.backend = Some(safe::text(&name.into()));
        self
    }

    fn prompt(&self) -> String {
        let name = self.backend.as_deref().unwrap_or("agentbox");
        let kind = name.split(':').next().unwrap_or(name);
        format!("{kind}> ")
    }
}

/// Returns an environment variable that is not empty.
#[allow(clippy::disallowed_methods, reason = "this is the program")]
fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn default_history() -> Option<PathBuf> {
    let state = variable("XDG_STATE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(variable("HOME")?).join(".local/state"));
    let state = state.filter(|path| path.is_absolute()).or_else(home)?;
    Some(state.join("agentbox/history"))
}

/// Runs until the user leaves. Without a terminal, runs the requests on standard input;
/// the exit code then tells whether all of them succeeded.
///
/// # Errors
///
/// If the tools cannot be built, or the terminal or the backend cannot be used.
pub(crate) async fn run(session: Session) -> anyhow::Result<ExitCode> {
    let terminal = signals::Terminal::now();
    let result = serve(session, terminal.clone()).await;
    terminal.restore();
    match result {
        // The reader of the output has closed it.
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
        result => result,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

async fn serve(session: Session, state: signals::Terminal) -> anyhow::Result<ExitCode> {
    let terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let dumb = variable("TERM").is_none_or(|term| term == "dumb");
    let screen = Screen {
        terminal,
        colour: terminal && !dumb && variable("NO_COLOR").is_none(),
    };
    let prompt = session.prompt();
    let builder = match terminal {
        true => session.builder.approver(ask::TerminalApprover::new(screen)),
        false => session.builder.approver(ask::NoTerminal(session.allowing)),
    };
    let chat = builder.build()?.conversation("console");
    let without_prompts = chat.approver(Strict);
    if terminal {
        screen.print(&greeting(session.backend.as_deref(), screen))?;
    }
    let typed = terminal.then(|| reader::Terminal {
        prompt,
        colour: screen.colour,
        history: session.history,
        chat: without_prompts.clone(),
    });
    let reader = Reader::start(typed).context("no thread can be started to read input")?;
    let console = Console {
        screen,
        chat,
        without_prompts,
        signals: Signals::listen(state).context("signals cannot be received")?,
        code: exit::SUCCESS,
    };
    console.serve(reader).await
}

fn greeting(backend: Option<&str>, screen: Screen) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let name = screen.paint(Style::Bold, &format!("agentbox {version}"));
    let files = backend.map(|backend| format!("Files: {backend}\n"));
    let files = files.unwrap_or_default();
    let text = format!(
        "{name}: the tools of an AI agent, in your hands\n{files}Type help; Tab completes; Ctrl-D leaves.\n"
    );
    wrap::lines(&text, screen.width())
}

/// The user's conversation with the tools.
struct Console {
    screen: Screen,
    chat: Chat,
    /// A second conversation, in which anything that needs approval is refused.
    without_prompts: Chat,
    signals: Signals,
    /// The highest exit code of all failures.
    code: u8,
}

/// The next step after a request.
enum Next {
    Go,
    /// Drops the rest of the input that was typed at once.
    Stop,
    Leave(ExitCode),
}

impl Console {
    async fn serve(mut self, mut reader: Reader) -> anyhow::Result<ExitCode> {
        loop {
            let tools = self.chat.definitions().await?;
            let input = tokio::select! {
                input = reader.next(&tools) => input,
                signal = self.signals.next() => match (signal, self.screen.terminal) {
                    (Signal::Interrupt, true) => {
                        self.screen.print("\nCtrl-C again leaves.")?;
                        continue;
                    }
                    (Signal::Interrupt, false) => return Ok(INTERRUPTED.into()),
                    (Signal::Leave(code), _) => return Ok(code.into()),
                },
            };
            match input {
                Input::Text(text) => {
                    self.signals.reset();
                    if let Next::Leave(code) = self.execute(&text, &tools).await? {
                        return Ok(code);
                    }
                }
                Input::Interrupted { empty } => match (self.signals.record_interrupt(), empty) {
                    (true, true) => return Ok(INTERRUPTED.into()),
                    (false, true) => self.screen.print("Ctrl-C again leaves.")?,
                    (_, false) => {}
                },
                Input::End => return Ok(self.code()),
                Input::Failed(why) => anyhow::bail!(why),
            }
        }
    }

    fn failed(&mut self, code: u8) {
        self.code = self.code.max(code);
    }

    /// Returns the exit code. With a terminal it is success, because the user has seen
    /// all failures.
    fn code(&self) -> ExitCode {
        match self.screen.terminal {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(self.code),
        }
    }

    /// Executes all requests in a text, up to the first one that is not understood.
    async fn execute(&mut self, text: &str, tools: &Definitions) -> anyhow::Result<Next> {
        let mut rest = text;
        while !rest.is_empty() {
            let (request, used) = match language::parse(rest, tools) {
                Ok(parsed) => parsed,
                Err(error) => {
                    self.failed(exit::FIXABLE);
                    self.screen.print_error(&parse_error_text(error))?;
                    return Ok(Next::Go);
                }
            };
            rest = rest.get(used..).unwrap_or_default();
            match request {
                Request::Nothing => {}
                Request::Help(about) => self.help(about.as_deref(), tools)?,
                Request::Tools => self.screen.print(&help::list(tools, self.screen))?,
                Request::Quit => return Ok(Next::Leave(self.code())),
                Request::Call { tool, arguments } => {
                    match self.call(&tool, arguments, tools).await? {
                        Next::Go => {}
                        next => return Ok(next),
                    }
                }
            }
        }
        Ok(Next::Go)
    }

    fn help(&mut self, about: Option<&str>, tools: &Definitions) -> io::Result<()> {
        let text = match about {
            None => Some(help::all(tools, self.screen)),
            Some(name) => help::tool(name, tools, self.screen),
        };
        match (text, about) {
            (Some(text), _) => self.screen.print(&text),
            (None, about) => {
                self.failed(exit::FIXABLE);
                let name = about.unwrap_or_default();
                let suggestion = language::suggestion(name, tools);
                let text = format!(
                    "there is no tool '{name}'{suggestion}; type tools to see those there are"
                );
                self.screen.print_error(&text)
            }
        }
    }

    async fn call(
        &mut self,
        tool: &str,
        arguments: Value,
        tools: &Definitions,
    ) -> anyhow::Result<Next> {
        let live = Live::new(self.screen, self.signals.interrupted());
        let (chat, without_prompts, screen) = (&self.chat, &self.without_prompts, self.screen);
        let observer = Arc::<Live>::clone(&live);
        let calling = async {
            let preview = preview(without_prompts, tool, &arguments, tools).await;
            let reply = match screen.terminal {
                true => chat.call_observed(tool, arguments, observer).await,
                false => chat.call(tool, arguments).await,
            };
            (reply, preview)
        };
        let called = tokio::select! {
            called = calling => Ok(called),
            signal = self.signals.next() => Err(signal),
        };
        match called {
            Ok((reply, preview)) => {
                if show::failed(&reply) {
                    // A failed command is not a failure of the tool.
                    self.failed(exit::of_reply(reply.failure).max(exit::FIXABLE));
                }
                let diff = preview.as_ref().and_then(|preview| preview.of(&reply));
                self.screen.reply(&reply, &live, diff)?;
                Ok(Next::Go)
            }
            Err(Signal::Interrupt) => {
                self.failed(exit::FIXABLE);
                live.finish()?;
                self.screen.print_error("\ncancelled")?;
                match self.screen.terminal {
                    true => Ok(Next::Stop),
                    false => Ok(Next::Leave(INTERRUPTED.into())),
                }
            }
            Err(Signal::Leave(code)) => Ok(Next::Leave(code.into())),
        }
    }
}

fn parse_error_text(error: ParseError) -> String {
    use words::Until;
    match error {
        ParseError::Invalid(why) => why,
        ParseError::Incomplete(Until::Char(c)) => {
            format!("the command ends before its closing {c}; add it")
        }
        ParseError::Incomplete(Until::Line(tag)) => {
            format!("the text ends before the line {tag}; add it")
        }
        ParseError::Incomplete(Until::Any) => {
            "the command ends with a backslash; add what follows, or leave it out".to_owned()
        }
    }
}

/// The changes that an edit would make.
struct Preview {
    diff: String,
    position: Value,
}

impl Preview {
    /// Returns the diff, if it matches the actual change.
    fn of(&self, reply: &console_tools::Reply) -> Option<&str> {
        let same = reply.is_success() && change_position(reply) == self.position;
        same.then_some(&*self.diff)
    }
}

/// Returns the number and position of the changes.
fn change_position(reply: &console_tools::Reply) -> Value {
    let field = |name: &str| {
        reply
            .structured
            .as_ref()
            .and_then(|data| data.get(name).cloned())
    };
    Value::from_iter([field("replacements"), field("first_line")].map(Option::unwrap_or_default))
}

/// Does a dry run of an edit, because a tool knows the diff only of files that were
/// read before.
async fn preview(
    without_prompts: &Chat,
    tool: &str,
    arguments: &Value,
    tools: &Definitions,
) -> Option<Preview> {
    let schema = &tools.get(tool)?.input_schema;
    schema.pointer("/properties/dry_run")?;
    let mut arguments = arguments.clone();
    let fields = arguments.as_object_mut()?;
    fields.insert("dry_run".to_owned(), Value::Bool(true));
    let reply = without_prompts.call(tool, arguments).await;
    let diff = show::string(&reply, "diff")?.to_owned();
    let position = change_position(&reply);
    reply.is_success().then_some(Preview { diff, position })
}
