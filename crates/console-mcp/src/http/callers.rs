//! [`Callers`]: the open connections, and how many there may be.
//!
//! A connection that has not shown a token yet is a stranger's. There is room for few
//! of them, and a new one takes the place of the oldest: connections on which nothing
//! is said lock no client out, which shows its token at once.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::HttpSettings;

/// How long a stranger has its place for sure. Many clients may come at once: new ones
/// wait that long before an older one has to go.
const GRACE: Duration = Duration::from_secs(1);

/// The open connections.
#[derive(Debug)]
pub(super) struct Callers {
    most: usize,
    strangers: usize,
    strangers_per_address: usize,
    grace: Duration,
    inside: Mutex<Inside>,
    /// A stranger has left, or is one no more.
    left: Notify,
}

#[derive(Debug, Default)]
struct Inside {
    /// In the order of their arrival.
    strangers: VecDeque<Arc<Stranger>>,
    known: usize,
}

#[derive(Debug)]
struct Stranger {
    address: IpAddr,
    /// Until when it has its place.
    until: Instant,
    close: CancellationToken,
}

/// One open connection; dropped when it is closed.
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
            left: Notify::new(),
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection, for which the oldest of a stranger may have to go. `None` if
    /// there are as many of clients as there may be.
    pub(super) async fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Caller> {
        loop {
            let left = self.left.notified();
            let until = match self.try_enter(address) {
                Room::Place(caller) => return Some(caller),
                Room::None => return None,
                Room::Later(until) => until,
            };
            // Whichever comes first, there may be a place then.
            let _ = timeout_at(until, left).await;
        }
    }

    /// Closes the connection of the oldest stranger, where the machine has no room for
    /// another one.
    pub(super) fn relieve(&self) {
        if let Some(oldest) = self.inside().strangers.pop_front() {
            oldest.close.cancel();
        }
    }

    fn try_enter(self: &Arc<Self>, address: IpAddr) -> Room {
        let now = Instant::now();
        let mut inside = self.inside();
        let (all, from_here) = inside.count(address);
        let oldest = if from_here >= self.strangers_per_address {
            inside.oldest(address)
        } else if all >= self.strangers || inside.known + all >= self.most {
            Some(0)
        } else {
            None
        };
        if let Some(oldest) = oldest {
            match inside.strangers.get(oldest) {
                None => return Room::None,
                Some(stranger) if stranger.until > now => return Room::Later(stranger.until),
                Some(stranger) => stranger.close.cancel(),
            }
            inside.strangers.remove(oldest);
        }
        let this = Arc::new(Stranger {
            address,
            until: now + self.grace,
            close: CancellationToken::new(),
        });
        inside.strangers.push_back(Arc::clone(&this));
        Room::Place(Caller {
            this,
            all: Arc::clone(self),
            is_known: Mutex::new(false),
        })
    }
}

/// Whether there is room for one more.
enum Room {
    Place(Caller),
    /// When the oldest stranger can be sent away.
    Later(Instant),
    None,
}

impl Inside {
    /// How many strangers there are, and how many of them from an address.
    fn count(&self, address: IpAddr) -> (usize, usize) {
        let from_here = self.strangers.iter().filter(|one| one.address == address);
        (self.strangers.len(), from_here.count())
    }

    fn oldest(&self, address: IpAddr) -> Option<usize> {
        let mut strangers = self.strangers.iter();
        strangers.position(|one| one.address == address)
    }
}

impl Caller {
    /// It has shown that it may be here.
    pub(super) fn admit(&self) {
        let mut is_known = self.is_known.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_known {
            return;
        }
        let mut inside = self.all.inside();
        if let Some(place) = self.place(&inside) {
            inside.strangers.remove(place);
            inside.known += 1;
            *is_known = true;
            self.all.left.notify_one();
        }
    }

    /// Ready when it has to make room.
    pub(super) async fn must_go(&self) {
        self.this.close.cancelled().await;
    }

    fn place(&self, inside: &Inside) -> Option<usize> {
        let mut strangers = inside.strangers.iter();
        strangers.position(|one| Arc::ptr_eq(one, &self.this))
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let is_known = *self.is_known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut inside = self.all.inside();
        match self.place(&inside) {
            Some(place) => drop(inside.strangers.remove(place)),
            None if is_known => inside.known -= 1,
            None => {}
        }
        self.all.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
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

    fn is_closed(caller: &Caller) -> bool {
        caller.this.close.is_cancelled()
    }

    #[tokio::test]
    async fn the_oldest_stranger_makes_room_first_of_the_same_address() {
        let callers = callers(100, 3, 2, 0);
        let enter = async |address| callers.enter(address).await.unwrap();
        let other = enter(TWO).await;
        let (first, second) = (enter(ONE).await, enter(ONE).await);
        let third = enter(ONE).await;
        assert!(is_closed(&first) && !is_closed(&other) && !is_closed(&second));
        let fourth = enter(TWO).await;
        assert!(is_closed(&other), "there is room for three");
        assert!(!is_closed(&second) && !is_closed(&third) && !is_closed(&fourth));
        drop(second);
        let fifth = enter(TWO).await;
        assert!(!is_closed(&third) && !is_closed(&fourth) && !is_closed(&fifth));
    }

    #[tokio::test]
    async fn a_known_client_stays_and_counts_until_it_goes() {
        let callers = callers(2, 2, 2, 0);
        let known = callers.enter(ONE).await.unwrap();
        known.admit();
        known.admit();
        assert_eq!(callers.inside().known, 1);
        let stranger = callers.enter(ONE).await.unwrap();
        let client = callers.enter(ONE).await.unwrap();
        assert!(is_closed(&stranger) && !is_closed(&known));
        // It is too late: its place is taken.
        stranger.admit();
        client.admit();
        assert_eq!(callers.inside().known, 2);
        assert!(callers.enter(TWO).await.is_none());
        drop((known, stranger));
        assert_eq!(callers.inside().known, 1);
        assert!(callers.enter(TWO).await.is_some());
    }

    #[tokio::test]
    async fn a_machine_without_room_is_relieved_of_strangers() {
        let callers = callers(100, 100, 100, 1_000_000);
        let enter = async || callers.enter(ONE).await.unwrap();
        let (known, first, second) = (enter().await, enter().await, enter().await);
        known.admit();
        callers.relieve();
        assert!(is_closed(&first) && !is_closed(&second) && !is_closed(&known));
        callers.relieve();
        callers.relieve();
        assert!(is_closed(&second) && !is_closed(&known));
    }

    #[tokio::test]
    async fn many_that_come_at_once_wait_for_each_other() {
        let callers = callers(100, 1, 1, 1_000_000);
        let first = callers.enter(ONE).await.unwrap();
        let mut second = std::pin::pin!(callers.enter(ONE));
        assert!(futures::poll!(second.as_mut()).is_pending());
        assert!(!is_closed(&first));
        first.admit();
        let second = second.await.unwrap();
        let mut third = std::pin::pin!(callers.enter(ONE));
        assert!(futures::poll!(third.as_mut()).is_pending());
        drop(second);
        assert!(third.await.is_some());
    }
}
