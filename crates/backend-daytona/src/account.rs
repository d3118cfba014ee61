//! [`Account`]: an organization's access to the service.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use backend_core::ops::ContentHash;
use backend_core::{Error, ErrorKind, Quoted, Result};
use bytes::Bytes;
use reqwest::Url;
use sandbox_wire::engine;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::client::{self, Call, Client};
use crate::secret::Secret;

/// The URL of the API, unless another one is named.
const DEFAULT_URL: &str = "https://app.daytona.io/api";
/// The host of the 2.x API, which is another one.
const HOST_OF_2: &str = "api.daytona.com";

/// The environment variables that [`AccountBuilder::from_env`] reads.
const API_KEY: &str = "DAYTONA_API_KEY";
const JWT: &str = "DAYTONA_JWT_TOKEN";
const ORGANIZATION: &str = "DAYTONA_ORGANIZATION_ID";
const URLS: [&str; 2] = ["DAYTONA_V0_API_URL", "DAYTONA_API_URL"];
const TARGET: &str = "DAYTONA_TARGET";

/// Fields of which a v0 API describes at least one in its configuration.
const CONFIG_FIELDS: [&str; 3] = ["proxyToolboxUrl", "defaultSnapshot", "proxyTemplateUrl"];

/// An organization's access to Daytona: the URL of the API, and a credential. Clones share
/// their connections.
///
/// Requests are made on [the engine's runtime](sandbox_wire::engine), so callers need
/// none.
///
/// ```no_run
/// # async fn example() -> backend_core::Result<()> {
/// let account = backend_daytona::Account::from_env()?;
/// println!("Daytona {}", account.info().await?.version);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Account(Arc<Inner>);

struct Inner {
    client: Client,
    /// Identifies the credential and where it is used, in this process.
    id: String,
    url: String,
    target: Option<String>,
    /// The service's configuration, once it has proved to be the v0 API.
    config: OnceCell<AccountInfo>,
}

/// The service's description of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccountInfo {
    /// The version of its API, such as `v0.190.0`.
    pub version: String,
    /// The snapshot of sandboxes that name none.
    pub default_snapshot: Option<String>,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account")
            .field("url", &self.0.url)
            .field("target", &self.0.target)
            .finish_non_exhaustive()
    }
}

impl Account {
    /// Returns a builder. It reads nothing from the environment.
    pub fn builder() -> AccountBuilder {
        AccountBuilder::default()
    }

    /// Returns the account of the [official environment
    /// variables](AccountBuilder::from_env). No I/O.
    ///
    /// # Errors
    ///
    /// As [`AccountBuilder::build`].
    pub fn from_env() -> Result<Self> {
        AccountBuilder::from_env().build()
    }

    /// Returns the URL of the API.
    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// Returns the region of new sandboxes, if one is chosen.
    pub fn target(&self) -> Option<&str> {
        self.0.target.as_deref()
    }

    /// Asks the service for its version, and whether it accepts the credential.
    ///
    /// # Errors
    ///
    /// `Unavailable`, with the next step, if it does not answer; `Auth` if it does not
    /// accept the credential; `Config` if it is not the v0 API.
    pub async fn info(&self) -> Result<AccountInfo> {
        let account = self.clone();
        run(async move {
            account
                .call(Call::get(account.at("/sandbox?limit=1")))
                .await?;
            account.config().await.cloned()
        })
        .await
    }

    /// Returns the URL of a path of the API.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.0.url)
    }

    /// Identifies the organization's access among those of this process.
    pub(crate) fn id(&self) -> String {
        self.0.id.clone()
    }

    pub(crate) fn client(&self) -> &Client {
        &self.0.client
    }

    /// Sends a request to the API, after it has once proved to be the right one.
    pub(crate) async fn call(&self, call: Call) -> Result<Bytes> {
        self.config().await?;
        self.0.client.call(&call).await
    }

    async fn config(&self) -> Result<&AccountInfo> {
        self.0.config.get_or_try_init(|| self.ask_config()).await
    }

    /// Reads the configuration, which needs no credential.
    async fn ask_config(&self) -> Result<AccountInfo> {
        let call = Call::get(self.at("/config")).anonymous();
        let answer = match self.0.client.call(&call).await {
            Ok(answer) => answer,
            Err(error) => {
                let is_other = matches!(client::status(&error), Some(300..=407));
                return Err(if is_other { self.wrong_api() } else { error });
            }
        };
        let config: Value = serde_json::from_slice(&answer).unwrap_or_default();
        if !CONFIG_FIELDS
            .iter()
            .any(|field| config.get(field).is_some())
        {
            return Err(self.wrong_api());
        }
        let text = |field| config.get(field).and_then(Value::as_str).map(str::to_owned);
        Ok(AccountInfo {
            version: text("version").unwrap_or_default(),
            default_snapshot: text("defaultSnapshot"),
        })
    }

    fn wrong_api(&self) -> Error {
        wrong_api(&self.0.url)
    }

    /// Checks an address that the service named, to which the credential is sent.
    pub(crate) fn trusted(&self, url: &str) -> Result<String> {
        let parsed = parse(url).map_err(|_| {
            let shown = Quoted::new(url);
            Error::unavailable(format!(
                "the service names {shown}, which is not an address; see whether the URL of the API is right"
            ))
        })?;
        if self.0.url.starts_with("https:") && parsed.scheme() != "https" {
            return Err(Error::unavailable(format!(
                "the service names the address {}, which is not secure, and the credential is not sent there; let its operator name one with https",
                Quoted::new(url)
            )));
        }
        Ok(parsed.as_str().trim_end_matches('/').to_owned())
    }
}

fn wrong_api(url: &str) -> Error {
    let [first, second] = URLS;
    let is_complete = url.trim_end_matches('/').ends_with("/api") || url.contains(HOST_OF_2);
    let missing = if is_complete {
        ""
    } else {
        " /api is missing at its end, or"
    };
    wrong(format!(
        "{} is not the v0 API of Daytona: perhaps{missing} it is the 2.x API, which is another one and whose users may have it in {second}; set {first} to the URL of the v0 API, such as {DEFAULT_URL}",
        Quoted::new(url)
    ))
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::Config, message).on("daytona")
}

/// Options of an [`Account`], from [`Account::builder`] or the environment.
#[derive(Debug, Clone, Default)]
#[must_use = "a builder does nothing until `build`"]
pub struct AccountBuilder {
    credential: Option<Secret>,
    organization: Option<String>,
    url: Option<String>,
    target: Option<String>,
    system_proxy: bool,
}

impl AccountBuilder {
    /// Reads the official environment variables: `DAYTONA_API_KEY`, or `DAYTONA_JWT_TOKEN`
    /// with `DAYTONA_ORGANIZATION_ID`; the URL in `DAYTONA_V0_API_URL`, or else in
    /// `DAYTONA_API_URL`; the region in `DAYTONA_TARGET`. The proxies of the environment
    /// are used.
    pub fn from_env() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "reading the environment is what this function is for"
        )]
        let read = |name: &str| std::env::var(name).ok();
        Self::from_variables(read)
    }

    fn from_variables(read: impl Fn(&str) -> Option<String>) -> Self {
        let read = |name: &str| read(name).filter(|value| !value.trim().is_empty());
        let mut builder = Self {
            url: URLS.iter().find_map(|name| read(name)),
            target: read(TARGET),
            system_proxy: true,
            ..Self::default()
        };
        match (read(API_KEY), read(JWT), read(ORGANIZATION)) {
            (Some(key), _, _) => builder.credential = Some(Secret::new(key.trim())),
            (None, Some(token), organization) => {
                builder.credential = Some(Secret::new(token.trim()));
                builder.organization = Some(organization.unwrap_or_default());
            }
            (None, None, _) => {}
        }
        builder
    }

    backend_core::setters! {
        /// Sets the API key, which belongs to one organization.
        fn api_key(self, key: impl Into<String>) {
            self.credential = Some(Secret::new(key));
            self.organization = None;
        }

        /// Sets a token of a user, and the id of the organization it is used for.
        fn jwt(self, token: impl Into<String>, organization: impl Into<String>) {
            self.credential = Some(Secret::new(token));
            self.organization = Some(organization.into());
        }

        /// Sets the URL of the v0 API. `https://app.daytona.io/api` by default.
        fn url(self, url: impl Into<String>) { self.url = Some(url.into()) }

        /// Sets the region of new sandboxes. By default that of the organization.
        fn target(self, target: impl Into<String>) { self.target = Some(target.into()) }

        /// Sets whether the proxies that the environment names are used. By default only
        /// after [`from_env`](Self::from_env).
        fn system_proxy(self, system_proxy: bool) { self.system_proxy = system_proxy }
    }

    /// Checks the options. No I/O.
    ///
    /// # Errors
    ///
    /// `Config` if there is no credential, for a malformed URL, and for that of the 2.x
    /// API.
    pub fn build(self) -> Result<Account> {
        let secret = self.credential.ok_or_else(|| {
            wrong(format!(
                "no credential is given; set {API_KEY}, or {JWT} with {ORGANIZATION}"
            ))
        })?;
        if self.organization.as_deref() == Some("") {
            return Err(wrong(format!(
                "a token of a user is given without its organization; set {ORGANIZATION}"
            )));
        }
        let given = self.url.as_deref().unwrap_or(DEFAULT_URL);
        let url = parse(given)?;
        if url.host_str() == Some(HOST_OF_2) {
            return Err(wrong_api(given));
        }
        if url.scheme() == "http" && !is_local(&url) {
            tracing::warn!(
                url = given,
                "the credential is sent over a connection that is not secure"
            );
        }
        let organization = self.organization.as_deref();
        let url = url.as_str().trim_end_matches('/').to_owned();
        let key = ContentHash::of(secret.expose().as_bytes());
        let id = format!("{url} {} {key}", organization.unwrap_or_default());
        let client = Client::new(secret, organization, self.system_proxy)?;
        Ok(Account(Arc::new(Inner {
            client,
            id,
            url,
            target: self.target,
            config: OnceCell::new(),
        })))
    }
}

/// Parses an address that requests are sent to.
fn parse(text: &str) -> Result<Url> {
    let shown = Quoted::new(text);
    let example = format!("write it as {DEFAULT_URL}");
    let url = Url::parse(text)
        .map_err(|error| wrong(format!("{shown} is not a URL: {error}; {example}")))?;
    let is_plain = url.query().is_none() && url.fragment().is_none();
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() || !is_plain {
        return Err(wrong(format!(
            "{shown} is not the URL of an API; {example}"
        )));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // Not shown: it holds a password.
        return Err(wrong(format!(
            "a URL holds a user name or a password; {example}"
        )));
    }
    Ok(url)
}

fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address: Option<IpAddr> = host.parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

/// Runs work on the engine. Its errors name this backend.
pub(crate) async fn run<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    engine::run(work).await.map_err(|error| error.on("daytona"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Account> {
        let read = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        AccountBuilder::from_variables(read).build()
    }

    #[test]
    fn the_environment_names_an_account() {
        let account = of(&[(API_KEY, " dtn_secret\n"), (TARGET, "eu")]).unwrap();
        assert_eq!((account.url(), account.target()), (DEFAULT_URL, Some("eu")));
        let own = "http://localhost:3000/api/";
        let account = of(&[(API_KEY, "k"), ("DAYTONA_API_URL", own)]).unwrap();
        assert_eq!(account.url(), "http://localhost:3000/api");
        let both = [
            (API_KEY, "k"),
            ("DAYTONA_API_URL", "x"),
            ("DAYTONA_V0_API_URL", own),
        ];
        assert_eq!(of(&both).unwrap().url(), "http://localhost:3000/api");
        of(&[(JWT, "a.b.c"), (ORGANIZATION, "org")]).unwrap();
    }

    #[test]
    fn an_incomplete_environment_is_refused_with_the_next_step() {
        for (variables, expected) in [
            (&[][..], API_KEY),
            (&[(API_KEY, "  ")][..], API_KEY),
            (&[(JWT, "a.b.c")][..], ORGANIZATION),
            (
                &[(API_KEY, "k"), ("DAYTONA_API_URL", "nonsense")][..],
                "not a URL",
            ),
            (
                &[(API_KEY, "k"), ("DAYTONA_API_URL", "ftp://h/api")][..],
                DEFAULT_URL,
            ),
            (
                &[(API_KEY, "k"), ("DAYTONA_API_URL", "https://h/api?key=x")][..],
                DEFAULT_URL,
            ),
        ] {
            let error = of(variables).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.message().contains(expected), "{error}");
        }
        let error =
            of(&[(API_KEY, "k"), ("DAYTONA_API_URL", "https://me:pass@h/api")]).unwrap_err();
        assert!(!error.to_string().contains("pass@"), "{error}");
    }

    #[test]
    fn the_api_of_version_2_is_refused_by_name() {
        for url in ["https://api.daytona.com", "https://api.daytona.com/v2"] {
            let error = of(&[(API_KEY, "k"), ("DAYTONA_API_URL", url)]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            for name in URLS {
                assert!(error.message().contains(name), "{error}");
            }
            assert!(!error.message().contains("missing"), "{error}");
        }
        let short = wrong_api("http://localhost:3000");
        assert!(short.message().contains("/api is missing"), "{short}");
        let page = wrong_api("http://localhost:3000/api/");
        assert!(!page.message().contains("missing"), "{page}");
    }

    #[test]
    fn nothing_secret_is_shown() {
        let builder = Account::builder().api_key("dtn_secret");
        assert!(!format!("{builder:?}").contains("dtn_secret"));
        let account = builder.build().unwrap();
        assert!(!format!("{account:?}").contains("dtn_secret"));
    }

    #[test]
    fn the_credential_stays_on_secure_connections() {
        let account = |url: &str| Account::builder().api_key("k").url(url).build().unwrap();
        let cloud = account(DEFAULT_URL);
        let toolbox = cloud
            .trusted("https://proxy.app.daytona.io/toolbox/")
            .unwrap();
        assert_eq!(toolbox, "https://proxy.app.daytona.io/toolbox");
        for bad in [
            "http://proxy.app.daytona.io/toolbox",
            "file:///etc",
            "",
            "proxy",
        ] {
            cloud.trusted(bad).unwrap_err();
        }
        account("http://127.0.0.1:3000/api")
            .trusted("http://127.0.0.1:4000/toolbox")
            .unwrap();
    }
}
