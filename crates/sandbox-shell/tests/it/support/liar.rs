//! A machine whose programs give wrong answers.

use std::borrow::Cow;

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{Result, VPath};
use bytes::Bytes;
use futures::future::FutureExt as _;
use futures::stream::{self, BoxStream, StreamExt as _};
use sandbox_wire::{Machine, OutputChunk, Process, Spawn};
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// The kind of wrong answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lie {
    /// Garbage.
    Garbage,
    /// Answers that never end.
    Flood,
    /// No answer, but endless error output.
    Complains,
    /// Endless empty parts.
    Parts,
    /// No answer: the program ends.
    Nothing,
    /// Answers that break off.
    DiesInTheMiddle,
    /// An error with an unknown status word.
    Wrong(&'static str),
    /// A well-formed answer with this content.
    Answer(&'static [u8]),
    /// No shell at all.
    NoShell,
}

/// A machine that lies.
#[derive(Debug)]
pub(crate) struct Liar(Lie);

impl Liar {
    pub(crate) fn new(lie: Lie) -> Self {
        Self(lie)
    }
}

/// Returns the program's answer to a request with this secret.
fn answer(lie: Lie, secret: &str) -> BoxStream<'static, Result<OutputChunk>> {
    let end = |word: &str| Bytes::from(format!("\u{1e}{secret} {word}\n"));
    let said: Vec<Bytes> = match lie {
        Lie::Garbage => vec![Bytes::from_static(b"\xff\x1e\0garbage\n"); 3],
        Lie::Flood => {
            let endless =
                stream::repeat_with(|| Ok(OutputChunk::Stdout(vec![b'x'; 65_536].into())));
            return endless.boxed();
        }
        Lie::Complains => {
            let endless =
                stream::repeat_with(|| Ok(OutputChunk::Stderr(vec![b'x'; 65_536].into())));
            return endless.boxed();
        }
        Lie::Parts => {
            let part = end("part");
            return stream::repeat_with(move || Ok(OutputChunk::Stdout(part.clone()))).boxed();
        }
        Lie::Nothing | Lie::NoShell => Vec::new(),
        Lie::DiesInTheMiddle => vec![Bytes::from(format!("half\u{1e}{}", &secret[..9]))],
        Lie::Wrong(word) => vec![end(word)],
        Lie::Answer(bytes) => vec![Bytes::from_static(bytes), end("ok")],
    };
    stream::iter(said.into_iter().map(|piece| Ok(OutputChunk::Stdout(piece)))).boxed()
}

#[async_trait]
impl Machine for Liar {
    fn name(&self) -> Cow<'static, str> {
        "liar".into()
    }

    fn id(&self) -> String {
        "liar".into()
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
        Ok(false)
    }

    async fn spawn(&self, program: Spawn) -> Result<Process> {
        let lie = self.0;
        if let Lie::NoShell = lie {
            let text = "OCI runtime exec failed: exec: \"sh\": executable file not found in $PATH";
            let said = stream::iter([Ok(OutputChunk::Stdout(Bytes::from(text)))]);
            return Ok(Process::new(
                program.stdin.then(|| Box::pin(tokio::io::sink()) as _),
                said.boxed(),
                async { Ok(126) }.boxed(),
            ));
        }
        // The greeting is right; a command's start is not.
        let secret = program.argv.get(6).cloned().unwrap_or_default();
        let greeting = if program.stdin {
            format!("\u{1e}{secret} ready 1 0\n")
        } else {
            String::new()
        };
        let (near, far) = tokio::io::duplex(1 << 20);
        let lines = BufReader::new(far).lines();
        let answers = stream::unfold(lines, move |mut lines| async move {
            let line = lines.next_line().await.ok()??;
            // The body of the last request precedes this one.
            let first = line.split(' ').next().unwrap_or_default();
            let secret = &first[first.len().saturating_sub(32)..];
            Some((answer(lie, secret), lines))
        });
        let ends = matches!(lie, Lie::Nothing | Lie::DiesInTheMiddle | Lie::Garbage);
        let answers = answers.take(if ends { 1 } else { usize::MAX }).flatten();
        let greeting = stream::iter([Ok(OutputChunk::Stdout(Bytes::from(greeting)))]);
        let output = if program.stdin {
            greeting.chain(answers).boxed()
        } else {
            answer(lie, &"0".repeat(32))
        };
        Ok(Process::new(
            program.stdin.then(|| Box::pin(near) as _),
            output,
            async { Ok(0) }.boxed(),
        ))
    }
}
