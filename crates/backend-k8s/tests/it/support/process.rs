//! Other processes of this test program, which work in the namespace of a test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::place::Place;
use super::wait::within;

/// Set in such a process: the namespace.
const NAMESPACE: &str = "AGENTBOX_TEST_NAMESPACE";

/// Set in such a process: a name that the test has chosen.
const NAME: &str = "AGENTBOX_TEST_NAME";

/// Another process. It is killed in the end.
pub(crate) struct Part {
    child: Child,
    output: Option<BufReader<ChildStdout>>,
}

/// Returns the arguments with which this program runs only one test.
pub(crate) fn arguments(test: &str) -> [&str; 4] {
    ["--ignored", "--exact", "--nocapture", test]
}

/// Returns the variables that make a test a part of another one.
pub(crate) fn variables<'a>(place: &'a Place, name: &'a str) -> [(&'static str, &'a str); 2] {
    [(NAMESPACE, &place.namespace), (NAME, name)]
}

impl Part {
    /// Starts a process that runs this test.
    pub(crate) fn start(place: &Place, test: &str, name: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(arguments(test))
            .envs(variables(place, name))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.stdout.take().map(BufReader::new);
        Self { child, output }
    }

    /// Returns the words that it [says](say).
    pub(crate) async fn words(&mut self) -> Vec<String> {
        let output = self.output.take().unwrap();
        let reading = tokio::task::spawn_blocking(move || {
            let mut lines = output.lines().map_while(Result::ok);
            lines.find_map(|line| Some(line.split_once("says: ")?.1.to_owned()))
        });
        let said = within("the word of a process", reading).await.unwrap();
        let said = said.expect("the process ended without a word");
        said.split(' ').map(str::to_owned).collect()
    }

    /// Ends it like a crash.
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.kill();
    }
}

/// In such a process, returns the place of the test and the name; `None` in any other.
pub(crate) async fn given() -> Option<(Place, String)> {
    let namespace = std::env::var(NAMESPACE).ok()?;
    let name = std::env::var(NAME).ok()?;
    Some((Place::of_another(namespace).await, name))
}

/// Tells the test some words, and waits until it kills this process.
pub(crate) async fn say(words: &[&str]) {
    println!("says: {}", words.join(" "));
    std::io::stdout().flush().unwrap();
    let waiting = || std::io::stdin().read_to_end(&mut Vec::new());
    let waited = tokio::task::spawn_blocking(waiting).await;
    waited.unwrap().unwrap();
}
