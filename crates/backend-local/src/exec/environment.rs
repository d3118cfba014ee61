//! The environment of commands.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Substrings of a name that mark a variable as secret, in upper or lower case.
const SECRET_PARTS: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "PRIVATE",
    "COOKIE",
    "SESSION_ID",
];

/// Words of a name, between underscores, that mark a variable as secret.
const SECRET_WORDS: &[&str] = &["PAT", "PWD", "PASS", "AUTH", "DSN", "JWT"];

/// Names of secrets and of ways to reach them: agents that sign for every
/// process that reaches their socket, and addresses that usually contain a
/// password.
const SECRET_NAMES: &[&str] = &[
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DATABASE_URL",
    "REDIS_URL",
    "MONGODB_URI",
    "KUBECONFIG",
];

/// Set unless the caller sets them, so that no program waits for input at a
/// terminal.
const DEFAULTS: &[(&str, &str)] = &[
    // Pagers wait for a key.
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    // Editors wait for a user. `true` accepts the file as it is.
    ("EDITOR", "true"),
    ("VISUAL", "true"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    // Prompts for a user name or a password fail at once.
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("SUDO_ASKPASS", "false"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("PIP_NO_INPUT", "1"),
    ("npm_config_yes", "true"),
    // No colours and no cursor movements in output for a model.
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    // Unbuffered output, also through a pipe.
    ("PYTHONUNBUFFERED", "1"),
];

/// The `PATH` of commands if the environment has none.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The environment of commands, in layers: variables of this process, defaults
/// that keep programs from waiting for a user, variables set here, variables of
/// the command. Later layers win.
///
/// This process's environment is read once, when the backend is opened.
/// Variables whose names look like those of secrets are left out: names that
/// contain `KEY`, `TOKEN`, `SECRET`, `PASSWORD`, `PASSWD`, `PASSPHRASE`,
/// `CREDENTIAL`, `PRIVATE`, `COOKIE` or `SESSION_ID`; names with one of the
/// words `PAT`, `PWD`, `PASS`, `AUTH`, `DSN` or `JWT` between underscores; and
/// `SSH_AUTH_SOCK`, `SSH_AGENT_PID`, `GPG_AGENT_INFO`, `DATABASE_URL`,
/// `REDIS_URL`, `MONGODB_URI` and `KUBECONFIG`. Case does not matter. This
/// hides secrets but does not protect them: a command that is not confined can
/// read the environment of every process of the same user.
///
/// The defaults are `cat` for `PAGER`, `GIT_PAGER`, `MANPAGER` and
/// `SYSTEMD_PAGER`; `true` for `EDITOR`, `VISUAL`, `GIT_EDITOR` and
/// `GIT_SEQUENCE_EDITOR`; `false` for `GIT_ASKPASS`, `SSH_ASKPASS` and
/// `SUDO_ASKPASS`; and `GIT_TERMINAL_PROMPT=0`, `SSH_ASKPASS_REQUIRE=never`,
/// `DEBIAN_FRONTEND=noninteractive`, `PIP_NO_INPUT=1`, `npm_config_yes=true`,
/// `TERM=dumb`, `NO_COLOR=1` and `PYTHONUNBUFFERED=1`.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Environment {
    inherit: Inherit,
    allowed: Vec<OsString>,
    /// Variables set or removed, in the order of the calls.
    changes: Vec<(OsString, Option<OsString>)>,
}

/// The variables of this process that are inherited, besides those allowed by
/// name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Inherit {
    None,
    /// Those that do not look secret. The defaults override them.
    #[default]
    Open,
    /// All. They override the defaults.
    All,
}

impl Environment {
    /// Inherits the variables of this process that do not look secret.
    pub fn inherit() -> Self {
        Self::default()
    }

    /// Inherits all variables of this process, including those that look
    /// secret, and lets them override the defaults. This is for a program in a
    /// sandbox whose whole environment was chosen for its commands.
    pub fn everything() -> Self {
        Self {
            inherit: Inherit::All,
            ..Self::default()
        }
    }

    /// Inherits only `PATH`, `HOME`, `USER`, `LANG`, `TZ` and the variables
    /// that [`allow`](Self::allow) names.
    pub fn empty() -> Self {
        let allowed = ["PATH", "HOME", "USER", "LANG", "TZ"];
        Self {
            inherit: Inherit::None,
            allowed: allowed.map(OsString::from).to_vec(),
            ..Self::default()
        }
    }

    backend_core::setters! {
        /// Inherits a variable of this process even if its name looks secret.
        fn allow(self, name: impl Into<OsString>) { self.allowed.push(name.into()) }

        /// Sets a variable.
        fn set(self, name: impl Into<OsString>, value: impl Into<OsString>) {
            self.changes.push((name.into(), Some(value.into())));
        }

        /// Removes a variable, including one of the defaults.
        fn remove(self, name: impl Into<OsString>) { self.changes.push((name.into(), None)) }
    }

    /// Whether the caller sets or removes this variable.
    pub(crate) fn decides(&self, name: &str) -> bool {
        self.changes.iter().any(|(changed, _)| changed == name)
    }

    /// Returns the first name that is not a valid variable name, or whose value
    /// is not valid.
    pub(crate) fn broken(&self) -> Option<&OsStr> {
        let nul = |text: &OsStr| text.as_encoded_bytes().contains(&0);
        self.changes
            .iter()
            .find(|(name, value)| {
                let bytes = name.as_encoded_bytes();
                bytes.is_empty()
                    || bytes.contains(&b'=')
                    || nul(name)
                    || value.as_deref().is_some_and(nul)
            })
            .map(|(name, _)| name.as_os_str())
    }

    /// Returns the base environment of commands, given this process's
    /// variables. A command's own variables are set on top of it.
    pub(crate) fn resolve(
        &self,
        host: impl Iterator<Item = (OsString, OsString)>,
    ) -> BTreeMap<OsString, OsString> {
        let mut variables: BTreeMap<_, _> = host.filter(|(name, _)| self.passes(name)).collect();
        variables
            .entry("PATH".into())
            .or_insert_with(|| PATH.into());
        for (name, value) in DEFAULTS {
            if self.inherit != Inherit::All || !variables.contains_key(OsStr::new(name)) {
                variables.insert(name.into(), value.into());
            }
        }
        for (name, value) in &self.changes {
            match value {
                Some(value) => variables.insert(name.clone(), value.clone()),
                None => variables.remove(name),
            };
        }
        variables
    }

    fn passes(&self, name: &OsStr) -> bool {
        if self.allowed.iter().any(|allowed| allowed == name) {
            return true;
        }
        // The command has its own working directory, so this process's is not
        // passed on.
        let own = name == "PWD" || name == "OLDPWD";
        match self.inherit {
            Inherit::None => false,
            Inherit::Open => !own && !looks_secret(name),
            Inherit::All => !own,
        }
    }
}

/// Whether a variable's name suggests that its value is secret.
fn looks_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    SECRET_NAMES.contains(&name.as_str())
        || SECRET_PARTS.iter().any(|part| name.contains(part))
        || name
            .split(['_', '-', '.'])
            .any(|word| SECRET_WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> impl Iterator<Item = (OsString, OsString)> {
        [
            ("PATH", "/x"),
            ("HOME", "/home/a"),
            ("PWD", "/old"),
            ("PAGER", "less"),
            ("OPENAI_API_KEY", "k"),
            ("FOO", "bar"),
        ]
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
    }

    fn get(variables: &BTreeMap<OsString, OsString>, name: &str) -> Option<String> {
        let value = variables.get(OsStr::new(name))?;
        value.to_str().map(String::from)
    }

    #[test]
    fn secrets_are_told_by_name() {
        let secrets = "OPENAI_API_KEY openai_api_key AWS_SECRET_ACCESS_KEY GITHUB_TOKEN GH_PAT \
            PGPASSWORD MYSQL_PWD NPM_CONFIG__AUTH GOOGLE_APPLICATION_CREDENTIALS SSH_AUTH_SOCK \
            STRIPEKEY SENTRY_DSN";
        for name in secrets.split(' ') {
            assert!(looks_secret(OsStr::new(name)), "{name}");
        }
        let others = "PATH LD_LIBRARY_PATH PYTHONPATH HOME LANG XDG_SESSION_TYPE BYPASS_HOME \
            GIT_AUTHOR_NAME";
        for name in others.split(' ') {
            assert!(!looks_secret(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn later_layers_win() {
        let variables = Environment::inherit()
            .set("PAGER", "more")
            .set("EMPTY", "")
            .remove("NO_COLOR")
            .resolve(host());
        assert_eq!(get(&variables, "PATH").as_deref(), Some("/x"));
        assert_eq!(get(&variables, "FOO").as_deref(), Some("bar"));
        assert_eq!(get(&variables, "PAGER").as_deref(), Some("more"));
        assert_eq!(get(&variables, "EMPTY").as_deref(), Some(""));
        assert_eq!(get(&variables, "GIT_PAGER").as_deref(), Some("cat"));
        for name in ["OPENAI_API_KEY", "PWD", "NO_COLOR"] {
            assert_eq!(get(&variables, name), None, "{name}");
        }
    }

    #[test]
    fn a_default_beats_the_host_and_allow_beats_the_filter() {
        let inherited = Environment::inherit().allow("OPENAI_API_KEY");
        let variables = inherited.resolve(host());
        assert_eq!(get(&variables, "PAGER").as_deref(), Some("cat"));
        assert_eq!(get(&variables, "OPENAI_API_KEY").as_deref(), Some("k"));
    }

    #[test]
    fn everything_is_all_of_the_host_before_the_defaults() {
        let variables = Environment::everything().resolve(host());
        assert_eq!(get(&variables, "OPENAI_API_KEY").as_deref(), Some("k"));
        assert_eq!(get(&variables, "PAGER").as_deref(), Some("less"));
        assert_eq!(get(&variables, "GIT_PAGER").as_deref(), Some("cat"));
        assert_eq!(get(&variables, "PWD"), None);
    }

    #[test]
    fn empty_is_nearly_empty() {
        let variables = Environment::empty().resolve(host());
        assert_eq!(get(&variables, "FOO"), None);
        assert_eq!(get(&variables, "HOME").as_deref(), Some("/home/a"));
        let bare = Environment::empty().resolve(std::iter::empty());
        assert_eq!(get(&bare, "PATH").as_deref(), Some(PATH));
    }

    #[test]
    fn impossible_names_are_found() {
        for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0")] {
            assert!(Environment::empty().set(name, value).broken().is_some());
        }
        assert!(Environment::empty().set("A", "b=c").broken().is_none());
    }
}
