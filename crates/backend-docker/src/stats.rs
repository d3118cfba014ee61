//! Resource usage of a container.

use backend_core::{Error, Result};
use bollard::models::{ContainerMemoryStats, ContainerStatsResponse};
use bollard::query_parameters::StatsOptionsBuilder;
use futures::StreamExt as _;
use sandbox_shell::Stats;

use crate::daemon::Daemon;

/// The counters of a sample, for computing the usage in the next one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    used: u64,
    system: u64,
}

/// Takes one sample without waiting for a second one.
pub(crate) async fn sample(
    daemon: &Daemon,
    container: &str,
    before: Option<Counters>,
) -> Result<(Stats, Counters)> {
    let options = StatsOptionsBuilder::default()
        .stream(false)
        .one_shot(true)
        .build();
    let mut stream = daemon.client().stats(container, Some(options)).boxed();
    match stream.next().await {
        Some(Ok(answer)) => Ok(read(&answer, before)),
        Some(Err(error)) => Err(daemon.error(error)),
        None => Err(Error::unavailable(
            "the daemon gave no statistics; try again",
        )),
    }
}

fn read(answer: &ContainerStatsResponse, before: Option<Counters>) -> (Stats, Counters) {
    let cpu = answer.cpu_stats.as_ref();
    let used = cpu.and_then(|cpu| cpu.cpu_usage.as_ref()?.total_usage);
    let now = Counters {
        used: used.unwrap_or_default(),
        system: cpu.and_then(|cpu| cpu.system_cpu_usage).unwrap_or_default(),
    };
    let processors = cpu.and_then(|cpu| cpu.online_cpus).unwrap_or(1).max(1);
    let share = |before: Counters| {
        let system = now
            .system
            .checked_sub(before.system)
            .filter(|one| *one > 0)?;
        let used = now.used.checked_sub(before.used)?;
        Some(used as f64 / system as f64 * f64::from(processors) * 100.0)
    };
    let memory = answer.memory_stats.as_ref();
    let pids = answer.pids_stats.as_ref().and_then(|pids| pids.current);
    let mut stats = Stats::default();
    stats.cpu_percent = before.and_then(share);
    stats.memory = memory.map(in_use).unwrap_or_default();
    stats.memory_limit = memory.and_then(|memory| memory.limit).unwrap_or_default();
    stats.pids = pids.unwrap_or_default();
    (stats, now)
}

/// Returns the memory without inactive page cache, which both versions of cgroups count
/// as used.
fn in_use(memory: &ContainerMemoryStats) -> u64 {
    let cache = memory.stats.as_ref().and_then(|stats| {
        let known = ["total_inactive_file", "inactive_file"];
        known.iter().find_map(|name| stats.get(*name).copied())
    });
    let usage = memory.usage.unwrap_or_default();
    usage.saturating_sub(cache.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(used: u64, system: u64) -> ContainerStatsResponse {
        serde_json::from_value(serde_json::json!({
            "cpu_stats": {"cpu_usage": {"total_usage": used}, "system_cpu_usage": system, "online_cpus": 2},
            "memory_stats": {"usage": 1000, "limit": 5000, "stats": {"total_inactive_file": 300}},
            "pids_stats": {"current": 3},
        }))
        .unwrap()
    }

    #[test]
    fn the_share_is_that_since_the_sample_before() {
        let (first, counters) = read(&answer(100, 1000), None);
        assert_eq!(first.cpu_percent, None);
        assert_eq!(
            (first.memory, first.memory_limit, first.pids),
            (700, 5000, 3)
        );
        let (second, _) = read(&answer(150, 1200), Some(counters));
        assert_eq!(second.cpu_percent, Some(50.0));
    }

    #[test]
    fn counters_that_went_back_or_stood_still_give_no_share() {
        let (_, counters) = read(&answer(100, 1000), None);
        assert_eq!(read(&answer(50, 1200), Some(counters)).0.cpu_percent, None);
        assert_eq!(read(&answer(150, 1000), Some(counters)).0.cpu_percent, None);
        assert_eq!(
            read(&ContainerStatsResponse::default(), None).0,
            Stats::default()
        );
    }
}
