//! [`LevelTooLow`]: the check that every sandbox makes before it runs a command.

use std::borrow::Cow;
use std::fmt;

use crate::capability::{BackendInfo, Enforcement};
use crate::error::{Error, ErrorKind};
use crate::ops::Command;

/// The refusal of a command that requires more than the sandbox can enforce.
///
/// ```
/// use backend_core::ops::{Command, View};
/// use backend_core::{BackendInfo, Capabilities, Enforcement};
///
/// let info = BackendInfo::new("fake", Capabilities::default().with_commands());
/// let command = Command::new("true").view(View::default().required(Enforcement::View));
/// let refusal = command.check_level(&info).unwrap_err();
/// assert_eq!((refusal.required, refusal.level), (Enforcement::View, Enforcement::Words));
/// assert!(Command::new("true").check_level(&info).is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelTooLow {
    /// The level that the command requires.
    pub required: Enforcement,
    /// The level of the sandbox.
    pub level: Enforcement,
    /// The reason why that is not higher, with the next step, if it is known.
    pub limit: Option<Cow<'static, str>>,
}

impl LevelTooLow {
    /// Checks that a level is as high as required. `limit` is the reason if it is not.
    ///
    /// # Errors
    ///
    /// The refusal if `level` is lower than `required`.
    pub fn check(
        required: Enforcement,
        level: Enforcement,
        limit: Option<Cow<'static, str>>,
    ) -> Result<(), Self> {
        if level >= required {
            return Ok(());
        }
        Err(Self {
            required,
            level,
            limit,
        })
    }
}

impl fmt::Display for LevelTooLow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            required, level, ..
        } = self;
        write!(
            f,
            "commands must have the enforcement level '{required}' and have '{level}' here"
        )?;
        match &self.limit {
            Some(limit) => write!(f, ": {limit}"),
            None => f.write_str("; use a sandbox that has that level, or require less"),
        }
    }
}

impl std::error::Error for LevelTooLow {}

impl From<LevelTooLow> for Error {
    fn from(refusal: LevelTooLow) -> Self {
        Self::new(ErrorKind::PermissionDenied, refusal.to_string())
    }
}

impl Command {
    /// Checks that the sandbox described by `info` can enforce what the command
    /// [requires](crate::ops::View::required). Every sandbox calls this before it runs a
    /// command.
    ///
    /// # Errors
    ///
    /// The refusal, which becomes a `PermissionDenied`, if the level of the sandbox is too
    /// low.
    pub fn check_level(&self, info: &BackendInfo) -> Result<(), LevelTooLow> {
        LevelTooLow::check(
            self.view.required,
            info.enforcement,
            info.enforcement_limit.clone(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::Capabilities;
    use crate::ops::View;

    #[test]
    fn a_level_below_the_required_one_is_refused_with_the_cause() {
        let levels = [Enforcement::Words, Enforcement::Landlock, Enforcement::View];
        for level in levels {
            for required in levels {
                let info = BackendInfo::new("x", Capabilities::default()).enforcement(level);
                let command = Command::new("true").view(View::default().required(required));
                let checked = command.check_level(&info);
                assert_eq!(checked.is_ok(), level >= required, "{level} {required}");
            }
        }
        let limit = Cow::Borrowed("the kernel is too old; use 6.12");
        let info = BackendInfo::new("x", Capabilities::default()).enforcement_limit(limit);
        let command = Command::new("true").view(View::default().required(Enforcement::View));
        let error = Error::from(command.check_level(&info).unwrap_err());
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert_eq!(
            error.to_string(),
            "commands must have the enforcement level 'view' and have 'words' here: the kernel is \
             too old; use 6.12"
        );
        let unexplained = BackendInfo::new("x", Capabilities::default());
        let error = command.check_level(&unexplained).unwrap_err().to_string();
        assert!(
            error.ends_with("; use a sandbox that has that level, or require less"),
            "{error}"
        );
    }
}
