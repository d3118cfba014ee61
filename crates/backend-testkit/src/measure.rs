//! Benchmarks that alternate our calls with those of a peer, because in separate blocks
//! the same code differs from itself by a third.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark that cannot run should stop, and it prints what it found"
)]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// If other processes use more than this share of the CPU, the times are unreliable.
const MAX_BUSY: f64 = 0.1;

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

/// A benchmark that `cargo xtask bench` has started, which reads the lines that it prints.
#[derive(Debug)]
pub struct Bench(BTreeMap<String, String>);

impl Bench {
    /// Reads the arguments of this process: names, each with a value or without.
    pub fn from_args() -> Self {
        let mut args = BTreeMap::new();
        let mut name = String::new();
        for word in std::env::args().skip(1) {
            let mut value = String::new();
            match word.strip_prefix("--") {
                Some(next) => next.clone_into(&mut name),
                None => value = word,
            }
            args.insert(name.clone(), value);
        }
        Self(args)
    }

    /// Returns the value of an argument.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns the path that an argument names.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// Returns the rows to measure, and prints how busy the machine is. Without rows there
    /// is nothing to do: `cargo test` starts benchmarks too.
    pub async fn rows(&self) -> Vec<String> {
        let Some(rows) = self.get("rows") else {
            println!("nothing to measure; run `cargo xtask bench`");
            return Vec::new();
        };
        let busy = busy().await;
        if busy > MAX_BUSY {
            eprintln!("warning: the processors are busy with other work; measure again when not");
        }
        let percent = busy * 100.0;
        println!("Other work: {percent:.0} % of the processors before the start");
        rows.split(',').map(str::to_owned).collect()
    }

    /// Starts the Python peer's side of a suite, with the image of its containers if there
    /// are any.
    pub fn python(&self, suite: &str) -> Option<PeerProcess> {
        self.python_with(suite, &[])
    }

    /// Does the same with further variables, such as the address of a service.
    pub fn python_with(&self, suite: &str, variables: &[(&str, &str)]) -> Option<PeerProcess> {
        let mut command = Command::new(self.get("python")?);
        command.args([self.get("script")?, suite]);
        command.args(self.get("image"));
        command.envs(variables.iter().copied());
        Some(PeerProcess::start(&mut command))
    }

    /// Measures and prints a row: in turns with the peer, or alone. Calls get the number of
    /// their round.
    pub fn row(
        &self,
        id: &str,
        mut our_call: impl FnMut(usize) -> Sample,
        mut their_call: Option<impl FnMut(usize) -> Sample>,
    ) {
        eprintln!("measuring {id}");
        let mut turn = |round| (our_call(round), their_call.as_mut().map(|call| call(round)));
        // It fills the caches and is not counted.
        turn(0);
        let is_quick = self.get("quick").is_some();
        let effort = if is_quick {
            Effort::QUICK
        } else {
            Effort::WHOLE
        };
        let start = Instant::now();
        let mut turns = Vec::new();
        while effort.goes_on(turns.len(), start.elapsed()) {
            turns.push(turn(turns.len() + 1));
        }
        let (ours, theirs): (Vec<_>, Vec<_>) = turns.into_iter().unzip();
        let theirs: Option<Vec<_>> = theirs.into_iter().collect();
        let rounds = theirs.as_ref().map(Vec::len);
        let (ours, peer) = (side(&ours), theirs.as_deref().map(side));
        println!(
            "{}",
            json!({ "id": id, "rounds": rounds, "ours": ours, "peer": peer })
        );
    }
}

/// Prints a row that is no time: an amount of the row's unit, or bytes of memory.
pub fn figure(id: &str, amount: f64) {
    println!("{}", json!({ "id": id, "ours": { "median": amount } }));
}

/// Prints a row about memory.
pub fn memory(id: &str, our_bytes: u64, their_bytes: Option<u64>, size: u64) {
    let figure = |bytes: u64| json!({ "median": bytes, "size": size });
    let (ours, peer) = (figure(our_bytes), their_bytes.map(figure));
    println!("{}", json!({ "id": id, "ours": ours, "peer": peer }));
}

/// The time spent on a row: rounds are added until both minima are reached, or
/// until the time is up and there are a few.
struct Effort {
    min_rounds: usize,
    min_time: Duration,
    max_rounds: usize,
    max_time: Duration,
}

impl Effort {
    /// A second or so, for a first look.
    const QUICK: Self = Self {
        min_rounds: 5,
        min_time: Duration::from_secs(1),
        max_rounds: 200,
        max_time: Duration::from_secs(10),
    };

    const WHOLE: Self = Self {
        min_rounds: 9,
        min_time: Duration::from_secs(8),
        max_rounds: 2_000,
        max_time: Duration::from_secs(60),
    };

    fn goes_on(&self, rounds: usize, time: Duration) -> bool {
        let is_enough = rounds >= self.min_rounds && time >= self.min_time;
        let is_late = rounds >= FEW_ROUNDS && time >= self.max_time;
        rounds < self.max_rounds && !is_enough && !is_late
    }
}

/// Rounds that are counted even if each takes long.
const FEW_ROUNDS: usize = 3;

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
    fn start(command: &mut Command) -> Self {
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
async fn busy() -> f64 {
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
