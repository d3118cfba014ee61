//! [`Argv`]: the words of a command.

use crate::word::{Expanded, Word};

/// The words of a command, as `bash` and as `dash` expand them.
#[derive(Default)]
pub(super) struct Argv {
    pub(super) bash: Vec<Word>,
    pub(super) dash: Vec<Word>,
    pub(super) differ: bool,
}

impl Argv {
    pub(super) fn push(&mut self, expanded: Expanded) {
        match expanded.plain {
            Some(plain) => {
                self.differ = true;
                self.dash.push(plain);
            }
            None => self.dash.extend(expanded.words.iter().cloned()),
        }
        self.bash.extend(expanded.words);
    }

    pub(super) fn program(&self) -> Option<&str> {
        self.bash.first()?.literal()
    }
}
