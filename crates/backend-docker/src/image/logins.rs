//! [`Logins`]: credentials for image registries.

use std::collections::BTreeMap;
use std::fmt;

use backend_core::{Quoted, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bollard::auth::DockerCredentials;
use serde::Deserialize;

use crate::check;

/// The registry of image names that do not start with one.
const DEFAULT: &str = "docker.io";
/// The daemon's name for it, for historical reasons.
const DEFAULT_ADDRESS: &str = "https://index.docker.io/v1/";

/// Credentials for registries that require a login.
///
/// Credentials are sent to the daemon, with the request to pull an image from their own
/// registry, and nowhere else: neither into an image nor into a message. `Debug` shows
/// the registries only.
///
/// ```
/// use backend_docker::image::{BuildOptions, Logins};
///
/// let logins = Logins::new().with_password("ghcr.io", "me", "a token");
/// let options = BuildOptions::new().with_logins(logins);
/// assert_eq!(format!("{:?}", options.logins), r#"Logins["ghcr.io"]"#);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Logins(BTreeMap<String, Login>);

/// The credentials for one registry.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Login {
    Password { user: String, password: String },
    Token(String),
}

impl Logins {
    /// Returns an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a user name and a password, or an access token in place of the password.
    #[must_use]
    pub fn with_password(
        self,
        registry: &str,
        user: impl Into<String>,
        password: impl Into<String>,
    ) -> Self {
        self.with(
            registry,
            Login::Password {
                user: user.into(),
                password: password.into(),
            },
        )
    }

    /// Adds an identity token, which a registry issued for an earlier login.
    #[must_use]
    pub fn with_identity_token(self, registry: &str, token: impl Into<String>) -> Self {
        self.with(registry, Login::Token(token.into()))
    }

    fn with(mut self, registry: &str, login: Login) -> Self {
        self.0.insert(host(registry), login);
        self
    }

    /// Parses the `config.json` that `docker login` writes.
    ///
    /// Credentials that it delegates to a helper program (`credsStore`, `credHelpers`)
    /// are not in that file. Pull such images with `docker pull`.
    ///
    /// # Errors
    ///
    /// `Config` if the text is not such a file, or a login in it cannot be read.
    pub fn from_docker_config(text: &str) -> Result<Self> {
        let file: File = serde_json::from_str(text).map_err(|error| {
            // The parser's message could quote credentials.
            let (line, column) = (error.line(), error.column());
            check::wrong(format!(
                "this is not a configuration file of docker (line {line}, column {column}); \
                 log in again with 'docker login'"
            ))
        })?;
        let mut logins = Self::new();
        for (registry, entry) in file.auths {
            if let Some(login) = entry.login(&registry)? {
                logins = logins.with(&registry, login);
            }
        }
        Ok(logins)
    }

    /// Returns the registries that have credentials, sorted.
    pub fn registries(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the credentials for the registry that an image comes from.
    pub(super) fn of_image(&self, image: &str) -> Option<&Login> {
        self.0.get(&registry(image))
    }

    /// Returns the same credentials in the daemon's format.
    pub(super) fn credentials(&self, image: &str) -> Option<DockerCredentials> {
        let registry = registry(image);
        let login = self.0.get(&registry)?.clone();
        let address = if registry == DEFAULT {
            DEFAULT_ADDRESS.to_owned()
        } else {
            registry
        };
        let mut credentials = DockerCredentials {
            serveraddress: Some(address),
            ..DockerCredentials::default()
        };
        match login {
            Login::Password { user, password } => {
                credentials.username = Some(user);
                credentials.password = Some(password);
            }
            Login::Token(token) => credentials.identitytoken = Some(token),
        }
        Some(credentials)
    }
}

impl fmt::Debug for Logins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Logins")?;
        f.debug_list().entries(self.0.keys()).finish()
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login")
    }
}

/// The fields of `config.json` that are read.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "lowercase", default)]
struct Entry {
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
}

impl Entry {
    /// Returns `None` if a helper program keeps the credentials.
    fn login(self, registry: &str) -> Result<Option<Login>> {
        let wrong = || {
            check::wrong(format!(
                "the login for {} cannot be read; log in again with 'docker login'",
                Quoted::new(registry)
            ))
        };
        if !self.identitytoken.is_empty() {
            return Ok(Some(Login::Token(self.identitytoken)));
        }
        if self.auth.is_empty() {
            let Self {
                username: user,
                password,
                ..
            } = self;
            return Ok((!user.is_empty()).then_some(Login::Password { user, password }));
        }
        let bytes = STANDARD.decode(&self.auth).map_err(|_| wrong())?;
        let text = String::from_utf8(bytes).map_err(|_| wrong())?;
        let (user, password) = text.split_once(':').ok_or_else(wrong)?;
        Ok(Some(Login::Password {
            user: user.to_owned(),
            // Old versions of docker padded it with NUL bytes.
            password: password.trim_end_matches('\0').to_owned(),
        }))
    }
}

/// Returns the registry that an image comes from.
fn registry(image: &str) -> String {
    match image.split_once('/') {
        Some((first, _)) if first == "localhost" || first.contains(['.', ':']) => host(first),
        _ => DEFAULT.to_owned(),
    }
}

/// Normalizes the name of a registry.
fn host(registry: &str) -> String {
    let bare = registry
        .strip_prefix("https://")
        .or_else(|| registry.strip_prefix("http://"))
        .unwrap_or(registry);
    let bare = bare.split('/').next().unwrap_or_default();
    match bare {
        "index.docker.io" | "registry-1.docker.io" => DEFAULT.to_owned(),
        other => other.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use backend_core::ErrorKind;

    use super::*;

    #[test]
    fn an_image_finds_the_login_of_its_registry() {
        let logins = Logins::new()
            .with_password(DEFAULT_ADDRESS, "hub", "1")
            .with_password("https://Mirror.example:5000/v2/", "mirror", "2")
            .with_identity_token("localhost", "3");
        let user = |image: &str| logins.credentials(image)?.username;
        for image in ["python", "library/python:3", "docker.io/python@sha256:a"] {
            assert_eq!(user(image).as_deref(), Some("hub"), "{image}");
        }
        let mirror = "mirror.example:5000/team/python:3";
        assert_eq!(user(mirror).as_deref(), Some("mirror"));
        let hub = logins.credentials("python").unwrap();
        assert_eq!(hub.serveraddress.as_deref(), Some(DEFAULT_ADDRESS));
        let local = logins.credentials("localhost/python").unwrap();
        assert_eq!(local.identitytoken.as_deref(), Some("3"));
        // Credentials are sent to their own registry and to no other.
        for image in [
            "mirror.example/python",
            "evil.example/mirror.example:5000/x",
        ] {
            assert_eq!(logins.of_image(image), None, "{image}");
        }
    }

    #[test]
    fn what_docker_wrote_is_read() {
        // me:pass:word, and one kept by a helper program.
        let text = r#"{
            "auths": {
                "https://index.docker.io/v1/": { "auth": "bWU6cGFzczp3b3Jk" },
                "ghcr.io": {},
                "azure.example": { "auth": "AAAA", "identitytoken": "token" }
            },
            "credsStore": "desktop", "HttpHeaders": { "User-Agent": "x" }
        }"#;
        let logins = Logins::from_docker_config(text).unwrap();
        let registries: Vec<_> = logins.registries().collect();
        assert_eq!(registries, ["azure.example", "docker.io"]);
        let hub = logins.credentials("python:3").unwrap();
        assert_eq!(hub.username.as_deref(), Some("me"));
        assert_eq!(hub.password.as_deref(), Some("pass:word"));
        assert_eq!(Logins::from_docker_config("{}").unwrap(), Logins::new());
    }

    #[test]
    fn nothing_shows_a_secret() {
        let logins = Logins::new()
            .with_password("a.example", "me", "geheim")
            .with_identity_token("b.example", "geheim");
        let login = logins.of_image("a.example/x");
        assert!(!format!("{logins:?} {login:?}").contains("geheim"));
        for text in [
            "",
            "7",
            r#"{"auths": 7}"#,
            r#"{"auths": {"a.example": {"auth": 5}}}"#,
            r#"{"auths": {"a.example": {"auth": "geheim!"}}}"#,
            // geheim, without a colon
            r#"{"auths": {"a.example": {"auth": "Z2VoZWlt"}}}"#,
        ] {
            let error = Logins::from_docker_config(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            let told = error.chain().to_string();
            assert!(!told.contains("geheim") && !told.contains("Z2Vo"), "{told}");
        }
    }
}
