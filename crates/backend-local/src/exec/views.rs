//! The views of a backend's commands, kept by a supervisor and shared by commands with
//! the same rules.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use backend_core::ops::{Command, View};
use backend_core::sync::lock;
use backend_core::{Error, Result};

use super::client::SupervisorClient;
use crate::denied::{Denied, DeniedList, Identity};
use crate::engine;
use crate::fs::RootedFs;
use crate::supervisor::MOST_VIEWS;
use crate::supervisor::protocol::{Masked, Reply, With};

/// The most views that are kept without a command in them.
const MOST_IDLE: usize = 8;

/// The time for which a view is kept without a command in it.
const IDLE: Duration = Duration::from_secs(10 * 60);

/// Looks at files that keep being moved before the commands that may do it are ended.
const MOST_LOOKS: usize = 8;

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
    masks: tokio::sync::Mutex<Option<Masks>>,
    /// Commands in it.
    users: AtomicUsize,
    /// Their numbers, and those of commands that may have left processes behind. `None`
    /// once they were ended, because what is denied could not be kept from them.
    commands: Mutex<Option<HashSet<u64>>>,
    used: Mutex<Instant>,
    /// Whether nothing starts in it any more.
    is_broken: AtomicBool,
}

/// The masks of a view.
#[derive(Debug, Default)]
struct Masks {
    paths: MaskedPaths,
    /// The list of which everything is masked.
    list: Option<Arc<Vec<Denied>>>,
}

type MaskedPaths = HashMap<(Vec<u8>, With), Identity>;

/// A view with a command in it, for as long as this exists.
#[derive(Debug)]
pub(crate) struct InUse {
    view: Arc<Kept>,
    command: OnceLock<u64>,
    keeps_leftovers: bool,
}

impl InUse {
    pub(super) fn id(&self) -> u64 {
        self.view.id
    }

    /// Notes the number of the command, before it is started.
    pub(super) fn starts(&self, command: u64) -> Result<()> {
        match lock(&self.view.commands).as_mut() {
            Some(commands) => commands.insert(command),
            None => {
                return Err(Error::unavailable(
                    "the command's view was closed while it was starting; run it again",
                ));
            }
        };
        let _ = self.command.set(command);
        Ok(())
    }

    /// Uses the view for no other command.
    pub(super) fn give_up(&self) {
        self.view.is_broken.store(true, Ordering::SeqCst);
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        *lock(&self.view.used) = Instant::now();
        if self.keeps_leftovers {
            // Nothing reports the end of the processes that it leaves behind.
            return;
        }
        if let (Some(commands), Some(command)) =
            (lock(&self.view.commands).as_mut(), self.command.get())
        {
            commands.remove(command);
        }
        self.view.users.fetch_sub(1, Ordering::SeqCst);
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
        loop {
            let (mut entered, forgotten) = self.find(client, &command.view)?;
            for old in forgotten {
                old.client.forget_view(old.id).await?;
            }
            if !self.prepare(&entered).await? {
                entered.give_up();
                continue;
            }
            self.update_others(&entered).await;
            entered.keeps_leftovers = command.keep_leftovers;
            return Ok(entered);
        }
    }

    /// Masks everything that is there now. Returns `false` if the view can be used no
    /// longer.
    async fn prepare(&self, entered: &InUse) -> Result<bool> {
        let view = &entered.view;
        let mut masks = view.masks.lock().await;
        if view.is_broken() {
            return Ok(false);
        }
        let (list, fs) = (Arc::clone(&view.list), Arc::clone(&self.fs));
        let denied = engine::blocking(move || lock(&list).refresh(&fs)).await?;
        let last = masks.as_ref().and_then(|masks| masks.list.as_ref());
        if last.is_some_and(|last| Arc::ptr_eq(last, &denied)) {
            return Ok(true);
        }
        let masked = masks.as_ref().map(|masks| &masks.paths);
        if is_outdated(masked, &denied) {
            return Ok(false);
        }
        let places = missing(masked, &denied);
        if masked.is_none() || !places.is_empty() {
            // A command that is sent later starts behind it.
            drop(view.client.mask(view.id, places, true).await?);
        }
        *masks = Some(Masks {
            paths: as_masked(&denied, masked),
            list: Some(denied),
        });
        Ok(true)
    }

    /// Masks what is there now in views of the same rules in which nothing starts any
    /// more, and something runs.
    async fn update_others(&self, entered: &InUse) {
        let of_same_rules = |one: &&Arc<Kept>| {
            !Arc::ptr_eq(one, &entered.view)
                && one.is_in_use()
                && is_same(&one.view, &entered.view.view)
        };
        let others = lock(&self.kept).views.clone();
        let others: Vec<_> = others.iter().filter(of_same_rules).cloned().collect();
        if others.is_empty() {
            return;
        }
        let fs = Arc::clone(&self.fs);
        let work = move || {
            let engine = engine::handle()?;
            for view in others {
                engine.block_on(view.update(&fs));
            }
            Ok(())
        };
        let _ = engine::blocking(work).await;
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
                list: registry.list(view, &self.fs),
                masks: tokio::sync::Mutex::default(),
                users: AtomicUsize::new(0),
                commands: Mutex::new(Some(HashSet::new())),
                used: Mutex::new(Instant::now()),
                is_broken: AtomicBool::new(false),
            }),
        };
        kept.users.fetch_add(1, Ordering::SeqCst);
        let entered = InUse {
            view: Arc::clone(&kept),
            command: OnceLock::new(),
            keeps_leftovers: false,
        };
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
        let Ok(engine) = engine::handle() else {
            return;
        };
        for view in views.iter().filter(|one| one.is_in_use()) {
            engine.block_on(view.update(&self.fs));
        }
    }
}

impl Kept {
    fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::SeqCst)
    }

    fn is_in_use(&self) -> bool {
        self.users.load(Ordering::SeqCst) > 0
    }

    /// Masks what is there now, or ends the commands in it.
    async fn update(&self, fs: &RootedFs) {
        let mut masks = self.masks.lock().await;
        // If its first masks are not sent yet, they will be those of what is there then.
        if let Some(masks) = masks.as_mut()
            && let Err(problem) = self.mask_again(masks, fs).await
        {
            tracing::warn!(
                problem,
                "what is denied cannot be kept from running commands any more, so they are ended"
            );
            self.close().await;
        }
    }

    async fn mask_again(&self, masks: &mut Masks, fs: &RootedFs) -> Result<(), String> {
        masks.list = None;
        let known = &mut masks.paths;
        let told = |error: Error| error.to_string();
        if self.is_broken() {
            // Not all of it may have been masked.
            known.clear();
        }
        for _ in 0..MOST_LOOKS {
            let denied = lock(&self.list).refresh_running(fs).map_err(told)?;
            let places = missing(Some(known), &denied);
            let keys: Vec<_> = places
                .iter()
                .map(|place| (place.path.clone(), place.with))
                .collect();
            let mut missed = Vec::new();
            if !places.is_empty() {
                let answer = self.client.mask(self.id, places, false).await;
                match answer.map_err(told)?.wait().await {
                    Some(Reply::Masked {
                        problem: Some(problem),
                        ..
                    }) => return Err(problem),
                    Some(Reply::Masked { missed: these, .. }) => missed = these,
                    _ => {}
                }
            }
            *known = as_masked(&denied, Some(known));
            if missed.is_empty() {
                return Ok(());
            }
            for number in missed {
                let key = usize::try_from(number)
                    .ok()
                    .and_then(|number| keys.get(number));
                key.and_then(|key| known.remove(key));
            }
        }
        Err("it is being moved all the time".into())
    }

    /// Ends the commands in it, and lets no other start.
    async fn close(&self) {
        self.is_broken.store(true, Ordering::SeqCst);
        let commands = lock(&self.commands).take().unwrap_or_default();
        // Commands that were sent and have not started do not start after this.
        let _ = self.client.forget_view(self.id).await;
        let mut answers = Vec::new();
        for command in commands {
            answers.extend(self.client.kill(command).await);
        }
        for answer in answers {
            answer.wait().await;
        }
    }
}

impl Registry {
    /// Returns what is known of the denied paths of a view.
    fn list(&mut self, view: &View, fs: &RootedFs) -> SharedList {
        let found = self
            .lists
            .iter()
            .position(|(rules, _)| is_same(rules, view));
        let entry = match found {
            Some(place) => self.lists.remove(place),
            None => (
                view.clone(),
                Arc::new(Mutex::new(DeniedList::new(view, fs))),
            ),
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
        entry: one.identity.entry,
    });
    missing.collect()
}

/// Whether a directory that must not be renamed came after the first masks. The next
/// command gets a view in which it is mounted on itself.
fn is_outdated(masked: Option<&MaskedPaths>, denied: &[Denied]) -> bool {
    let is_new = |masked: &MaskedPaths, one: &Denied| {
        one.with == With::Itself && masked.get(&(one.path.clone(), one.with)) != Some(&one.identity)
    };
    masked.is_some_and(|masked| denied.iter().any(|one| is_new(masked, one)))
}

/// Returns what is masked, once [`missing`] is.
fn as_masked(denied: &[Denied], before: Option<&MaskedPaths>) -> MaskedPaths {
    let is_there = |key: &(Vec<u8>, With), identity: &Identity| {
        key.1 != With::Itself || before.is_none_or(|before| before.get(key) == Some(identity))
    };
    denied
        .iter()
        .map(|one| ((one.path.clone(), one.with), one.identity))
        .filter(|(key, identity)| is_there(key, identity))
        .collect()
}
