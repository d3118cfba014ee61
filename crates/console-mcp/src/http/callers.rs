//! [`Callers`]: the open connections and their limits.
//!
//! A connection that has not shown a token yet is called a stranger. A new connection
//! is always accepted at once. If there are too many strangers then, the oldest has to
//! go: first one of the same address, else one of the address that has the most. Idle
//! connections therefore cannot lock out a client, which shows its token at once.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::HttpSettings;

/// The time a stranger is guaranteed while the total is below the limit: many clients
/// may connect at once, on a busy machine.
const GRACE: Duration = Duration::from_secs(5);

/// The open connections.
#[derive(Debug)]
pub(super) struct Callers {
    most: usize,
    strangers: usize,
    strangers_per_address: usize,
    grace: Duration,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    /// In order of arrival.
    strangers: VecDeque<Arc<Stranger>>,
    known: usize,
}

#[derive(Debug)]
struct Stranger {
    address: IpAddr,
    /// The end of its guaranteed time.
    until: Instant,
    /// Cancelled if there are too many strangers: it has to go when its guaranteed time
    /// is over.
    excess: CancellationToken,
    close: CancellationToken,
}

/// One open connection. Dropped when it is closed.
#[derive(Debug)]
pub(super) struct Caller {
    this: Arc<Stranger>,
    all: Arc<Callers>,
    is_known: Mutex<bool>,
}

impl Callers {
    pub(super) fn new(http: &HttpSettings) -> Self {
        Self {
            most: http.connections,
            strangers: http.strangers,
            strangers_per_address: http.strangers_per_address,
            grace: GRACE,
            inside: Mutex::default(),
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a new connection, which may displace the oldest stranger. Returns
    /// `None` if authenticated clients use up the limit.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Caller> {
        let mut inside = self.inside();
        if inside.known + inside.strangers.len() >= self.most && !inside.relieve() {
            return None;
        }
        let this = Arc::new(Stranger {
            address,
            until: Instant::now() + self.grace,
            excess: CancellationToken::new(),
            close: CancellationToken::new(),
        });
        inside.strangers.push_back(Arc::clone(&this));
        inside.thin(address, self.strangers_per_address, self.strangers);
        Some(Caller {
            this,
            all: Arc::clone(self),
            is_known: Mutex::new(false),
        })
    }

    /// Closes a stranger's connection, for when the machine has no resources for
    /// another one.
    pub(super) fn relieve(&self) {
        self.inside().relieve();
    }
}

impl Inside {
    /// Closes the oldest connection of the address that has the most strangers. Returns
    /// `false` if there are no strangers.
    fn relieve(&mut self) -> bool {
        let oldest = oldest_of_most(self.strangers.iter());
        if let Some(oldest) = &oldest {
            self.dismiss(oldest);
        }
        oldest.is_some()
    }

    /// Marks the oldest stranger as excess if there are more than `per_address` from
    /// this address, or more than `in_all` in total.
    fn thin(&self, address: IpAddr, per_address: usize, in_all: usize) {
        let strangers = self.strangers.iter();
        let staying = strangers.filter(|one| !one.excess.is_cancelled());
        let mut from_here = staying.clone().filter(|one| one.address == address);
        let oldest = if from_here.clone().count() > per_address {
            from_here.next().map(Arc::clone)
        } else if staying.clone().count() > in_all {
            oldest_of_most(staying)
        } else {
            None
        };
        if let Some(oldest) = oldest {
            oldest.excess.cancel();
        }
    }

    /// Closes a stranger's connection, unless it was admitted meanwhile.
    fn dismiss(&mut self, stranger: &Arc<Stranger>) {
        if let Some(place) = self.place(stranger) {
            self.strangers.remove(place);
            stranger.close.cancel();
        }
    }

    fn place(&self, stranger: &Arc<Stranger>) -> Option<usize> {
        let mut strangers = self.strangers.iter();
        strangers.position(|one| Arc::ptr_eq(one, stranger))
    }
}

/// Returns the oldest stranger of an address that has the most of them.
fn oldest_of_most<'a>(
    mut strangers: impl Iterator<Item = &'a Arc<Stranger>> + Clone,
) -> Option<Arc<Stranger>> {
    let mut counts = HashMap::new();
    for one in strangers.clone() {
        *counts.entry(one.address).or_insert(0_usize) += 1;
    }
    let most = counts.values().max().copied()?;
    let oldest = strangers.find(|one| counts.get(&one.address) == Some(&most));
    oldest.map(Arc::clone)
}

impl Caller {
    /// Marks the connection as authenticated.
    pub(super) fn admit(&self) {
        let mut is_known = self.is_known.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_known {
            return;
        }
        let mut inside = self.all.inside();
        if let Some(place) = inside.place(&self.this) {
            inside.strangers.remove(place);
            inside.known += 1;
            *is_known = true;
        }
    }

    /// Completes when the connection has to make room.
    pub(super) async fn must_go(&self) {
        let over = async {
            self.this.excess.cancelled().await;
            sleep_until(self.this.until).await;
        };
        tokio::select! {
            () = self.this.close.cancelled() => return,
            () = over => {}
        }
        // A connection that was admitted in time stays.
        self.all.inside().dismiss(&self.this);
        self.this.close.cancelled().await;
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let is_known = *self.is_known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut inside = self.all.inside();
        match inside.place(&self.this) {
            Some(place) => drop(inside.strangers.remove(place)),
            None if is_known => inside.known -= 1,
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const TWO: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    fn callers(most: usize, strangers: usize, per_address: usize, grace: u64) -> Arc<Callers> {
        let mut http = HttpSettings::without_token(([127, 0, 0, 1], 0).into());
        http.connections = most;
        http.strangers = strangers;
        http.strangers_per_address = per_address;
        let grace = Duration::from_secs(grace);
        Arc::new(Callers {
            grace,
            ..Callers::new(&http)
        })
    }

    /// Returns `true` if the connection has to go, at once or when its guaranteed time
    /// is over.
    fn is_excess(caller: &Caller) -> bool {
        is_closed(caller) || caller.this.excess.is_cancelled()
    }

    fn is_closed(caller: &Caller) -> bool {
        caller.this.close.is_cancelled()
    }

    #[tokio::test]
    async fn the_oldest_stranger_makes_room_first_of_the_same_address() {
        let callers = callers(100, 3, 2, 0);
        let enter = |address| callers.enter(address).unwrap();
        let other = enter(TWO);
        let (first, second) = (enter(ONE), enter(ONE));
        let third = enter(ONE);
        assert!(is_excess(&first) && !is_excess(&other) && !is_excess(&second));
        first.must_go().await;
        let fourth = enter(TWO);
        assert!(is_excess(&other), "there is room for three");
        assert!(!is_excess(&second) && !is_excess(&third) && !is_excess(&fourth));
        drop(second);
        let fifth = enter(TWO);
        assert!(!is_excess(&third) && !is_excess(&fourth) && !is_excess(&fifth));
    }

    #[test]
    fn an_address_with_many_makes_room_for_one_with_few() {
        for (most, strangers) in [(100, 4), (4, 100)] {
            let callers = callers(most, strangers, 100, 1_000_000);
            let enter = |address| callers.enter(address).unwrap();
            let quiet = enter(ONE);
            let noisy: Vec<_> = (0..3).map(|_| enter(TWO)).collect();
            let late = enter(ONE);
            assert!(is_excess(&noisy[0]) && !is_excess(&noisy[1]));
            assert!(!is_excess(&quiet) && !is_excess(&late));
        }
    }

    #[test]
    fn a_known_client_stays_and_counts_until_it_goes() {
        let callers = callers(2, 2, 2, 0);
        let known = callers.enter(ONE).unwrap();
        known.admit();
        known.admit();
        assert_eq!(callers.inside().known, 1);
        let stranger = callers.enter(ONE).unwrap();
        let client = callers.enter(ONE).unwrap();
        assert!(is_closed(&stranger) && !is_closed(&known));
        // Too late: the slot is taken.
        stranger.admit();
        client.admit();
        assert_eq!(callers.inside().known, 2);
        assert!(callers.enter(TWO).is_none());
        drop((known, stranger));
        assert_eq!(callers.inside().known, 1);
        assert!(callers.enter(TWO).is_some());
    }

    #[test]
    fn a_machine_without_room_is_relieved_of_strangers() {
        let callers = callers(100, 100, 100, 1_000_000);
        let enter = || callers.enter(ONE).unwrap();
        let (known, first, second) = (enter(), enter(), enter());
        known.admit();
        callers.relieve();
        assert!(is_closed(&first) && !is_closed(&second) && !is_closed(&known));
        callers.relieve();
        callers.relieve();
        assert!(is_closed(&second) && !is_closed(&known));
    }

    #[tokio::test]
    async fn of_many_that_come_at_once_none_waits_and_each_has_its_time() {
        let callers = callers(100, 1, 1, 1_000_000);
        let all: Vec<_> = (0..10).map(|_| callers.enter(ONE).unwrap()).collect();
        let (last, others) = all.split_last().unwrap();
        assert!(others.iter().all(is_excess) && !is_excess(last));
        for caller in others {
            let must_go = std::pin::pin!(caller.must_go());
            assert!(futures::poll!(must_go).is_pending());
            caller.admit();
        }
        assert_eq!(callers.inside().known, 9);
    }

    #[tokio::test]
    async fn a_client_whose_time_is_over_stays() {
        let callers = callers(100, 1, 1, 0);
        let client = callers.enter(ONE).unwrap();
        let _other = callers.enter(ONE).unwrap();
        assert!(is_excess(&client));
        client.admit();
        let long = Duration::from_millis(20);
        assert!(timeout(long, client.must_go()).await.is_err());
        assert_eq!(callers.inside().known, 1);
    }
}
