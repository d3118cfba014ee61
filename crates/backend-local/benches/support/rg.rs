//! The program `rg`, from start to exit, with its output read to the end.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use backend_testkit::measure::Sample;

/// ripgrep in a tree.
#[derive(Debug)]
pub(crate) struct Rg {
    program: PathBuf,
    tree: PathBuf,
    /// Kept, so that only the first call pays for its pages.
    output: Vec<u8>,
}

impl Rg {
    pub(crate) fn new(program: PathBuf, tree: &Path) -> Self {
        Self {
            program,
            tree: tree.to_owned(),
            output: Vec::new(),
        }
    }

    pub(crate) fn call(&mut self, args: &[&str]) -> Sample {
        let mut command = Command::new(&self.program);
        command
            .arg("--no-require-git")
            .args(args)
            .current_dir(&self.tree)
            .env_remove("RIPGREP_CONFIG_PATH")
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        self.output.clear();
        let start = Instant::now();
        let mut child = command.spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_end(&mut self.output).unwrap();
        let status = child.wait().unwrap();
        let sample = Sample::since(start);
        assert!(status.success(), "rg failed or found nothing ({status})");
        sample.with_size(count_results(&self.output))
    }
}

/// Counts the output lines, except those that only report a matching binary
/// file.
fn count_results(output: &[u8]) -> usize {
    let is_result = |line: &&[u8]| !line.is_empty() && !is_binary_note(line);
    output
        .split(|byte| *byte == b'\n')
        .filter(is_result)
        .count()
}

fn is_binary_note(line: &[u8]) -> bool {
    let note = b": binary file matches (found ";
    line.ends_with(b")") && line.windows(note.len()).any(|window| window == note)
}
