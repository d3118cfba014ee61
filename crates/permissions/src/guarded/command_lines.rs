//! Judges command lines on dedicated threads.
//!
//! A line is hostile input and may use the whole budget for judging. The caller's runtime
//! must not block for that long. Long lines have separate threads, so that short ones do
//! not wait behind them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};

use backend_core::ops::LsOptions;
use backend_core::sync::lock;
use backend_core::{Backend, CommandPaths, Error, Result, TracedPath, VPath};
use command_line::glob::name_matches;
use command_line::{CommandContext, NamedPath, PathUse, StepBudget};
use futures_channel::oneshot;

use super::guard::Guarded;
use crate::policy::CommandJudgement;
use crate::{Access, Action, Layer, Policy, Reason, Verdict, Vote};

/// Number of threads for short lines, and for long lines.
const THREADS: usize = 2;

/// Maximum length in bytes of a short line.
const SHORT_BYTES: usize = 2 * 1024;

/// Maximum number of paths of one line whose links are followed.
const MAX_TRACED: usize = 1024;

/// Maximum number of entries examined for a line, and of paths that one glob expands to.
const MAX_ENTRIES: usize = 10_000;
const MAX_PATHS: usize = 1_024;

type Job = Box<dyn FnOnce() + Send>;

/// A command line and the context it is to run in.
#[derive(Debug, Clone)]
pub(super) struct CommandRequest {
    pub(super) line: String,
    pub(super) directory: VPath,
    pub(super) environment: Vec<(String, String)>,
    pub(super) names: CommandPaths,
}

impl CommandRequest {
    fn judge(&self, policy: &Policy, stop: &AtomicBool) -> CommandJudgement {
        let context = CommandContext::new(&self.line, &self.directory)
            .environment(&self.environment)
            .names(&self.names)
            .stop(stop);
        policy.judge_command(context)
    }
}

/// Tells the worker thread on drop that the caller no longer waits.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Judges a line on a worker thread. Dropping the future stops the work.
async fn judge(policy: &Policy, request: CommandRequest) -> Result<CommandJudgement> {
    let stop = Arc::new(AtomicBool::new(false));
    let _cancel = CancelOnDrop(Arc::clone(&stop));
    let (sender, judged) = oneshot::channel();
    let queue = queue(request.line.len() > SHORT_BYTES)?;
    let policy = policy.clone();
    let job: Job = Box::new(move || {
        if !stop.load(Ordering::Relaxed) {
            // The caller may be gone.
            let _ = sender.send(request.judge(&policy, &stop));
        }
    });
    let failed = || Error::internal("judging a command failed; please report this");
    queue.send(job).map_err(|_| failed())?;
    judged.await.map_err(|_| failed())
}

/// Returns the queue for long or short lines. The first line starts its threads.
fn queue(long: bool) -> Result<&'static Sender<Job>> {
    static SHORT: OnceLock<Sender<Job>> = OnceLock::new();
    static LONG: OnceLock<Sender<Job>> = OnceLock::new();
    let queue = if long { &LONG } else { &SHORT };
    if let Some(jobs) = queue.get() {
        return Ok(jobs);
    }
    let started = start().map_err(|source| {
        let message = "no thread could be started to judge commands; raise the process limit";
        Error::unavailable(message).with_source(source)
    })?;
    Ok(queue.get_or_init(|| started))
}

fn start() -> std::io::Result<Sender<Job>> {
    let (jobs, waiting) = channel::<Job>();
    let waiting = Arc::new(Mutex::new(waiting));
    for _ in 0..THREADS {
        let waiting = Arc::clone(&waiting);
        std::thread::Builder::new()
            .name("judge-commands".into())
            .spawn(move || work(&waiting))?;
    }
    Ok(jobs)
}

fn work(waiting: &Mutex<Receiver<Job>>) {
    loop {
        let Ok(job) = lock(waiting).recv() else {
            return;
        };
        // If the job panics, its sender is dropped, which tells the caller.
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

impl<B: Backend> Guarded<B> {
    /// Collects the context needed to judge a line.
    pub(super) fn command_request(
        &self,
        line: &str,
        directory: &VPath,
        environment: &[(String, String)],
    ) -> CommandRequest {
        let sandbox = self.backend().as_sandbox();
        CommandRequest {
            line: line.to_owned(),
            directory: directory.clone(),
            environment: environment.to_vec(),
            names: sandbox.map_or_else(CommandPaths::default, |sandbox| {
                sandbox.command_names(directory)
            }),
        }
    }

    /// Judges a line by its text alone.
    pub(super) async fn judge_text(&self, request: CommandRequest) -> Result<CommandJudgement> {
        if !self.policy.judges_paths() {
            return Ok(request.judge(&self.policy, &AtomicBool::new(false)));
        }
        judge(&self.policy, request).await
    }

    /// Judges a line, the paths its globs expand to, and where links in them lead.
    pub(super) async fn judge_line(&self, request: CommandRequest) -> Result<CommandJudgement> {
        let (directory, line) = (request.directory.clone(), request.line.clone());
        let mut judged = self.judge_text(request).await?;
        let sandbox = self.backend().as_sandbox();
        let Some(sandbox) = sandbox.filter(|_| judged.verdict.action() != Action::Deny) else {
            return Ok(judged);
        };
        let budget = StepBudget::new(None);
        let (mut more, mut entries) = (Vec::new(), MAX_ENTRIES);
        let mut named = Vec::new();
        let mut too_many = false;
        // Paths from expanded globs and from links.
        let mut others = Vec::new();
        for path in judged.paths.iter().filter(|path| path.spelled.is_some()) {
            if path.glob {
                let expanded = self.expand(path, &mut entries).await;
                too_many |= expanded.is_none();
                for path in expanded.unwrap_or_default() {
                    more.extend(self.policy.judge_path(&path, &budget));
                    others.push(path.clone());
                    named.push(path);
                }
            }
            named.push(path.clone());
        }
        let mut spelled: Vec<String> = named.iter().filter_map(|it| it.spelled.clone()).collect();
        spelled.sort_unstable();
        spelled.dedup();
        too_many |= spelled.len() > MAX_TRACED;
        spelled.truncate(MAX_TRACED);
        if !spelled.is_empty() {
            let reached = sandbox.trace(&directory, &spelled).await?;
            for named in &named {
                let at = named.spelled.as_ref();
                let at = at.and_then(|it| spelled.binary_search(it).ok());
                let led = at.and_then(|at| link_target(named, reached.get(at)?));
                if let Some(led) = led {
                    more.extend(self.policy.judge_path(&led, &budget));
                    others.push(led);
                }
            }
        }
        let (policy, commands) = (&self.policy, &judged.commands);
        more.extend(policy.judge_protected(commands, &others, &line, &directory));
        if too_many || budget.is_spent() {
            let why = Reason::Text("it names too many files to check each one".into());
            let vote = Vote::new(Layer::Command, Action::Ask, why);
            more.push((Access::command(line), Verdict::from(vote)));
        }
        for (_, verdict) in &more {
            judged.verdict = judged.verdict.and_all(verdict.clone());
        }
        judged.parts.extend(more);
        Ok(judged)
    }

    /// Returns the paths that a glob matches now, or `None` if there are too many. `budget`
    /// is the number of entries that may still be examined for the line.
    async fn expand(&self, glob: &NamedPath, budget: &mut usize) -> Option<Vec<NamedPath>> {
        let start = glob
            .path
            .components()
            .filter(|name| !name.is_empty())
            .count();
        let names = glob.text.split('/').filter(|name| !name.is_empty());
        let mut found = vec![glob.path.clone()];
        for name in names.skip(start) {
            let mut next = Vec::new();
            for directory in &found {
                if name.contains(['*', '?', '[']) {
                    next.extend(self.matching_entries(directory, name, budget).await?);
                } else {
                    next.extend(directory.child(name));
                }
            }
            if next.len() > MAX_PATHS {
                return None;
            }
            found = next;
        }
        let named = |path: VPath| {
            let rest = path.strip_prefix(&glob.path).unwrap_or_default();
            let spelled = glob.spelled.as_ref().map(|above| format!("{above}/{rest}"));
            let mut named = glob.clone();
            named.text = path.to_string();
            named.glob = false;
            named.spelled = spelled;
            named.path = path;
            named
        };
        Some(found.into_iter().map(named).collect())
    }

    /// Returns the entries of `directory` that match a name with wildcards. A directory
    /// that cannot be listed yields no matches, as in the shell.
    async fn matching_entries(
        &self,
        directory: &VPath,
        name: &str,
        budget: &mut usize,
    ) -> Option<Vec<VPath>> {
        let mut options = LsOptions::default();
        options.limit = MAX_ENTRIES;
        let Ok(listing) = self.backend().ls(directory, options).await else {
            return Some(Vec::new());
        };
        *budget = budget.checked_sub(listing.entries.len() + 1)?;
        if listing.is_truncated() {
            return None;
        }
        let matches = |path: &VPath| path.file_name().is_some_and(|it| name_matches(name, it));
        let paths = listing.entries.into_iter().map(|entry| entry.path);
        Some(
            paths
                .filter(|path| path != directory && matches(path))
                .collect(),
        )
    }
}

/// Returns the path that links lead to, if it differs from the named one.
fn link_target(named: &NamedPath, reached: &TracedPath) -> Option<NamedPath> {
    let path = match reached {
        TracedPath::Inside(path) => path.clone(),
        // Programs are usually outside the backend.
        TracedPath::Outside(_) if named.usage == PathUse::Run => return None,
        TracedPath::Outside(path) => VPath::parse(path).ok()?,
        _ => return None,
    };
    if path == named.path {
        return None;
    }
    let mut led = named.clone();
    led.path = path;
    led.glob = false;
    led.inside &= matches!(reached, TracedPath::Inside(_));
    Some(led)
}
