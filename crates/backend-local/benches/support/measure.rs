//! Alternating calls, and their times.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// One call: its duration, and the number of results.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) nanos: u64,
    pub(crate) size: u64,
}

impl Sample {
    /// Returns the sample of a call that began at `start` and has just ended.
    pub(crate) fn since(start: Instant) -> Self {
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap();
        Self { nanos, size: 0 }
    }

    pub(crate) fn with_size(self, size: usize) -> Self {
        let size = u64::try_from(size).unwrap();
        Self { size, ..self }
    }
}

/// The time spent on a row: rounds are added until both minima are reached, or
/// until the time is up and there are a few.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    min_rounds: usize,
    min_time: Duration,
    max_rounds: usize,
    max_time: Duration,
}

impl Effort {
    pub(crate) const QUICK: Self = Self {
        min_rounds: 5,
        min_time: Duration::from_secs(1),
        max_rounds: 200,
        max_time: Duration::from_secs(10),
    };
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            min_rounds: 9,
            min_time: Duration::from_secs(8),
            max_rounds: 2_000,
            max_time: Duration::from_secs(60),
        }
    }
}

/// Rounds that are not counted: they fill the caches.
const WARM_UPS: usize = 1;

/// Rounds that are counted even if each takes long.
const FEW_ROUNDS: usize = 3;

/// The times of both sides.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    ours: Vec<Sample>,
    theirs: Vec<Sample>,
}

/// Alternates our calls and the peer's. Calls get the number of their round.
pub(crate) fn by_turns(
    effort: Effort,
    mut our_call: impl FnMut(usize) -> Sample,
    mut their_call: impl FnMut(usize) -> Sample,
) -> Turns {
    let mut turns = Turns::default();
    rounds(effort, |round| {
        let (ours, theirs) = (our_call(round), their_call(round));
        if round >= WARM_UPS {
            turns.ours.push(ours);
            turns.theirs.push(theirs);
        }
    });
    turns
}

/// Measures our side without a peer.
pub(crate) fn alone(effort: Effort, mut our_call: impl FnMut(usize) -> Sample) -> Value {
    let mut samples = Vec::new();
    rounds(effort, |round| {
        let sample = our_call(round);
        if round >= WARM_UPS {
            samples.push(sample);
        }
    });
    side(&samples)
}

fn rounds(effort: Effort, mut round: impl FnMut(usize)) {
    (0..WARM_UPS).for_each(&mut round);
    let start = Instant::now();
    for n in 0..effort.max_rounds {
        let time = start.elapsed();
        let is_enough = n >= effort.min_rounds && time >= effort.min_time;
        if is_enough || n >= FEW_ROUNDS && time >= effort.max_time {
            break;
        }
        round(WARM_UPS + n);
    }
}

impl Turns {
    pub(crate) fn to_json(&self, id: &str) -> Value {
        let rounds = self.ours.len();
        json!({ "id": id, "rounds": rounds, "ours": side(&self.ours), "peer": side(&self.theirs) })
    }
}

/// Returns best, median and 90th percentile in nanoseconds, and the result
/// count of the last call.
fn side(samples: &[Sample]) -> Value {
    let mut nanos: Vec<_> = samples.iter().map(|sample| sample.nanos).collect();
    nanos.sort_unstable();
    let at = |percent: usize| nanos.get((nanos.len() * percent / 100).min(nanos.len() - 1));
    let size = samples.last().map(|sample| sample.size);
    json!({ "best": at(0), "median": at(50), "p90": at(90), "size": size })
}

/// Returns the share of CPU time that other processes used during one idle
/// second.
pub(crate) async fn busy() -> f64 {
    let (before_idle, before) = processor_time();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (idle, all) = processor_time();
    1.0 - (idle - before_idle) / (all - before)
}

/// Returns idle and total time of all processors since boot, in ticks.
fn processor_time() -> (f64, f64) {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let line = stat.lines().next().unwrap();
    let words = line.split_whitespace().skip(1);
    let ticks: Vec<f64> = words.map(|word| word.parse().unwrap()).collect();
    // Fourth and fifth: idle, and idle while waiting for the disk.
    (ticks.iter().skip(3).take(2).sum(), ticks.iter().sum())
}
