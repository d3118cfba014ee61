//! [`Sampler`]: the resource usage of a machine, from the control group files that are
//! visible in it.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use backend_core::ops::ReadOptions;
use backend_core::sync::lock;
use backend_core::{Backend, Error, Result, VPath};

use crate::stats::Stats;

/// The size of the largest file that is read.
const FILE_BYTES: u64 = 64 * 1024;
/// The numbers from which on a limit is none: version 1 writes a huge one.
const NO_LIMIT: u64 = 1 << 62;

/// Takes samples of a machine's resource usage, by reading its files.
#[derive(Debug, Default)]
pub struct Sampler {
    /// The counters of the last sample.
    before: Mutex<Option<Counters>>,
}

impl Sampler {
    /// Takes a sample. The CPU usage is that since the previous one.
    ///
    /// # Errors
    ///
    /// `Unsupported` if the files are not visible in the machine; any error of the backend.
    pub async fn sample(&self, backend: &dyn Backend) -> Result<Stats> {
        let before = *lock(&self.before);
        let (stats, counters) = sample(backend, before).await?;
        *lock(&self.before) = Some(counters);
        Ok(stats)
    }
}

/// The counters of a sample, for computing the usage in the next one.
#[derive(Debug, Clone, Copy)]
struct Counters {
    used: Duration,
    at: Instant,
}

/// The files of one version of control groups.
struct Files {
    memory: &'static str,
    memory_limit: &'static str,
    memory_stat: &'static str,
    /// The name in `memory_stat` of the cache that can be reclaimed.
    cache: &'static str,
    cpu: &'static str,
    pids: &'static str,
    /// Reads the used CPU time from the content of `cpu`.
    used: fn(&str) -> Option<Duration>,
}

const VERSION_2: Files = Files {
    memory: "/sys/fs/cgroup/memory.current",
    memory_limit: "/sys/fs/cgroup/memory.max",
    memory_stat: "/sys/fs/cgroup/memory.stat",
    cache: "inactive_file",
    cpu: "/sys/fs/cgroup/cpu.stat",
    pids: "/sys/fs/cgroup/pids.current",
    used: |text| field(text, "usage_usec").map(Duration::from_micros),
};

const VERSION_1: Files = Files {
    memory: "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    memory_limit: "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    memory_stat: "/sys/fs/cgroup/memory/memory.stat",
    cache: "total_inactive_file",
    cpu: "/sys/fs/cgroup/cpuacct/cpuacct.usage",
    pids: "/sys/fs/cgroup/pids/pids.current",
    used: |text| number(text).map(Duration::from_nanos),
};

async fn sample(backend: &dyn Backend, before: Option<Counters>) -> Result<(Stats, Counters)> {
    for files in [VERSION_2, VERSION_1] {
        if let Some(memory) = read(backend, files.memory).await? {
            return files.sample(backend, &memory, before).await;
        }
    }
    Err(Error::unsupported(
        "the sandbox does not show its resource usage; ask the service that runs it",
    ))
}

impl Files {
    async fn sample(
        &self,
        backend: &dyn Backend,
        memory: &str,
        before: Option<Counters>,
    ) -> Result<(Stats, Counters)> {
        let at = Instant::now();
        let (limit, stat, cpu, pids) = futures::try_join!(
            read(backend, self.memory_limit),
            read(backend, self.memory_stat),
            read(backend, self.cpu),
            read(backend, self.pids),
        )?;
        let cache = stat.and_then(|text| field(&text, self.cache));
        let limit = limit.and_then(|text| number(&text));
        let used = cpu.and_then(|text| (self.used)(&text)).unwrap_or_default();
        let memory = number(memory).unwrap_or_default();
        let stats = Stats {
            cpu_percent: before.and_then(|before| share(before, used, at)),
            memory: memory.saturating_sub(cache.unwrap_or_default()),
            memory_limit: limit.filter(|limit| *limit < NO_LIMIT).unwrap_or_default(),
            pids: pids.and_then(|text| number(&text)).unwrap_or_default(),
        };
        Ok((stats, Counters { used, at }))
    }
}

/// The percentage of one CPU that was used between two samples.
fn share(before: Counters, used: Duration, at: Instant) -> Option<f64> {
    let used = used.checked_sub(before.used)?;
    let passed = at.checked_duration_since(before.at)?;
    (!passed.is_zero()).then(|| used.as_secs_f64() / passed.as_secs_f64() * 100.0)
}

/// Reads a file. `None` if there is none.
async fn read(backend: &dyn Backend, path: &str) -> Result<Option<String>> {
    let path = VPath::parse(path)?;
    let options = ReadOptions::default().max_bytes(FILE_BYTES);
    let found = Error::none_if_missing(backend.read(&path, options).await)?;
    Ok(found.map(|file| String::from_utf8_lossy(&file.data).into_owned()))
}

/// Reads the number that is the whole content of a file. `None` for `max`.
fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// Finds a number by its name in lines of names and numbers.
fn field(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let (_, value) = lines.find(|(found, _)| *found == name)?;
    number(value)
}

#[cfg(test)]
mod tests {
    use backend_core::ErrorKind;
    use backend_core::ops::{Content, WriteOptions};
    use backend_state::StateBackend;

    use super::*;

    async fn with_files(files: &[(&str, &str)]) -> StateBackend {
        let backend = StateBackend::new();
        for (name, text) in files {
            let path = VPath::parse(&format!("/sys/fs/cgroup/{name}")).unwrap();
            let content = Content::from((*text).to_owned());
            let options = WriteOptions::default();
            backend.write(&path, content, options).await.unwrap();
        }
        backend
    }

    #[tokio::test]
    async fn version_2() {
        let backend = with_files(&[
            ("memory.current", "1000\n"),
            ("memory.max", "5000\n"),
            (
                "memory.stat",
                "anon 600\ninactive_file 300\nactive_file 7\n",
            ),
            ("cpu.stat", "usage_usec 1500000\nuser_usec 1\n"),
            ("pids.current", "3\n"),
        ])
        .await;
        let (stats, counters) = sample(&backend, None).await.unwrap();
        assert_eq!(stats.cpu_percent, None);
        assert_eq!(
            (stats.memory, stats.memory_limit, stats.pids),
            (700, 5000, 3)
        );
        assert_eq!(counters.used, Duration::from_millis(1500));
    }

    #[tokio::test]
    async fn version_1() {
        let backend = with_files(&[
            ("memory/memory.usage_in_bytes", "1000\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            (
                "memory/memory.stat",
                "inactive_file 1\ntotal_inactive_file 400\n",
            ),
            ("cpuacct/cpuacct.usage", "2000000000\n"),
            ("pids/pids.current", "4\n"),
        ])
        .await;
        let (stats, counters) = sample(&backend, None).await.unwrap();
        assert_eq!((stats.memory, stats.memory_limit, stats.pids), (600, 0, 4));
        assert_eq!(counters.used, Duration::from_secs(2));
    }

    #[tokio::test]
    async fn files_that_are_missing_or_make_no_sense() {
        let backend = with_files(&[]).await;
        let error = sample(&backend, None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let strange = [
            ("memory.current", "-1"),
            ("memory.max", "max\n"),
            ("memory.stat", "inactive_file\n\u{0} 7"),
            ("cpu.stat", "usage_usec 99999999999999999999999"),
        ];
        let backend = with_files(&strange).await;
        let (stats, _) = sample(&backend, None).await.unwrap();
        assert_eq!(stats, Stats::default());
    }

    #[test]
    fn the_share_is_that_since_the_sample_before() {
        let at = Instant::now();
        let before = Counters {
            used: Duration::from_secs(1),
            at,
        };
        let after = |used, passed| {
            let passed = Duration::from_secs(passed);
            share(before, Duration::from_secs(used), at + passed)
        };
        assert_eq!(after(2, 2), Some(50.0));
        assert_eq!(after(5, 2), Some(200.0));
        assert_eq!(after(0, 2), None, "the counter went back");
        assert_eq!(after(2, 0), None, "no time has passed");
    }
}
