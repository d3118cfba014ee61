//! Turns queries into the walk and the search that answer them.

use crate::error::{Error, Result};
use crate::limits::GREP_CONTEXT_LINES;
use crate::ops::{GlobQuery, GrepQuery};
use crate::search::glob::Glob;
use crate::search::grep::Grep;
use crate::search::walk::WalkOptions;

impl GlobQuery {
    /// Checks the query and prepares the walk that answers it.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a bad pattern or a limit of zero.
    pub fn compile(&self) -> Result<WalkOptions> {
        if self.limit == 0 {
            return Err(Error::invalid_input(
                "a limit of zero files finds nothing; ask for at least one",
            ));
        }
        let pattern = Glob::new(&self.pattern)?;
        pattern.check_start(&self.path)?;
        Ok(WalkOptions {
            hidden: self.hidden,
            ignored: self.ignored,
            generated: self.generated,
            exclude: self.exclude.clone(),
            pattern: Some(pattern),
        })
    }
}

impl GrepQuery {
    /// Checks the query and prepares the walk and the search that answer it.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a bad pattern, a bad file filter, too much context or
    /// a maximum of zero.
    pub fn compile(&self) -> Result<(WalkOptions, Grep)> {
        if self.max_matches == 0 || self.max_bytes == 0 || self.max_line_bytes == 0 {
            return Err(Error::invalid_input(
                "a maximum of zero finds nothing; ask for at least one",
            ));
        }
        if self.before.max(self.after) > GREP_CONTEXT_LINES {
            return Err(Error::invalid_input(format!(
                "more than {GREP_CONTEXT_LINES} lines of context; read the file instead"
            )));
        }
        let files = self.files.as_deref().map(Glob::new).transpose()?;
        if let Some(files) = &files {
            files.check_start(&self.path)?;
        }
        let walk = WalkOptions {
            hidden: self.hidden,
            ignored: self.ignored,
            generated: self.generated,
            exclude: self.exclude.clone(),
            pattern: files,
        };
        Ok((walk, Grep::new(self)?))
    }
}
