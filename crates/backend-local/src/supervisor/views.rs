//! Views: mount namespaces in which paths are masked, and the threads in them.
//!
//! Each view has two threads. The *keeper*, which is not confined, enters a mount
//! namespace made from the supervisor's and makes the masks, the first and later ones.
//! The *spawner* is in the same namespace, is confined like the commands and starts
//! them. The kernel lets no confined thread mount, and hands both the namespace and the
//! confinement on to everything that the spawner starts.
//!
//! The supervisor itself is in a namespace of its own as well, from which each view is
//! made: the cost of one grows with the mounts it is made from. While a command runs, the
//! next view is made ahead, without masks: confining its spawner takes longest.

mod keeper;
mod mounts;
mod namespace;
mod probe;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use backend_core::sync::lock;

pub(super) use namespace::enter as enter_namespace;

use super::confine::Prepared;
use super::protocol::{Mask, Reply, Spawn, Trouble};
use super::shared::Shared;
use super::spawn::Spawner;
use super::threads::start;
use keeper::{Gate, Job, Keeper, Order};

/// The most views at once.
pub(crate) const MOST_VIEWS: usize = 16;

/// The most threads of views: two of each, of a spare one, of a closed one and of some
/// that are ending, and the one that makes them.
pub(super) const MOST_THREADS: u64 = 2 * (MOST_VIEWS as u64 + 4) + 1;

/// All that every view needs.
pub(super) struct Place {
    /// The directory in which the masks are mounted.
    pub(super) masks: PathBuf,
    pub(super) policy: Arc<Prepared>,
    pub(super) shared: Arc<Shared>,
    pub(super) spawner: Arc<Spawner>,
}

/// The views, as the thread that reads requests sees them. That thread is confined, so
/// another one makes them.
#[derive(Default)]
pub(super) struct Views {
    upkeep: Option<Arc<Upkeep>>,
    kept: HashMap<u64, View>,
}

/// The work that takes long and can wait until a command runs.
pub(super) struct Upkeep {
    makers: Sender<Keeper>,
    /// A view for the next command that needs its own.
    spare: Mutex<Option<View>>,
    /// A closed view, whose threads are still to end.
    closed: Mutex<Option<View>>,
}

impl Upkeep {
    /// Returns a view without masks, or `None` if it cannot be made.
    fn take(&self) -> Option<View> {
        let spare = lock(&self.spare).take();
        let usable = spare.filter(|spare| !spare.gate.is_closed());
        usable.or_else(|| self.make())
    }

    fn make(&self) -> Option<View> {
        let (view, keeper) = View::new();
        self.makers.send(keeper).ok().map(|()| view)
    }

    fn close(&self, view: View) {
        view.gate.close();
        let before = lock(&self.closed).replace(view);
        // After the lock is released.
        drop(before);
    }

    /// Ends the threads of a closed view, and has a spare one made.
    pub(super) fn run(&self) {
        let closed = lock(&self.closed).take();
        // After the lock is released.
        drop(closed);
        let mut spare = lock(&self.spare);
        if spare.is_none() {
            *spare = self.make();
        }
    }
}

/// The ends of a view's channels.
struct View {
    orders: Sender<Order>,
    jobs: Sender<Job>,
    gate: Arc<Gate>,
    /// The number of the last order.
    asked: u64,
}

impl Views {
    /// Returns what makes no view.
    pub(super) fn none() -> Self {
        Self::default()
    }

    /// Starts the thread that makes views, once one was made that holds.
    pub(super) fn start(place: Place) -> Result<Self, String> {
        probe::run(&place)?;
        let place = Arc::new(place);
        let (makers, made) = channel::<Keeper>();
        start("views", move || {
            for keeper in made {
                let place = Arc::clone(&place);
                keeper.start(place);
            }
        })?;
        Ok(Self {
            upkeep: Some(Arc::new(Upkeep {
                makers,
                spare: Mutex::default(),
                closed: Mutex::default(),
            })),
            kept: HashMap::new(),
        })
    }

    /// Masks paths in a view, which is made if there is none.
    pub(super) fn mask(&mut self, shared: &Shared, mask: Mask) {
        let id = mask.id;
        let refuse = |problem: &str| {
            shared.tell(&Reply::Masked {
                id,
                missed: Vec::new(),
                problem: Some(problem.into()),
            });
        };
        let Some(upkeep) = &self.upkeep else {
            return refuse("there are no views here");
        };
        if !self.kept.contains_key(&mask.view) {
            if self.kept.len() == MOST_VIEWS {
                return refuse("there are too many views; end some background shells");
            }
            let Some(view) = upkeep.take() else {
                return refuse("the thread that makes views is gone");
            };
            self.kept.insert(mask.view, view);
        }
        if let Some(view) = self.kept.get_mut(&mask.view) {
            view.asked += 1;
            let order = Order {
                number: view.asked,
                mask,
            };
            if view.orders.send(order).is_err() {
                refuse("the thread that keeps this view is gone");
            }
        }
    }

    /// Starts a command in its view, once everything is masked that was asked for.
    pub(super) fn spawn(&self, shared: &Shared, spawn: Spawn, descriptors: Vec<OwnedFd>) {
        let (id, announce) = (spawn.id, spawn.announce);
        // A request to end it may come before its spawner has started it.
        shared.table().expect(id);
        let place = spawn.place.as_ref();
        let view = place.and_then(|place| self.kept.get(&place.view));
        let is_sent = view.is_some_and(|view| {
            let job = Job {
                spawn,
                descriptors,
                after: view.asked,
                upkeep: self.upkeep.clone(),
            };
            view.jobs.send(job).is_ok()
        });
        if !is_sent {
            let trouble = Trouble::View("it is gone; run the command again".into());
            Spawner::fail(shared, id, announce, trouble);
        }
    }

    /// Starts nothing more in a view. Its threads end once another command runs, and its
    /// namespace with the last of them and of its processes.
    pub(super) fn forget(&mut self, view: u64) {
        if let (Some(upkeep), Some(view)) = (&self.upkeep, self.kept.remove(&view)) {
            upkeep.close(view);
        }
    }
}

impl View {
    fn new() -> (Self, Keeper) {
        let (orders, ordered): (_, Receiver<Order>) = channel();
        let (jobs, todo): (_, Receiver<Job>) = channel();
        let gate = Arc::new(Gate::default());
        let view = Self {
            orders,
            jobs,
            gate: Arc::clone(&gate),
            asked: 0,
        };
        (view, Keeper::new(ordered, todo, gate))
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // A spawner that waits for masks that will never be made would wait forever.
        self.gate.close();
    }
}
