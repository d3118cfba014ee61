//! The views of a backend's commands, kept by a supervisor and shared by commands with
//! the same rules.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use backend_core::ops::{Command, View};
use backend_core::sync::lock;
use backend_core::{Error, Result};

use super::client::SupervisorClient;
use crate::denied::{Denied, DeniedList, Identity};
use crate::engine;
use crate::fs::RootedFs;
use crate::supervisor::MOST_VIEWS;
use crate::supervisor::protocol::{Masked, With};

/// The most views that are kept without a command in them.
const MOST_IDLE: usize = 8;

/// The time for which a view is kept without a command in it.
const IDLE: Duration = Duration::from_secs(10 * 60);

/// The views of one backend.
#[derive(Debug)]
pub(crate) struct Views {
    fs: Arc<RootedFs>,
    kept: Mutex<Registry>,
    numbers: AtomicU64,
}

#[derive(Debug, Default)]
struct Registry {
    /// The one that was used last comes last.
    views: Vec<Arc<Kept>>,
    /// The denied paths that are known, by rules, in the same order.
    lists: Vec<(View, SharedList)>,
}

type SharedList = Arc<Mutex<DeniedList>>;

/// A view that a supervisor keeps.
#[derive(Debug)]
struct Kept {
    id: u64,
    view: View,
    client: Arc<SupervisorClient>,
    list: SharedList,
    /// Held from the look at the files until the request is sent, so that a later look
    /// is sent later.
    masked: tokio::sync::Mutex<Option<MaskedPaths>>,
    /// Commands in it.
    users: AtomicUsize,
    used: Mutex<Instant>,
    /// Whether nothing starts in it any more.
    is_broken: AtomicBool,
}

type MaskedPaths = HashMap<(Vec<u8>, With), Identity>;

/// A view with a command in it, for as long as this exists.
#[derive(Debug)]
pub(crate) struct InUse(Arc<Kept>);

impl InUse {
    pub(super) fn id(&self) -> u64 {
        self.0.id
    }

    /// Uses the view for no other command.
    pub(super) fn give_up(&self) {
        self.0.is_broken.store(true, Ordering::SeqCst);
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        *lock(&self.0.used) = Instant::now();
        self.0.users.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Views {
    pub(super) fn new(fs: &Arc<RootedFs>) -> Self {
        Self {
            fs: Arc::clone(fs),
            kept: Mutex::default(),
            numbers: AtomicU64::new(1),
        }
    }

    /// Returns the view for a command, with everything masked that is there now.
    pub(super) async fn enter(
        &self,
        client: &Arc<SupervisorClient>,
        command: &Command,
    ) -> Result<InUse> {
        let (entered, forgotten) = self.find(client, &command.view)?;
        for old in forgotten {
            old.client.forget_view(old.id).await?;
        }
        let view = &entered.0;
        let mut masked = view.masked.lock().await;
        let (list, fs) = (Arc::clone(&view.list), Arc::clone(&self.fs));
        let denied = engine::blocking(move || lock(&list).refresh(&fs)).await?;
        let places = missing(masked.as_ref(), &denied);
        if masked.is_none() || !places.is_empty() {
            // A command that is sent later starts behind it.
            drop(client.mask(view.id, places, true).await?);
        }
        *masked = Some(as_masked(denied));
        drop(masked);
        if command.keep_leftovers {
            // What it leaves behind is never known to have ended.
            view.users.fetch_add(1, Ordering::SeqCst);
        }
        Ok(entered)
    }

    /// Finds or adds a view, which then counts as used. Returns the ones to forget, too.
    fn find(&self, client: &Arc<SupervisorClient>, view: &View) -> Result<(InUse, Vec<Arc<Kept>>)> {
        let mut registry = lock(&self.kept);
        // Views end with their supervisor.
        registry
            .views
            .retain(|one| Arc::ptr_eq(&one.client, client));
        let fits = |one: &Arc<Kept>| !one.is_broken() && is_same(&one.view, view);
        let found = registry.views.iter().position(fits);
        let kept = match found.map(|place| registry.views.remove(place)) {
            Some(kept) => kept,
            None => Arc::new(Kept {
                id: self.numbers.fetch_add(1, Ordering::Relaxed),
                view: view.clone(),
                client: Arc::clone(client),
                list: registry.list(view),
                masked: tokio::sync::Mutex::default(),
                users: AtomicUsize::new(0),
                used: Mutex::new(Instant::now()),
                is_broken: AtomicBool::new(false),
            }),
        };
        kept.users.fetch_add(1, Ordering::SeqCst);
        let entered = InUse(Arc::clone(&kept));
        let forgotten = registry.forget_idle();
        if registry.views.len() >= MOST_VIEWS {
            return Err(Error::unavailable(format!(
                "commands with {MOST_VIEWS} different sets of denied paths are running; end some \
                 background shells"
            )));
        }
        registry.views.push(kept);
        Ok((entered, forgotten))
    }

    /// Masks again what was replaced, in views with commands. Returns once it is masked.
    /// May block.
    pub(super) fn mask_again(&self) {
        let views = lock(&self.kept).views.clone();
        let used = views
            .iter()
            .filter(|one| one.users.load(Ordering::SeqCst) > 0);
        let Ok(engine) = engine::handle() else {
            return;
        };
        used.for_each(|view| {
            if let Err(problem) = engine.block_on(view.mask_again(&self.fs)) {
                tracing::warn!(
                    problem,
                    "a view is not up to date, and no other command starts in it"
                );
                view.is_broken.store(true, Ordering::SeqCst);
            }
        });
    }
}

impl Kept {
    fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::SeqCst)
    }

    async fn mask_again(&self, fs: &RootedFs) -> Result<(), String> {
        let mut masked = self.masked.lock().await;
        if masked.is_none() {
            // Its first masks are not sent yet.
            return Ok(());
        }
        let denied = lock(&self.list)
            .refresh(fs)
            .map_err(|error| error.to_string())?;
        let places = missing(masked.as_ref(), &denied);
        if !places.is_empty() {
            let sent = self.client.mask(self.id, places, false).await;
            let answer = sent.map_err(|error| error.to_string())?;
            answer.wait().await.map_or(Ok(()), Err)?;
        }
        *masked = Some(as_masked(denied));
        Ok(())
    }
}

impl Registry {
    /// Returns what is known of the denied paths of a view.
    fn list(&mut self, view: &View) -> SharedList {
        let found = self
            .lists
            .iter()
            .position(|(rules, _)| is_same(rules, view));
        let entry = match found {
            Some(place) => self.lists.remove(place),
            None => (view.clone(), Arc::new(Mutex::new(DeniedList::new(view)))),
        };
        let list = Arc::clone(&entry.1);
        self.lists.push(entry);
        let over = self.lists.len().saturating_sub(MOST_VIEWS);
        self.lists.drain(..over);
        list
    }

    /// Takes out the views that are kept no longer.
    fn forget_idle(&mut self) -> Vec<Arc<Kept>> {
        let is_idle = |one: &Arc<Kept>| one.users.load(Ordering::SeqCst) == 0;
        let idle = self.views.iter().filter(|one| is_idle(one)).count();
        let mut over = idle.saturating_sub(MOST_IDLE - 1);
        let mut forgotten = Vec::new();
        self.views.retain(|one| {
            let is_old = lock(&one.used).elapsed() > IDLE;
            let goes = is_idle(one) && (over > 0 || is_old || one.is_broken());
            if goes {
                over = over.saturating_sub(1);
                forgotten.push(Arc::clone(one));
            }
            !goes
        });
        forgotten
    }
}

/// Whether two views have the same masks.
fn is_same(one: &View, two: &View) -> bool {
    one.deny_read == two.deny_read
        && one.deny_write == two.deny_write
        && one.hard_links == two.hard_links
}

/// Returns what is not masked yet. Directories are mounted on themselves only before
/// the first command starts: one that is in such a directory would be past later masks.
fn missing(masked: Option<&MaskedPaths>, denied: &[Denied]) -> Vec<Masked> {
    let is_missing = |one: &&Denied| match masked {
        None => true,
        Some(_) if one.with == With::Itself => false,
        Some(masked) => masked.get(&(one.path.clone(), one.with)) != Some(&one.identity),
    };
    let missing = denied.iter().filter(is_missing);
    let missing = missing.map(|one| Masked {
        path: one.path.clone(),
        with: one.with,
    });
    missing.collect()
}

fn as_masked(denied: Vec<Denied>) -> MaskedPaths {
    let pairs = denied.into_iter();
    pairs
        .map(|one| ((one.path, one.with), one.identity))
        .collect()
}
