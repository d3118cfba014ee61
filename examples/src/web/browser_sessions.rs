//! [`BrowserSessions`]: the sessions of browsers, with their conversations on disk.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use axum::http::StatusCode;
use backend_core::ops::ContentHash;
use console_tools::Chat;
use permissions::approval::{Unavailable, WithTimeout};
use serde_json::Value;

use super::Conversations;
use super::failure::Failure;
use super::questions::Questions;

/// How long a question waits for its answer.
const ANSWER_TIME: Duration = Duration::from_secs(600);

/// Digits of an id, and of the name of its sandbox.
const DIGITS: usize = 32;

/// One browser session, with the part `O` that only its program has.
#[derive(Debug)]
pub struct BrowserSession<O> {
    /// The name of its sandbox, conversation and log lines. It is a hash of the id: the id
    /// is a secret, which neither commands in the sandbox nor a reader of logs learn.
    pub name: String,
    /// The tools of its conversation.
    pub tools: Chat,
    pub(super) questions: Arc<Questions>,
    /// Locked during a turn, so there is one at a time.
    pub(super) messages: Arc<tokio::sync::Mutex<Vec<Value>>>,
    /// The program's own part.
    pub own: O,
}

type Open<O> = HashMap<String, Arc<BrowserSession<O>>>;

/// The browser sessions.
pub struct BrowserSessions<O> {
    directory: PathBuf,
    limit: usize,
    conversations: Conversations,
    open: Mutex<Open<O>>,
}

impl<O> fmt::Debug for BrowserSessions<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrowserSessions")
            .field("directory", &self.directory)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl<O: Default> BrowserSessions<O> {
    /// Keeps the conversations in this directory, at most `limit` of them.
    pub(super) fn open(
        directory: PathBuf,
        limit: usize,
        conversations: Conversations,
    ) -> io::Result<Self> {
        fs::create_dir_all(&directory)?;
        Ok(Self {
            directory,
            limit,
            conversations,
            open: Mutex::default(),
        })
    }

    /// Begins a session and returns its id.
    pub(super) fn begin(&self) -> Result<String, Failure> {
        // The lock keeps two that begin at once from passing the limit.
        let mut open = self.lock();
        if fs::read_dir(&self.directory)?.count() >= self.limit {
            return Err(Failure::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the server has no room for another session; delete one, or ask for --sessions",
            ));
        }
        let mut random = [0; DIGITS / 2];
        getrandom::fill(&mut random).map_err(io::Error::from)?;
        let id: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let session = self.session(name_of(&id), Vec::new())?;
        save(&self.path(&session.name), &[])?;
        open.insert(session.name.clone(), Arc::new(session));
        Ok(id)
    }

    /// Returns the session of an id, also one of a previous start of the server.
    ///
    /// # Errors
    ///
    /// Returns the response to a request that names no session.
    pub fn find(&self, id: &str) -> Result<Arc<BrowserSession<O>>, Failure> {
        let is_id = id.len() == DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_id {
            return Err(Failure::no_session());
        }
        let name = name_of(id);
        let mut open = self.lock();
        if let Some(session) = open.get(&name) {
            return Ok(Arc::clone(session));
        }
        let stored = match fs::read(self.path(&name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Failure::no_session());
            }
            stored => stored?,
        };
        let messages = serde_json::from_slice(&stored).map_err(io::Error::from)?;
        let session = Arc::new(self.session(name.clone(), messages)?);
        open.insert(name, Arc::clone(&session));
        Ok(session)
    }

    /// Forgets what is in memory of a session that is not in use; the rest is on disk, from
    /// now on for the time that sessions are kept.
    pub(super) fn put_aside(&self, name: &str) {
        let mut open = self.lock();
        let stored = fs::File::options().write(true).open(self.path(name));
        let _ = stored.and_then(|file| file.set_modified(SystemTime::now()));
        let is_unused = |session: &Arc<BrowserSession<O>>| Arc::strong_count(session) == 1;
        if open.get(name).is_some_and(is_unused) {
            open.remove(name);
        }
    }

    /// Returns the names of sessions that are not in memory and were not used for this long.
    pub(super) fn unused_for(&self, time: Duration) -> io::Result<Vec<String>> {
        let open = self.lock();
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry
                .path()
                .file_stem()
                .map(|name| name.to_string_lossy().into_owned());
            let age = entry.metadata()?.modified()?.elapsed().unwrap_or_default();
            names.extend(name.filter(|name| age > time && !open.contains_key(name)));
        }
        Ok(names)
    }

    /// Deletes a conversation.
    pub(super) fn delete(&self, name: &str) -> io::Result<()> {
        self.lock().remove(name);
        fs::remove_file(self.path(name))
    }

    /// Writes a conversation to disk, unless its session was deleted.
    pub(super) fn save(&self, name: &str, messages: &[Value]) -> io::Result<()> {
        let open = self.lock();
        if open.contains_key(name) {
            save(&self.path(name), messages)?;
        }
        Ok(())
    }

    fn session(&self, name: String, messages: Vec<Value>) -> Result<BrowserSession<O>, Failure> {
        let questions = Arc::new(Questions::default());
        let asked = WithTimeout::new(Arc::clone(&questions), ANSWER_TIME);
        let tools = (self.conversations)(&name)
            .map_err(|error| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
        Ok(BrowserSession {
            tools: tools.approver(asked.fallback(Unavailable::Deny)),
            name,
            questions,
            messages: Arc::new(messages.into()),
            own: O::default(),
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }

    fn lock(&self) -> MutexGuard<'_, Open<O>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name_of(id: &str) -> String {
    let mut name = ContentHash::of(id.as_bytes()).to_string();
    name.truncate(DIGITS);
    name
}

/// Writes a conversation: a server that is killed meanwhile leaves the former one.
fn save(path: &Path, messages: &[Value]) -> io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, serde_json::to_vec(messages)?)?;
    fs::rename(new, path)
}
