//! Tests of the pipeline with tasks that misbehave.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use backend_core::VPath;
use backend_core::search::WalkOptions;
use futures::executor::block_on;
use tempfile::TempDir;

use super::*;

const FILES: usize = 2_000;

fn many_files() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for number in 0..FILES {
        let directory = root.path().join(format!("{:03}", number / 4));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(format!("{}", number % 4)), "").unwrap();
    }
    root
}

fn walker(root: &TempDir) -> Walker {
    let start = fs::File::open(root.path()).unwrap();
    let above = Arc::new(|_: &VPath| None);
    Walker::new(start.into(), VPath::root(), WalkOptions::default(), above)
}

/// Calls the closure with the number of each file.
struct Script<F>(F);

impl<F: Fn(usize, &CancelFlag) -> Result<()> + Send + Sync + 'static> Task for Script<F> {
    const BATCH: usize = 4;
    type Worker<'a> = ();
    type Found = usize;
    type Collector = (usize, Vec<usize>);

    fn worker(&self) {}

    fn examine(&self, (): &mut (), file: Candidate, stop: &CancelFlag) -> Result<Option<usize>> {
        let number = |(directory, name): (&str, &str)| {
            4 * directory.parse::<usize>().unwrap() + name.parse::<usize>().unwrap()
        };
        let number = file.path.as_str()[1..].split_once('/').map(number).unwrap();
        (self.0)(number, stop)?;
        Ok(Some(number))
    }

    fn size(_: &usize) -> usize {
        HELD_BYTES / 8
    }

    fn collect((most, all): &mut (usize, Vec<usize>), found: usize) -> ControlFlow<()> {
        if all.len() == *most {
            return ControlFlow::Break(());
        }
        all.push(found);
        ControlFlow::Continue(())
    }
}

fn run_script(
    most: usize,
    script: impl Fn(usize, &CancelFlag) -> Result<()> + Send + Sync + 'static,
) -> Result<Vec<usize>> {
    let root = many_files();
    let walker = walker(&root);
    let found = block_on(engine::blocking(move || {
        run_on(
            4,
            Script(script),
            (most, Vec::new()),
            walker,
            CancelFlag::default(),
        )
    }));
    found.map(|((_, found), _)| found)
}

/// One file blocks until no other thread makes progress. By then few other
/// files were examined, and the order is still that of the paths.
#[test]
fn others_wait_for_the_slowest() {
    let (looked, looks) = mpsc::channel();
    let looks = Mutex::new(looks);
    let ahead = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&ahead);
    let found = run_script(FILES, move |number, _| {
        if number == 100 {
            let looks = looks.lock().unwrap();
            while looks.recv_timeout(Duration::from_millis(300)).is_ok() {
                seen.fetch_add(1, Ordering::Relaxed);
            }
        }
        let _ = looked.send(());
        Ok(())
    });
    assert_eq!(found.unwrap(), (0..FILES).collect::<Vec<_>>());
    let ahead = ahead.load(Ordering::Relaxed) - 100;
    assert!(ahead < 60, "{ahead} files looked at ahead of the slowest");
}

#[test]
fn full_collector_stops_everything() {
    let looked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&looked);
    let found = run_script(90, move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    assert_eq!(found.unwrap(), (0..90).collect::<Vec<_>>());
    let looked = looked.load(Ordering::Relaxed);
    assert!(looked < 200, "{looked} files looked at");
}

#[test]
fn panic_is_an_error_and_no_hang() {
    for culprit in [0, 3, 700, FILES - 1] {
        let found = run_script(FILES, move |number, _| {
            assert!(number != culprit, "as the test wants it");
            Ok(())
        });
        assert_eq!(found.unwrap_err().kind(), ErrorKind::Internal);
    }
}

#[test]
fn error_ends_the_search() {
    for culprit in [0, 700, FILES - 1] {
        let found = run_script(FILES, move |number, _| {
            if number == culprit {
                Err(Error::unavailable("as the test wants it"))
            } else {
                Ok(())
            }
        });
        assert_eq!(found.unwrap_err().kind(), ErrorKind::Unavailable);
    }
}

#[test]
fn told_to_stop_is_no_answer() {
    let found = run_script(FILES, |number, stop| {
        if number == 500 {
            stop.set();
        }
        Ok(())
    });
    assert_eq!(found.unwrap_err().kind(), ErrorKind::Cancelled);
}

/// Returns the number of this process's handles beneath `root`.
fn open_beneath(root: &std::path::Path) -> usize {
    let handles = fs::read_dir("/proc/self/fd").unwrap().filter_map(|handle| {
        let target = fs::read_link(handle.ok()?.path()).ok()?;
        target.starts_with(root).then_some(())
    });
    handles.count()
}

#[test]
fn few_handles_are_open() {
    let root = tempfile::tempdir().unwrap();
    for number in 0..1_000 {
        let directory = root.path().join(format!("{number:03}"));
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("0"), "").unwrap();
    }
    let walker = walker(&root);
    let beneath = root.path().to_owned();
    let most = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&most);
    let script = Script(move |number, _: &CancelFlag| {
        if number % 64 == 0 {
            seen.fetch_max(open_beneath(&beneath), Ordering::Relaxed);
        }
        Ok(())
    });
    let ((_, found), _) = run_on(
        4,
        script,
        (5_000, Vec::new()),
        walker,
        CancelFlag::default(),
    )
    .unwrap();
    assert_eq!(found.len(), 1_000);
    let most = most.load(Ordering::Relaxed);
    // Four threads with the directories of one batch each, the path down, and what is
    // listed ahead.
    let bound = 4 * 4 + 3 + crate::search::ahead::AHEAD;
    assert!((1..=bound).contains(&most), "{most} handles");
    assert_eq!(open_beneath(root.path()), 0);
}
