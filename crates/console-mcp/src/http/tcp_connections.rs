//! [`TcpConnections`]: the open connections and their limits.
//!
//! A connection is unauthenticated until it shows a token. A new connection is always
//! accepted at once. If there are too many unauthenticated ones then, the oldest is
//! closed: first one of the same address, else one of the address that has the most.
//! Idle connections therefore cannot lock out a client, which shows its token at once.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use backend_core::sync::lock;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::settings::HttpSettings;

/// The time a connection has to show its token while the total is below the limit: many clients
/// may connect at once, on a busy machine.
const GRACE: Duration = Duration::from_secs(5);

/// The open connections.
#[derive(Debug)]
pub(super) struct TcpConnections {
    max: usize,
    unauthenticated: usize,
    unauthenticated_per_address: usize,
    grace: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// In order of arrival.
    unauthenticated: VecDeque<Arc<Unauthenticated>>,
    authenticated: usize,
}

#[derive(Debug)]
struct Unauthenticated {
    address: IpAddr,
    /// The end of its guaranteed time.
    until: Instant,
    /// Cancelled if there are too many: this one is closed when its guaranteed time is
    /// over.
    excess: CancellationToken,
    close: CancellationToken,
}

/// One open connection. Dropped when it is closed.
#[derive(Debug)]
pub(super) struct TcpConnectionGuard {
    this: Arc<Unauthenticated>,
    all: Arc<TcpConnections>,
    is_authenticated: Mutex<bool>,
}

impl TcpConnections {
    pub(super) fn new(http: &HttpSettings) -> Self {
        Self {
            max: http.connections,
            unauthenticated: http.unauthenticated_connections,
            unauthenticated_per_address: http.unauthenticated_per_address,
            grace: GRACE,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Registers a new connection, which may displace the oldest unauthenticated one.
    /// Returns `None` if authenticated clients use up the limit.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<TcpConnectionGuard> {
        let mut state = self.state();
        if state.authenticated + state.unauthenticated.len() >= self.max && !state.close_one() {
            return None;
        }
        let this = Arc::new(Unauthenticated {
            address,
            until: Instant::now() + self.grace,
            excess: CancellationToken::new(),
            close: CancellationToken::new(),
        });
        state.unauthenticated.push_back(Arc::clone(&this));
        state.mark_excess(
            address,
            self.unauthenticated_per_address,
            self.unauthenticated,
        );
        Some(TcpConnectionGuard {
            this,
            all: Arc::clone(self),
            is_authenticated: Mutex::new(false),
        })
    }

    /// Closes an unauthenticated connection, for when the machine has no resources for
    /// another one.
    pub(super) fn close_one(&self) {
        self.state().close_one();
    }
}

impl State {
    /// Closes the oldest unauthenticated connection of the address that has the most.
    /// Returns `false` if there are none.
    fn close_one(&mut self) -> bool {
        let oldest = oldest_of_most(self.unauthenticated.iter());
        if let Some(oldest) = &oldest {
            self.close(oldest);
        }
        oldest.is_some()
    }

    /// Marks the oldest unauthenticated connection as excess if there are more than
    /// `per_address` from this address, or more than `in_all` in total.
    fn mark_excess(&self, address: IpAddr, per_address: usize, in_all: usize) {
        let unauthenticated = self.unauthenticated.iter();
        let staying = unauthenticated.filter(|one| !one.excess.is_cancelled());
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

    /// Closes a connection, unless it was authenticated meanwhile.
    fn close(&mut self, connection: &Arc<Unauthenticated>) {
        if let Some(index) = self.position(connection) {
            self.unauthenticated.remove(index);
            connection.close.cancel();
        }
    }

    fn position(&self, connection: &Arc<Unauthenticated>) -> Option<usize> {
        let mut unauthenticated = self.unauthenticated.iter();
        unauthenticated.position(|one| Arc::ptr_eq(one, connection))
    }
}

/// Returns the oldest connection of an address that has the most of them.
fn oldest_of_most<'a>(
    mut unauthenticated: impl Iterator<Item = &'a Arc<Unauthenticated>> + Clone,
) -> Option<Arc<Unauthenticated>> {
    let mut counts = HashMap::new();
    for one in unauthenticated.clone() {
        *counts.entry(one.address).or_insert(0_usize) += 1;
    }
    let max = counts.values().max().copied()?;
    let oldest = unauthenticated.find(|one| counts.get(&one.address) == Some(&max));
    oldest.map(Arc::clone)
}

impl TcpConnectionGuard {
    /// Marks the connection as authenticated.
    pub(super) fn authenticate(&self) {
        let mut is_authenticated = lock(&self.is_authenticated);
        if *is_authenticated {
            return;
        }
        let mut state = self.all.state();
        if let Some(index) = state.position(&self.this) {
            state.unauthenticated.remove(index);
            state.authenticated += 1;
            *is_authenticated = true;
        }
    }

    /// Completes when the connection has to make room.
    pub(super) async fn must_close(&self) {
        let over = async {
            self.this.excess.cancelled().await;
            sleep_until(self.this.until).await;
        };
        tokio::select! {
            () = self.this.close.cancelled() => return,
            () = over => {}
        }
        // A connection that was authenticated in time stays.
        self.all.state().close(&self.this);
        self.this.close.cancelled().await;
    }
}

impl Drop for TcpConnectionGuard {
    fn drop(&mut self) {
        let is_authenticated = *lock(&self.is_authenticated);
        let mut state = self.all.state();
        match state.position(&self.this) {
            Some(index) => drop(state.unauthenticated.remove(index)),
            None if is_authenticated => state.authenticated -= 1,
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

    fn connections(
        max: usize,
        unauthenticated: usize,
        per_address: usize,
        grace: u64,
    ) -> Arc<TcpConnections> {
        let mut http = HttpSettings::without_token(([127, 0, 0, 1], 0).into());
        http.connections = max;
        http.unauthenticated_connections = unauthenticated;
        http.unauthenticated_per_address = per_address;
        let grace = Duration::from_secs(grace);
        Arc::new(TcpConnections {
            grace,
            ..TcpConnections::new(&http)
        })
    }

    /// Returns `true` if the connection has to go, at once or when its guaranteed time
    /// is over.
    fn is_excess(connection: &TcpConnectionGuard) -> bool {
        is_closed(connection) || connection.this.excess.is_cancelled()
    }

    fn is_closed(connection: &TcpConnectionGuard) -> bool {
        connection.this.close.is_cancelled()
    }

    #[tokio::test]
    async fn the_oldest_stranger_makes_room_first_of_the_same_address() {
        let connections = connections(100, 3, 2, 0);
        let enter = |address| connections.enter(address).unwrap();
        let other = enter(TWO);
        let (first, second) = (enter(ONE), enter(ONE));
        let third = enter(ONE);
        assert!(is_excess(&first) && !is_excess(&other) && !is_excess(&second));
        first.must_close().await;
        let fourth = enter(TWO);
        assert!(is_excess(&other), "there is room for three");
        assert!(!is_excess(&second) && !is_excess(&third) && !is_excess(&fourth));
        drop(second);
        let fifth = enter(TWO);
        assert!(!is_excess(&third) && !is_excess(&fourth) && !is_excess(&fifth));
    }

    #[test]
    fn an_address_with_many_makes_room_for_one_with_few() {
        for (max, unauthenticated) in [(100, 4), (4, 100)] {
            let connections = connections(max, unauthenticated, 100, 1_000_000);
            let enter = |address| connections.enter(address).unwrap();
            let quiet = enter(ONE);
            let noisy: Vec<_> = (0..3).map(|_| enter(TWO)).collect();
            let late = enter(ONE);
            assert!(is_excess(&noisy[0]) && !is_excess(&noisy[1]));
            assert!(!is_excess(&quiet) && !is_excess(&late));
        }
    }

    #[test]
    fn a_known_client_stays_and_counts_until_it_goes() {
        let connections = connections(2, 2, 2, 0);
        let authenticated = connections.enter(ONE).unwrap();
        authenticated.authenticate();
        authenticated.authenticate();
        assert_eq!(connections.state().authenticated, 1);
        let connection = connections.enter(ONE).unwrap();
        let client = connections.enter(ONE).unwrap();
        assert!(is_closed(&connection) && !is_closed(&authenticated));
        // Too late: the slot is taken.
        connection.authenticate();
        client.authenticate();
        assert_eq!(connections.state().authenticated, 2);
        assert!(connections.enter(TWO).is_none());
        drop((authenticated, connection));
        assert_eq!(connections.state().authenticated, 1);
        assert!(connections.enter(TWO).is_some());
    }

    #[test]
    fn a_machine_without_room_is_relieved_of_strangers() {
        let connections = connections(100, 100, 100, 1_000_000);
        let enter = || connections.enter(ONE).unwrap();
        let (authenticated, first, second) = (enter(), enter(), enter());
        authenticated.authenticate();
        connections.close_one();
        assert!(is_closed(&first) && !is_closed(&second) && !is_closed(&authenticated));
        connections.close_one();
        connections.close_one();
        assert!(is_closed(&second) && !is_closed(&authenticated));
    }

    #[tokio::test]
    async fn of_many_that_come_at_once_none_waits_and_each_has_its_time() {
        let connections = connections(100, 1, 1, 1_000_000);
        let all: Vec<_> = (0..10).map(|_| connections.enter(ONE).unwrap()).collect();
        let (last, others) = all.split_last().unwrap();
        assert!(others.iter().all(is_excess) && !is_excess(last));
        for connection in others {
            let must_close = std::pin::pin!(connection.must_close());
            assert!(futures::poll!(must_close).is_pending());
            connection.authenticate();
        }
        assert_eq!(connections.state().authenticated, 9);
    }

    #[tokio::test]
    async fn a_client_whose_time_is_over_stays() {
        let connections = connections(100, 1, 1, 0);
        let client = connections.enter(ONE).unwrap();
        let _other = connections.enter(ONE).unwrap();
        assert!(is_excess(&client));
        client.authenticate();
        let long = Duration::from_millis(20);
        assert!(timeout(long, client.must_close()).await.is_err());
        assert_eq!(connections.state().authenticated, 1);
    }
}
