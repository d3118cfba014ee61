//! The interactive console: the user calls the tools that a model would.

mod ask;
mod complete;
pub(crate) mod help;
mod language;
mod reader;
mod schema;
#[cfg(unix)]
mod shell;
mod show;
mod signals;
mod words;

use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow::{self, Break, Continue};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use console_tools::{Chat, Definitions};
#[cfg(unix)]
use permissions::Guarded;
use permissions::approval::Strict;
use serde_json::Value;

use self::language::{ParseError, Request, TerminalRequest};
use self::reader::{Input, Prompt, Reader};
use self::show::{LiveOutput, Screen};
use self::signals::{INTERRUPTED, Signal, Signals};
use self::words::MissingInput;
use crate::app::App;
use crate::backend::open_backend::OpenBackend;
use crate::exit::{self, Failure};
use crate::files::user_directory;
use crate::system::{self, TerminalState};
use crate::terminal::{BOLD, safe, wrap};

/// Runs until the user leaves. Without a terminal, runs the requests on standard input;
/// the exit code then tells whether all of them succeeded.
pub(crate) async fn run(mut app: App) -> Result<ExitCode, Failure> {
    // The greeting shows the location of the files.
    app.spec.quiet = true;
    let opened = app.open().await?;
    let terminal = TerminalState::now();
    let result = serve(&app, &opened, terminal.clone()).await;
    terminal.restore();
    opened.stop().await;
    match result {
        // The reader of the output has closed it.
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
        // The user's input may be to blame.
        result => result.map_err(|error| Failure::from(error).code(exit::FIXABLE)),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

async fn serve(app: &App, opened: &OpenBackend, state: TerminalState) -> anyhow::Result<ExitCode> {
    let terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let dumb = system::variable("TERM").is_none_or(|term| term == "dumb");
    let colour = terminal && !dumb && system::variable("NO_COLOR").is_none();
    let screen = Screen::new(terminal, colour);
    let toolset = app.toolset(opened);
    let toolset = if terminal {
        toolset.approver(ask::TerminalApprover::new(screen))
    } else {
        toolset.approver(ask::no_terminal(app.approval_advice(opened)))
    };
    #[cfg(unix)]
    let shells = shell::TerminalShells {
        backend: Arc::clone(&opened.backend),
        guarded: Guarded::builder(Arc::clone(&opened.backend))
            .policy(app.policy(opened))
            .approver(ask::TerminalApprover::new(screen))
            .build(),
    };
    let chat = toolset.build()?.conversation("console");
    let without_prompts = chat.approver(Strict);
    let backend = safe::text(&app.spec.text());
    if terminal {
        let name = screen.paint(BOLD, concat!("agentbox ", env!("CARGO_PKG_VERSION")));
        let greeting = format!(
            "{name}: the tools of an AI agent, in your hands\nFiles: {backend}\nType help; Tab completes; Ctrl-D leaves.\n"
        );
        screen.print(&wrap::lines(&greeting, screen.width()))?;
    }
    let prompt = terminal.then(|| Prompt {
        text: format!("{}> ", backend.split(':').next().unwrap_or(&backend)),
        colour: screen.colour,
        history: user_directory("XDG_STATE_HOME", ".local/state").map(|own| own.join("history")),
        chat: without_prompts.clone(),
    });
    let reader = Reader::start(prompt).context("no thread can be started to read input")?;
    let console = Console {
        screen,
        chat,
        without_prompts,
        #[cfg(unix)]
        shells,
        signals: Signals::listen(state).context("signals cannot be received")?,
        code: exit::SUCCESS,
    };
    console.serve(reader).await
}

/// The next step after a request. A break drops the rest of the input that was typed at
/// once, and with an exit code ends the program.
type Next = ControlFlow<Option<ExitCode>>;

/// The user's conversation with the tools.
struct Console {
    screen: Screen,
    chat: Chat,
    /// A second conversation, in which anything that needs approval is refused.
    without_prompts: Chat,
    #[cfg(unix)]
    shells: shell::TerminalShells,
    signals: Signals,
    /// The highest exit code of all failures.
    code: u8,
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
                    if let Break(Some(code)) = self.execute(&text, &tools).await? {
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

    /// Returns the exit code: success on a terminal, where the user has seen failures.
    fn code(&self) -> ExitCode {
        ExitCode::from(if self.screen.terminal {
            exit::SUCCESS
        } else {
            self.code
        })
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
                    return Ok(Continue(()));
                }
            };
            rest = rest.get(used..).unwrap_or_default();
            match request {
                Request::Nothing => {}
                Request::Help(about) => self.help(about.as_deref(), tools)?,
                Request::Tools => self.screen.print(&help::list(tools, self.screen))?,
                Request::Quit => return Ok(Break(Some(self.code()))),
                Request::Terminal(request) => {
                    let next = self.on_terminal(request).await?;
                    if next.is_break() {
                        return Ok(next);
                    }
                }
                Request::Call { tool, arguments } => {
                    let next = match self.full_screen(&tool, &arguments) {
                        Some(request) => self.on_terminal(request).await?,
                        None => self.call(&tool, arguments, tools).await?,
                    };
                    if next.is_break() {
                        return Ok(next);
                    }
                }
            }
        }
        Ok(Continue(()))
    }

    fn help(&mut self, about: Option<&str>, tools: &Definitions) -> io::Result<()> {
        let Some(name) = about else {
            return self.screen.print(&help::all(tools, self.screen));
        };
        if let Some(text) = help::tool(name, tools, self.screen) {
            return self.screen.print(&text);
        }
        if language::BUILTINS.contains(&name) {
            return self.screen.print(&help::all(tools, self.screen));
        }
        self.failed(exit::FIXABLE);
        let suggestion = language::suggestion(name, tools);
        let text =
            format!("there is no tool '{name}'{suggestion}; type tools to see those there are");
        self.screen.print_error(&text)
    }

    /// Returns the request for a command that needs a terminal, if there is one for it.
    #[cfg(unix)]
    fn full_screen(&self, tool: &str, arguments: &Value) -> Option<TerminalRequest> {
        let fields = arguments.as_object().filter(|fields| fields.len() == 1)?;
        let line = fields.get("command")?.as_str()?;
        let takes_it = tool == "execute" && shell::is_full_screen(line);
        (takes_it && self.screen.terminal && self.shells.has_terminals())
            .then(|| TerminalRequest::Run(Some(line.to_owned())))
    }

    #[cfg(not(unix))]
    fn full_screen(&self, _: &str, _: &Value) -> Option<TerminalRequest> {
        None
    }

    /// Gives the user's terminal to a shell in the sandbox.
    async fn on_terminal(&mut self, request: TerminalRequest) -> anyhow::Result<Next> {
        if !self.screen.terminal || cfg!(not(unix)) {
            self.failed(exit::FIXABLE);
            let text = "this needs a terminal on Linux or macOS; use run, bg and out without one";
            self.screen.print_error(text)?;
            return Ok(Continue(()));
        }
        #[cfg(unix)]
        {
            let attached = match &request {
                TerminalRequest::Attach(id) => Some(safe::text(id)),
                TerminalRequest::Run(_) => None,
            };
            let talking = async {
                match request {
                    TerminalRequest::Run(line) => self.shells.run(line).await,
                    TerminalRequest::Attach(id) => self.shells.attach(&id).await,
                }
            };
            let talked = tokio::select! {
                talked = talking => talked,
                signal = self.signals.next() => match signal {
                    Signal::Interrupt => {
                        let text = match attached {
                            Some(id) => format!("\nbackground shell {id} runs on"),
                            None => "\ncancelled".to_owned(),
                        };
                        self.screen.print(&text)?;
                        return Ok(Break(None));
                    }
                    Signal::Leave(code) => return Ok(Break(Some(code.into()))),
                },
            };
            match talked {
                Ok(Some(said)) => self.screen.print(&said)?,
                Ok(None) => {}
                Err(failure) => self.screen.print_error(&safe::text(&failure.to_string()))?,
            }
        }
        #[cfg(not(unix))]
        drop(request);
        Ok(Continue(()))
    }

    async fn call(
        &mut self,
        tool: &str,
        arguments: Value,
        tools: &Definitions,
    ) -> anyhow::Result<Next> {
        let live = LiveOutput::new(self.screen, Arc::clone(&self.signals.interrupted));
        let (chat, without_prompts, screen) = (&self.chat, &self.without_prompts, self.screen);
        let observer = Arc::<LiveOutput>::clone(&live);
        let calling = async {
            let preview = preview(without_prompts, tool, &arguments, tools).await;
            let reply = if screen.terminal {
                chat.call_observed(tool, arguments, observer).await
            } else {
                chat.call(tool, arguments).await
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
                // The preview counts if it matches the actual change.
                let same = |(_, position): &&(String, Value)| {
                    reply.is_success() && change_position(&reply) == *position
                };
                let diff = preview.as_ref().filter(same).map(|(diff, _)| &**diff);
                self.screen.reply(&reply, &live, diff)?;
                Ok(Continue(()))
            }
            Err(Signal::Interrupt) => {
                self.failed(exit::FIXABLE);
                live.finish()?;
                self.screen.print_error("\ncancelled")?;
                let ends = !self.screen.terminal;
                Ok(Break(ends.then(|| INTERRUPTED.into())))
            }
            Err(Signal::Leave(code)) => Ok(Break(Some(code.into()))),
        }
    }
}

fn parse_error_text(error: ParseError) -> String {
    match error {
        ParseError::Invalid(why) => why,
        ParseError::Incomplete(MissingInput::Char(c)) => {
            format!("the command ends before its closing {c}; add it")
        }
        ParseError::Incomplete(MissingInput::Line(tag)) => {
            format!("the text ends before the line {tag}; add it")
        }
        ParseError::Incomplete(MissingInput::Any) => {
            "the command ends with a backslash; add what follows, or leave it out".to_owned()
        }
    }
}

/// Returns the number and position of the changes.
fn change_position(reply: &console_tools::Reply) -> Value {
    let field = |name: &str| reply.structured.as_ref()?.get(name).cloned();
    Value::from_iter([field("replacements"), field("first_line")].map(Option::unwrap_or_default))
}

/// Returns the diff and position of an edit by a dry run: a tool may not tell the diff.
async fn preview(
    without_prompts: &Chat,
    tool: &str,
    arguments: &Value,
    tools: &Definitions,
) -> Option<(String, Value)> {
    let schema = &tools.get(tool)?.input_schema;
    schema.pointer("/properties/dry_run")?;
    let mut arguments = arguments.clone();
    let fields = arguments.as_object_mut()?;
    fields.insert("dry_run".to_owned(), Value::Bool(true));
    let reply = without_prompts.call(tool, arguments).await;
    let diff = show::string(&reply, "diff")?.to_owned();
    let position = change_position(&reply);
    reply.is_success().then_some((diff, position))
}
