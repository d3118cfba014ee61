//! [`Guarded`] as a sandbox: commands, live output, background shells.

use std::sync::MutexGuard;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use backend_core::limits::SHELLS;
use backend_core::ops::{
    Command, ExecuteOutcome, ResolveOptions, ShellId, ShellInfo, ShellOutput, Signal, StopMode,
    TerminalSize,
};
use backend_core::{
    Backend, CommandPaths, Connection, Enforcement, Error, ErrorKind, EventStream, Operation,
    Quoted, Result, Sandbox, TracedPath, VPath,
};
use bytes::Bytes;
use command_line::{MAX_STEPS, StepBudget};

use super::gate::Gate;
use super::guard::Guarded;
use super::shells::{InputKind, ShellInput, Shells};
use crate::approval::{Effect, Question};
use crate::policy::CommandJudgement;
use crate::{Access, Action, Layer, Op, Reason, Target, Verdict, Vote};

impl<B> Guarded<B> {
    pub(super) fn shells(&self) -> MutexGuard<'_, Shells> {
        backend_core::sync::lock(&self.shared.shells)
    }
}

impl<B: Backend> Guarded<B> {
    /// Returns the sandbox behind the guard.
    fn sandbox(&self, operation: Operation) -> Result<&dyn Sandbox> {
        self.backend().as_sandbox().ok_or_else(|| {
            Error::no_commands()
                .during(operation)
                .on(self.backend().info().name)
        })
    }

    /// Judges a command, and asks for approval if needed.
    async fn authorize_command(&self, operation: Operation, command: &Command) -> Result<()> {
        let mut gate = Gate::for_command(self, operation);
        command.check().map_err(|error| gate.failed(error))?;
        let here = self.backend().working_dir();
        let directory = command.directory.as_ref().unwrap_or(&here);
        let target = shown(command, &here);
        let access = Access::command(&*target);
        self.check_level(&mut gate, access, command.view.required)?;
        self.check_command(&mut gate, command, directory, &target)
            .await?;
        if let Some(resolved) = self.resolved_directory(command).await {
            // Relative paths start at the resolved directory.
            self.check_command(&mut gate, command, &resolved, &target)
                .await?;
        }
        if command.terminal.is_none() {
            return gate.ask(Effect::command(target)).await;
        }
        let verdict = self.policy.judge_terminal();
        gate.check_verdict(Access::terminal(&*target), verdict, None)?;
        gate.ask(Effect::terminal(target)).await
    }

    /// Judges attaching to a shell, and asks for approval if needed. Bytes that are typed
    /// through the connection are not judged: they edit lines and answer programs, and
    /// only the terminal knows what they make up.
    async fn authorize_attach(&self, id: &ShellId) -> Result<()> {
        let mut gate = Gate::for_command(self, Operation::Shell);
        let name = self.tool.as_deref().unwrap_or("shell");
        gate.check_verdict(Access::command(name), self.shells_verdict(), None)?;
        let Some(shell) = self.shell_input(id).await? else {
            return Err(gate.failed(no_shell(id)));
        };
        let access = Access::terminal(&*shell.line);
        self.check_shell_level(&mut gate, access.clone(), &shell)?;
        let verdict = self.policy.judge_terminal();
        gate.check_verdict(access, verdict, None)?;
        gate.ask(Effect::attach(id.as_str(), shell.line)).await
    }

    /// Returns the resolved directory of the command, if links lead it elsewhere.
    async fn resolved_directory(&self, command: &Command) -> Option<VPath> {
        let directory = command.directory.as_ref()?;
        if !self.policy.judges_paths() || !self.backend().info().capabilities.links {
            return None;
        }
        let options = ResolveOptions::default();
        let resolved = self.backend().resolve(directory, options).await.ok()?;
        (resolved != *directory).then_some(resolved)
    }

    async fn check_command(
        &self,
        gate: &mut Gate<'_, B>,
        command: &Command,
        directory: &VPath,
        target: &str,
    ) -> Result<()> {
        let request = self.command_request(&command.line, directory, &command.environment);
        let judged = self.judge_line(request).await;
        check_parts(gate, judged.map_err(|error| gate.failed(error))?, target)
    }

    /// Returns the verdict about using shells: a denial if nothing may be executed.
    fn shells_verdict(&self) -> Verdict {
        match self.policy.most_lenient(Op::Execute) {
            Action::Deny => Vote::new(Layer::Command, Action::Deny, Reason::Unspecified).into(),
            Action::Allow | Action::Ask => Vote::abstain(Layer::Command).into(),
        }
    }

    /// Judges reading, listing and ending shells.
    async fn authorize_shells(&self) -> Result<()> {
        let mut gate = Gate::for_command(self, Operation::Shell);
        let name = self.tool.as_deref().unwrap_or("shell");
        gate.check_verdict(Access::command(name), self.shells_verdict(), None)?;
        gate.ask(Effect::None).await
    }

    /// Judges input for a shell, and asks for approval if needed.
    async fn authorize_input(&self, id: &ShellId, input: &Bytes) -> Result<(String, String)> {
        let text = String::from_utf8_lossy(input).into_owned();
        let mut gate = Gate::for_command(self, Operation::Shell);
        gate.check_verdict(Access::command(&*text), self.shells_verdict(), None)?;
        if self.policy.view().required > Enforcement::default() {
            let shell = self.shell_input(id).await?;
            let shell = shell.ok_or_else(|| gate.failed(no_shell(id)))?;
            self.check_shell_level(&mut gate, Access::command(&*text), &shell)?;
        }
        if !self.policy.judges_paths() {
            gate.ask(Effect::command(&*text)).await?;
            return Ok((String::new(), text));
        }
        let Some(earlier) = self.shell_input(id).await? else {
            // Once the sandbox looks, the shell may exist, and its input would go unjudged.
            return Err(gate.failed(no_shell(id)));
        };
        let text = earlier.as_read(text);
        let kind = InputKind::of(&earlier.line);
        if let (InputKind::Interpreter | InputKind::Unknown, Some(rules)) =
            (kind, self.policy.rules())
        {
            let opaque = rules.ruleset().execute.as_ref().map(|rules| rules.opaque);
            let action = opaque.unwrap_or(Action::Ask);
            let why = Reason::Text("it is code for another interpreter".into());
            let vote = Vote::new(Layer::Command, action, why);
            gate.check_verdict(Access::command(&*text), vote.into(), None)?;
            self.check_code(&mut gate, &text).await?;
        }
        if matches!(kind, InputKind::Shell | InputKind::Unknown) {
            self.check_lines(&mut gate, &earlier, input, &text).await?;
        }
        gate.ask(Effect::command(&*text)).await?;
        Ok((earlier.line, text))
    }

    /// Judges the paths that occur in code.
    async fn check_code(&self, gate: &mut Gate<'_, B>, text: &str) -> Result<()> {
        let here = self.backend().working_dir();
        // Parse it like a program that takes code as an argument.
        let line = format!("python3 -c '{}'", text.replace('\'', "'\\''"));
        let judged = self
            .judge_text(self.command_request(&line, &here, &[]))
            .await;
        let judged = judged.map_err(|error| gate.failed(error))?;
        let budget = StepBudget::new(None);
        for path in &judged.paths {
            for (access, verdict) in self.policy.judge_path(path, &budget) {
                gate.check_verdict(access, verdict, None)?;
            }
        }
        Ok(())
    }

    /// Judges lines for a shell, alone and together with all earlier input, because an
    /// earlier `cd` or variable still applies. Earlier input was approved, so only new
    /// objections count for the combined text.
    async fn check_lines(
        &self,
        gate: &mut Gate<'_, B>,
        earlier: &ShellInput,
        input: &Bytes,
        text: &str,
    ) -> Result<()> {
        let here = self.backend().working_dir();
        let judge = async |line: &str| {
            let judged = self
                .judge_line(self.command_request(line, &here, &[]))
                .await;
            judged.map_err(|error| gate.failed(error))
        };
        let alone = judge(text).await?;
        let (mut before, mut whole) = (Action::Allow, None);
        if !earlier.text.is_empty() {
            before = judge(&earlier.text).await?.verdict.action();
            whole = Some(judge(&format!("{}{text}", earlier.text)).await?);
        }
        // The combined text may exceed the limit although no part of it did.
        let given_up = |judged: &CommandJudgement| judged.steps >= MAX_STEPS;
        let too_much = whole.as_ref().is_some_and(given_up) && !given_up(&alone);
        // Other control characters edit the line in a terminal, and a tab completes it, so
        // the line that runs is not the one that was typed.
        let edits = |c: char| c.is_control() && c != '\n' && (c != '\t' || earlier.terminal);
        let complete = text.ends_with('\n') && !text.ends_with("\\\n") && !text.contains(edits);
        // Where terminals are allowed, so are their keys.
        let keys = earlier.terminal && self.policy.judge_terminal().action() == Action::Allow;
        let unknown = !complete || too_much || earlier.overflowed || str::from_utf8(input).is_err();
        if unknown && !keys {
            let why =
                Reason::Text("it is not a complete line, or the earlier input is not known".into());
            let vote = Vote::new(Layer::Command, Action::Ask, why);
            gate.check_verdict(Access::command(text), vote.into(), None)?;
        }
        if let Some(whole) = whole.filter(|_| !too_much) {
            let action = whole.verdict.action();
            if action == Action::Deny || action > before {
                check_parts(gate, whole, text)?;
            }
        }
        check_parts(gate, alone, text)
    }

    /// Returns the command line and earlier input of a shell.
    async fn shell_input(&self, id: &ShellId) -> Result<Option<ShellInput>> {
        if let Some(earlier) = self.shells().get(id) {
            return Ok(Some(earlier));
        }
        // The shell was not started through this guard.
        let listed = self.sandbox(Operation::Shell)?.shell_list().await?;
        let found = listed.into_iter().find(|shell| shell.id == *id);
        Ok(found.map(|shell| ShellInput {
            terminal: shell.terminal.is_some(),
            line: shell.line,
            overflowed: true,
            ..ShellInput::default()
        }))
    }

    /// Remembers a shell, and forgets those that no longer exist.
    async fn remember_shell(&self, shell: &ShellInfo) {
        let (id, line) = (shell.id.clone(), shell.line.clone());
        let policy = self.policy.id();
        self.shells()
            .started(id, line, shell.terminal.is_some(), policy);
        if self.shells().len() <= 2 * SHELLS {
            return;
        }
        let Ok(sandbox) = self.sandbox(Operation::Shell) else {
            return;
        };
        if let Ok(listed) = sandbox.shell_list().await {
            let there: Vec<ShellId> = listed.into_iter().map(|shell| shell.id).collect();
            self.shells().retain(&there);
        }
    }
}

fn no_shell(id: &ShellId) -> Error {
    let id = Quoted::new(id.as_str());
    Error::new(
        ErrorKind::NotFound,
        format!("there is no background shell {id}; list them to see which there are"),
    )
}

/// Judges a command line and the paths it names.
fn check_parts<B: Backend>(
    gate: &mut Gate<'_, B>,
    judged: CommandJudgement,
    target: &str,
) -> Result<()> {
    for (mut access, verdict) in judged.parts {
        if let Target::Command(line) = &mut access.target {
            target.clone_into(line);
        }
        gate.check_verdict(access, verdict, None)?;
    }
    Ok(())
}

/// Returns the command line with its directory and environment, so that an answer about
/// the bare line does not apply to the same line elsewhere.
fn shown(command: &Command, here: &VPath) -> String {
    let mut text = String::new();
    if let Some(directory) = command.directory.as_ref().filter(|dir| *dir != here) {
        text.push_str(&format!("cd {:?} && ", directory.as_str()));
    }
    for (name, value) in &command.environment {
        text.push_str(&format!("{name}={value:?} "));
    }
    text.push_str(&command.line);
    text
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<B: Backend> Sandbox for Guarded<B> {
    fn id(&self) -> String {
        let sandbox = self.backend().as_sandbox();
        sandbox.map(Sandbox::id).unwrap_or_default()
    }

    async fn start(&self) -> Result<()> {
        self.sandbox(Operation::Start)?.start().await
    }

    async fn stop(&self, mode: StopMode) -> Result<()> {
        self.sandbox(Operation::Stop)?.stop(mode).await
    }

    async fn is_alive(&self) -> Result<bool> {
        self.sandbox(Operation::Start)?.is_alive().await
    }

    fn last_activity(&self) -> SystemTime {
        let sandbox = self.backend().as_sandbox();
        sandbox.map_or(SystemTime::UNIX_EPOCH, Sandbox::last_activity)
    }

    fn command_names(&self, directory: &VPath) -> CommandPaths {
        let sandbox = self.backend().as_sandbox();
        sandbox.map_or_else(CommandPaths::default, |sandbox| {
            sandbox.command_names(directory)
        })
    }

    /// Reveals only where links lead, and only to callers that may run commands.
    async fn trace(&self, directory: &VPath, paths: &[String]) -> Result<Vec<TracedPath>> {
        self.authorize_shells().await?;
        let sandbox = self.sandbox(Operation::Execute)?;
        sandbox.trace(directory, paths).await
    }

    async fn execute(&self, command: Command) -> Result<ExecuteOutcome> {
        let sandbox = self.sandbox(Operation::Execute)?;
        let command = self.restricted(command);
        self.authorize_command(Operation::Execute, &command).await?;
        sandbox.execute(command).await
    }

    async fn stream(&self, command: Command) -> Result<EventStream> {
        let sandbox = self.sandbox(Operation::Stream)?;
        let command = self.restricted(command);
        self.authorize_command(Operation::Stream, &command).await?;
        sandbox.stream(command).await
    }

    async fn shell_start(&self, command: Command) -> Result<ShellInfo> {
        let sandbox = self.sandbox(Operation::Shell)?;
        let command = self.restricted(command);
        self.authorize_command(Operation::Shell, &command).await?;
        let shell = sandbox.shell_start(command).await?;
        self.remember_shell(&shell).await;
        Ok(shell)
    }

    async fn shell_read(&self, id: &ShellId, wait: Duration) -> Result<ShellOutput> {
        self.authorize_shells().await?;
        self.sandbox(Operation::Shell)?.shell_read(id, wait).await
    }

    async fn shell_write(&self, id: &ShellId, input: Option<Bytes>) -> Result<()> {
        let sandbox = self.sandbox(Operation::Shell)?;
        let Some(input) = input else {
            self.authorize_shells().await?;
            return sandbox.shell_write(id, None).await;
        };
        let (line, text) = self.authorize_input(id, &input).await?;
        sandbox.shell_write(id, Some(input)).await?;
        if !line.is_empty() {
            self.shells().record_input(id, &line, &text);
        }
        Ok(())
    }

    async fn shell_kill(&self, id: &ShellId) -> Result<bool> {
        self.authorize_shells().await?;
        let ran = self.sandbox(Operation::Shell)?.shell_kill(id).await?;
        self.shells().ended(id);
        Ok(ran)
    }

    async fn shell_list(&self) -> Result<Vec<ShellInfo>> {
        self.authorize_shells().await?;
        self.sandbox(Operation::Shell)?.shell_list().await
    }

    async fn connect(&self, port: u16) -> Result<Connection> {
        let sandbox = self.sandbox(Operation::Connect)?;
        let mut gate = Gate::for_command(self, Operation::Connect);
        gate.check(Access::port(port), None)?;
        let words = |question: Question| question.description(format!("connect to port {port}"));
        gate.ask_as(Effect::None, words).await?;
        sandbox.connect(port).await
    }

    /// Attaching is an access of its own, which is asked about or denied like opening a
    /// terminal: once it is allowed, everything can be typed.
    async fn shell_attach(&self, id: &ShellId) -> Result<Connection> {
        let sandbox = self.sandbox(Operation::Shell)?;
        self.authorize_attach(id).await?;
        let connection = sandbox.shell_attach(id).await?;
        self.shells().lose_track(id);
        Ok(connection)
    }

    async fn shell_resize(&self, id: &ShellId, size: TerminalSize) -> Result<()> {
        self.authorize_shells().await?;
        let sandbox = self.sandbox(Operation::Shell)?;
        sandbox.shell_resize(id, size).await
    }

    async fn shell_signal(&self, id: &ShellId, signal: Signal) -> Result<()> {
        self.authorize_shells().await?;
        let sandbox = self.sandbox(Operation::Shell)?;
        sandbox.shell_signal(id, signal).await
    }
}
