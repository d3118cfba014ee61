//! Shells that talk without answering, on a clock that advances by itself.

use std::borrow::Cow;
use std::path::Path;

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{ErrorKind, VPath};
use futures::stream;

use super::*;

/// The output of a shell after its greeting.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Talk {
    /// A byte of error output every second, instead of a greeting.
    ComplainsFirst,
    /// A byte of error output every second.
    Complains,
    /// A byte of an answer every minute.
    Drips,
    /// Empty pieces of an answer.
    Says,
}

/// A machine whose shells talk like this.
#[derive(Debug)]
pub(crate) struct Talker(pub(crate) Talk);

#[async_trait]
impl Machine for Talker {
    fn name(&self) -> Cow<'static, str> {
        "talker".into()
    }

    fn id(&self) -> String {
        "talker".into()
    }

    fn working_dir(&self) -> VPath {
        VPath::root()
    }

    async fn start(&self) -> Result<()> {
        Ok(())
    }

    async fn stop(&self, _: StopMode) -> Result<()> {
        Ok(())
    }

    async fn is_alive(&self) -> Result<bool> {
        Ok(true)
    }

    async fn spawn(&self, program: Spawn) -> Result<Process> {
        let talk = self.0;
        let secret = &program.argv[6];
        let greeting = format!("\u{1e}{secret} ready 1 0\n");
        let (pause, piece) = match talk {
            Talk::ComplainsFirst | Talk::Complains => (1, OutputChunk::Stderr(Bytes::from("x"))),
            Talk::Drips => (60, OutputChunk::Stdout(Bytes::from("x"))),
            Talk::Says => (60, OutputChunk::Stdout(Bytes::new())),
        };
        let greeting = match talk {
            Talk::ComplainsFirst => stream::empty().boxed(),
            _ => stream::iter([Ok(OutputChunk::Stdout(greeting.into()))]).boxed(),
        };
        let pieces = stream::repeat(piece).then(move |piece| async move {
            tokio::time::sleep(Duration::from_secs(pause)).await;
            Ok(piece)
        });
        Ok(Process::new(
            Some(Box::pin(tokio::io::sink())),
            greeting.chain(pieces).boxed(),
            futures::future::pending().boxed(),
        ))
    }
}

/// Returns the time until a shell is given up, in seconds.
async fn given_up(talk: Talk) -> u64 {
    let machine = Talker(talk);
    let began = Instant::now();
    let error = match Worker::open(&machine, "").await {
        Ok(mut worker) => {
            let request = Request::new("stat").arg("/");
            let asked = worker.exchange(&machine, &request).await;
            asked.map(drop).unwrap_err()
        }
        Err(error) => error,
    };
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    began.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn talking_without_answering_gets_no_more_time() {
    let day = Duration::from_secs(24 * 60 * 60);
    for (talk, most) in [
        (Talk::ComplainsFirst, HELLO),
        (Talk::Complains, PATIENCE),
        (Talk::Drips, PATIENCE + Duration::from_secs(1)),
        (Talk::Says, PATIENCE),
    ] {
        let taken = tokio::time::timeout(day, given_up(talk)).await;
        let taken = taken.unwrap_or_else(|_| panic!("{talk:?} is waited for"));
        assert!(taken <= most.as_secs(), "{talk:?} took {taken} s");
    }
}

/// A directory whose name ends with a line end, and in it a path from the root.
#[test]
fn a_look_ahead_stays_beneath_its_start() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let (start, outside) = (place.join("start"), place.join("outside.txt"));
    let named = format!("{}/line\n{}", start.display(), outside.display());
    std::fs::create_dir_all(Path::new(&named).parent().unwrap()).unwrap();
    std::fs::write(&named, "named").unwrap();
    std::fs::write(&outside, "outside").unwrap();
    std::fs::write(start.join("inside.txt"), "inside").unwrap();
    let functions = [include_str!("paths.sh"), include_str!("read.sh")].concat();
    let script = format!("{functions}\nN=word\nop_peek \"$1\" a 64 .git");
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", &script, "sh"]).arg(&start);
    let printed = shell.output().unwrap().stdout;
    let printed = String::from_utf8(printed).unwrap();
    assert_eq!(printed, "inside.txt\ninside\u{1e}word part\n");
}
