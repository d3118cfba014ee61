//! [`Sandbox`]: its record, its state, and the parts of its toolbox.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::id;
use crate::root::Root;
use crate::sessions::Sessions;
use crate::terminals::Terminals;

/// Fields that a list does not show.
const DETAILS: &[&str] = &["buildInfo", "env", "secrets", "volumes"];

/// A sandbox, also after its end.
#[derive(Debug)]
pub(crate) struct Sandbox {
    pub(crate) id: String,
    /// Opens its previews.
    pub(crate) token: String,
    pub(crate) root: Root,
    pub(crate) sessions: Sessions,
    pub(crate) terminals: Terminals,
    record: Mutex<Record>,
}

#[derive(Debug)]
struct Record {
    /// The fields as the API shows them.
    document: Map<String, Value>,
    /// The number of changes of its state.
    n_changes: u64,
}

impl Sandbox {
    /// Creates a sandbox from its fields, in their state.
    pub(crate) async fn create(
        id: String,
        document: Map<String, Value>,
        environment: BTreeMap<String, String>,
    ) -> io::Result<Self> {
        Ok(Self {
            root: Root::create(&id, environment).await?,
            token: id::random(),
            sessions: Sessions::default(),
            terminals: Terminals::default(),
            record: Mutex::new(Record {
                document,
                n_changes: 0,
            }),
            id,
        })
    }

    /// Returns all fields.
    pub(crate) fn document(&self) -> Value {
        Value::Object(self.record().document.clone())
    }

    /// Returns the fields that a list shows.
    pub(crate) fn item(&self) -> Value {
        let mut document = self.record().document.clone();
        document.retain(|key, _| !DETAILS.contains(&key.as_str()));
        Value::Object(document)
    }

    /// Returns a field, or `null`.
    pub(crate) fn get(&self, key: &str) -> Value {
        let record = self.record();
        record.document.get(key).cloned().unwrap_or_default()
    }

    /// Returns a field that is text, or an empty text.
    pub(crate) fn text(&self, key: &str) -> String {
        self.get(key).as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn state(&self) -> String {
        self.text("state")
    }

    /// Whether an id or a name is that of this sandbox, and it is not destroyed.
    pub(crate) fn is(&self, id_or_name: &str) -> bool {
        let is_named = self.id == id_or_name || self.text("name") == id_or_name;
        is_named && self.state() != "destroyed"
    }

    /// Sets a field.
    pub(crate) fn set(&self, key: &str, value: Value) {
        self.record().document.insert(key.to_owned(), value);
    }

    /// Notes that the sandbox is in use.
    pub(crate) fn touch(&self) {
        self.set("lastActivityAt", json!(Timestamp::now().to_string()));
    }

    /// Sets its state, and returns the number of the change.
    pub(crate) fn set_state(&self, state: &str) -> u64 {
        let mut record = self.record();
        record.set_state(state);
        record.n_changes
    }

    /// Sets its state unless it was changed after the change with this number.
    pub(crate) fn set_state_after(&self, change: u64, state: &str) {
        let mut record = self.record();
        if record.n_changes == change {
            record.set_state(state);
        }
    }

    /// Ends all its processes.
    pub(crate) async fn end_processes(&self) {
        self.root.end().await;
        self.sessions.clear();
        self.terminals.clear();
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    fn set_state(&mut self, state: &str) {
        self.n_changes += 1;
        self.document.insert("state".to_owned(), json!(state));
        let now = Timestamp::now().to_string();
        self.document.insert("updatedAt".to_owned(), json!(now));
    }
}
