//! The benchmark's command line, as `cargo xtask bench` passes it.

use std::path::PathBuf;

use backend_testkit::measure::Effort;

/// The task of this process.
#[derive(Debug)]
pub(crate) enum Task {
    Nothing,
    /// One search, to measure its memory use.
    Grep {
        path: PathBuf,
        pattern: String,
    },
    Rows(Args),
}

/// The locations of the files and the peers. A path that no selected row needs
/// is empty.
#[derive(Debug, Default)]
pub(crate) struct Args {
    pub(crate) rows: Vec<String>,
    /// A directory of sources.
    pub(crate) tree: PathBuf,
    /// An empty directory that may be filled.
    pub(crate) scratch: PathBuf,
    /// One large file.
    pub(crate) big: PathBuf,
    /// A directory of many small files.
    pub(crate) many: PathBuf,
    /// Peers; `None` if they are not available.
    pub(crate) rg: Option<PathBuf>,
    pub(crate) python: Option<PathBuf>,
    pub(crate) script: PathBuf,
    pub(crate) tokio: bool,
    pub(crate) effort: Effort,
}

impl Args {
    /// Parses the arguments. Without rows there is nothing to do: `cargo test`
    /// starts benchmarks too.
    pub(crate) fn task(words: impl Iterator<Item = String>) -> Task {
        // Cargo adds this to the arguments.
        let mut words = words.filter(|word| word != "--bench");
        let mut args = Self::default();
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_default();
            match word.as_str() {
                "--child" => {
                    let operation = value();
                    assert_eq!(operation, "grep", "a child can only search");
                    let (path, pattern) = (value().into(), value());
                    return Task::Grep { path, pattern };
                }
                "--rows" => args.rows = value().split(',').map(str::to_owned).collect(),
                "--tree" => args.tree = value().into(),
                "--scratch" => args.scratch = value().into(),
                "--big" => args.big = value().into(),
                "--many" => args.many = value().into(),
                "--rg" => args.rg = Some(value().into()),
                "--python" => args.python = Some(value().into()),
                "--script" => args.script = value().into(),
                "--tokio" => args.tokio = true,
                "--quick" => args.effort = Effort::QUICK,
                _ => eprintln!("ignored: {word}"),
            }
        }
        if args.rows.is_empty() {
            Task::Nothing
        } else {
            Task::Rows(args)
        }
    }
}
