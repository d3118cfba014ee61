//! Benchmarks that alternate our calls with those of a peer, because in separate blocks
//! the same code differs from itself by a third.

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should stop"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// One call: its duration, and the number of results.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// The duration.
    pub nanos: u64,
    /// The number of results.
    pub size: u64,
}

impl Sample {
    /// Returns the sample of a call that began at `start` and has just ended.
    pub fn since(start: Instant) -> Self {
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap();
        Self { nanos, size: 0 }
    }

    /// Sets the number of results.
    #[must_use]
    pub fn with_size(self, size: usize) -> Self {
        let size = u64::try_from(size).unwrap();
        Self { size, ..self }
    }
}

/// The time spent on a row: rounds are added until both minima are reached, or
/// until the time is up and there are a few.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    min_rounds: usize,
    min_time: Duration,
    max_rounds: usize,
    max_time: Duration,
}

impl Effort {
    /// A second or so, for a first look.
    pub const QUICK: Self = Self {
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
pub struct Turns {
    ours: Vec<Sample>,
    theirs: Vec<Sample>,
}

/// Alternates our calls and the peer's. Calls get the number of their round.
pub fn by_turns(
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
pub fn alone(effort: Effort, mut our_call: impl FnMut(usize) -> Sample) -> Value {
    let mut samples = Vec::new();
    rounds(effort, |round| {
        let sample = our_call(round);
        if round >= WARM_UPS {
            samples.push(sample);
        }
    });
    side(&samples)
}

/// Measures the row `id`: in turns with the peer, or alone and with the reason why there
/// is no peer.
pub fn row(
    id: &str,
    effort: Effort,
    our_call: impl FnMut(usize) -> Sample,
    their_call: Result<impl FnMut(usize) -> Sample, impl Into<Value>>,
) -> Value {
    match their_call {
        Ok(their_call) => by_turns(effort, our_call, their_call).to_json(id),
        Err(error) => {
            let error: Value = error.into();
            json!({ "id": id, "ours": alone(effort, our_call), "error": error })
        }
    }
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
    /// Returns the row `id` of both sides.
    pub fn to_json(&self, id: &str) -> Value {
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

/// A long-running program that does the work of a peer and times itself.
///
/// It reads a JSON object per line, answers with another that has `nanos` and `size`,
/// and exits at the end of its input.
#[derive(Debug)]
pub struct PeerProcess {
    child: Child,
    requests: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
}

impl PeerProcess {
    /// Starts the program.
    pub fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        Self {
            requests: child.stdin.take(),
            replies: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// Makes a call and returns what the program measured.
    pub fn call(&mut self, request: &Value) -> Sample {
        writeln!(self.requests.as_mut().unwrap(), "{request}").unwrap();
        let mut reply = String::new();
        self.replies.read_line(&mut reply).unwrap();
        let reply: Value = serde_json::from_str(&reply).unwrap();
        let number = |key| reply.get(key).and_then(Value::as_u64).unwrap();
        Sample {
            nanos: number("nanos"),
            size: number("size"),
        }
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        self.requests = None;
        let _ = self.child.wait();
    }
}

/// Returns the share of CPU time that other processes used during one idle
/// second.
pub async fn busy() -> f64 {
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
