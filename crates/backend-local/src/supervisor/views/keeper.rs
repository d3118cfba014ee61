//! The two threads of a view.

use std::os::fd::OwnedFd;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Condvar, Mutex};

use backend_core::sync::lock;

use super::super::protocol::{Mask, Reply, Spawn, Trouble};
use super::super::spawn::Spawner;
use super::super::threads::start;
use super::mounts::{Applied, Mounts};
use super::{Place, Upkeep, namespace};

/// A request to mask paths.
pub(super) struct Order {
    pub(super) number: u64,
    pub(super) mask: Mask,
}

/// A command to start.
pub(super) struct Job {
    pub(super) spawn: Spawn,
    pub(super) descriptors: Vec<OwnedFd>,
    /// The order that must have been carried out.
    pub(super) after: u64,
    /// Its work is done after the command has started.
    pub(super) upkeep: Option<Arc<Upkeep>>,
}

/// The progress of a view: a command starts behind it.
#[derive(Default)]
pub(super) struct Gate {
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    /// The number of the last order that was carried out.
    done: u64,
    /// The reason why nothing starts any more.
    broken: Option<String>,
}

impl Gate {
    fn pass(&self, number: u64, problem: Option<String>) {
        let mut progress = lock(&self.progress);
        progress.done = progress.done.max(number);
        if progress.broken.is_none() {
            progress.broken = problem;
        }
        self.changed.notify_all();
    }

    pub(super) fn close(&self) {
        self.pass(u64::MAX, Some("it was forgotten".into()));
    }

    pub(super) fn is_closed(&self) -> bool {
        lock(&self.progress).broken.is_some()
    }

    /// Waits until an order is carried out.
    fn wait(&self, number: u64) -> Result<(), String> {
        let waiting = |progress: &mut Progress| progress.done < number && progress.broken.is_none();
        let progress = self.changed.wait_while(lock(&self.progress), waiting);
        let progress = progress.map_err(|_| "its keeper panicked")?;
        progress.broken.clone().map_or(Ok(()), Err)
    }
}

/// The keeper of a view that is not made yet.
pub(super) struct Keeper {
    orders: Receiver<Order>,
    jobs: Receiver<Job>,
    gate: Arc<Gate>,
}

impl Keeper {
    pub(super) fn new(orders: Receiver<Order>, jobs: Receiver<Job>, gate: Arc<Gate>) -> Self {
        Self { orders, jobs, gate }
    }

    /// Starts the threads. Commands of a view that cannot be made fail with the reason.
    pub(super) fn start(self, place: Arc<Place>) {
        let gate = Arc::clone(&self.gate);
        if let Err(text) = start("keeper", move || self.keep(&place)) {
            gate.pass(0, Some(text));
        }
    }

    fn keep(self, place: &Arc<Place>) {
        let mut made = namespace::copy().and_then(|()| Mounts::open(&place.masks));
        let problem = made.as_ref().err().cloned();
        self.gate.pass(0, problem);
        let spawner = Spawning {
            jobs: self.jobs,
            gate: Arc::clone(&self.gate),
            place: Arc::clone(place),
        };
        // A thread shares the namespace of the one that starts it.
        if let Err(text) = start("spawner", move || spawner.run()) {
            self.gate.pass(0, Some(text));
        }
        for order in self.orders {
            let Applied { missed, problem } = match &mut made {
                Ok(mounts) => mounts.apply(&order.mask.places, order.mask.strict),
                Err(text) => Applied {
                    missed: Vec::new(),
                    problem: Some(text.clone()),
                },
            };
            self.gate.pass(order.number, problem.clone());
            let id = order.mask.id;
            place.shared.tell(&Reply::Masked {
                id,
                missed,
                problem,
            });
        }
    }
}

/// The work of the thread that starts a view's commands.
struct Spawning {
    jobs: Receiver<Job>,
    gate: Arc<Gate>,
    place: Arc<Place>,
}

impl Spawning {
    fn run(self) {
        let restricted = self.place.policy.restrict();
        for job in self.jobs {
            let ready = restricted.clone().and_then(|()| self.gate.wait(job.after));
            let (place, id, announce) = (&self.place, job.spawn.id, job.spawn.announce);
            match ready {
                Ok(()) => place
                    .spawner
                    .spawn(&place.shared, job.spawn, job.descriptors),
                Err(text) => {
                    Spawner::fail(&place.shared, id, announce, Trouble::View(text));
                }
            }
            if let Some(upkeep) = job.upkeep {
                upkeep.run();
            }
        }
    }
}
