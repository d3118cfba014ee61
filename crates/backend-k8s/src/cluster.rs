//! [`Cluster`]: a connection to a Kubernetes cluster.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backend_core::{Error, ErrorKind, Quoted, Result};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use k8s_openapi::NamespaceResourceScope;
use kube::client::retry::RetryPolicy;
use kube::client::{AuthError, Body, Client, ConfigExt as _};
use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Api, Resource};
use sandbox_wire::engine;
use tower::ServiceBuilder;
use tower::retry::RetryLayer;
use tower::timeout::TimeoutLayer;

use crate::check;
use crate::credentials;
use crate::start_slots::StartSlots;

/// The time in which the API server must begin to answer.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// The time for a connection to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Probes of a connection on which nothing is sent, and the number of unanswered ones
/// after which it is given up.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
const KEEP_ALIVE_PROBES: u32 = 3;
/// The time after which a connection is given up on which sent bytes are not
/// acknowledged.
#[cfg(target_os = "linux")]
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(60);
/// The pauses before a request is repeated that an overloaded API server refused, and
/// their number.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(1);
const RETRIES: u32 = 5;

/// A Kubernetes cluster, and the namespace in it that is used. Clones share their
/// connections.
///
/// Requests are made on [the engine's runtime](sandbox_wire::engine), so callers need
/// none that goes on running.
///
/// ```no_run
/// # async fn example() -> backend_core::Result<()> {
/// let cluster = backend_k8s::Cluster::from_env().await?.with_namespace("agents");
/// println!("Kubernetes {}", cluster.info().await?.version);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    namespace: String,
    /// The API server's address. Empty if the client was given.
    address: Arc<str>,
    start_slots: Arc<StartSlots>,
}

/// A cluster's description of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterInfo {
    /// The version of its API server, such as `v1.36.3`.
    pub version: String,
    /// The namespace that is used.
    pub namespace: String,
}

impl Cluster {
    /// Connects to the cluster of the current context in the files that `KUBECONFIG`
    /// names, or in `~/.kube/config`; in a pod without these, to its own cluster.
    ///
    /// The namespace is that of the context or the pod, else `default`.
    ///
    /// # Errors
    ///
    /// `Config` if there is no usable configuration; `Auth` if its credentials cannot be
    /// obtained.
    pub async fn from_env() -> Result<Self> {
        run(async {
            let config = Config::infer().await.map_err(|source| {
                let text = "there is no usable Kubernetes configuration; set KUBECONFIG, write ~/.kube/config, or run in a pod with a service account";
                credentials::unusable(text.to_owned(), source)
            })?;
            Self::connect(config).await
        })
        .await
    }

    /// Connects to the cluster of a context in a file; by default the file's current
    /// context.
    ///
    /// # Errors
    ///
    /// `Config` if the file cannot be read or has no such context; `Auth` if its
    /// credentials cannot be obtained.
    pub async fn from_kubeconfig(path: impl AsRef<Path>, context: Option<&str>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let options = KubeConfigOptions {
            context: context.map(str::to_owned),
            ..KubeConfigOptions::default()
        };
        run(async move {
            let wrong = |source: KubeconfigError| {
                let shown = path.to_string_lossy();
                let shown = Quoted::new(&shown);
                let text = format!("the Kubernetes configuration {shown} cannot be used; correct it, or name another context");
                credentials::unusable(text, source)
            };
            let read = Kubeconfig::read_from(&path).map_err(wrong)?;
            let config = Config::from_custom_kubeconfig(read, &options).await;
            Self::connect(config.map_err(wrong)?).await
        })
        .await
    }

    /// Uses a client as it is. The runtime on which it was made must go on running.
    ///
    /// A client of kube sends small messages late; the constructors of this type make
    /// one that does not.
    pub fn from_client(client: Client, namespace: impl Into<String>) -> Self {
        Self {
            client,
            namespace: namespace.into(),
            address: Arc::default(),
            start_slots: Arc::default(),
        }
    }

    /// Makes the client. Runs on the engine, where the tasks of the client stay.
    async fn connect(mut config: Config) -> Result<Self> {
        credentials::keep_input(&mut config);
        let address = config.cluster_url.to_string();
        // A kubeconfig can name a program that gets the credentials, which takes its time.
        let made = tokio::task::spawn_blocking(move || client(config)).await;
        let made = made.map_err(|_| Error::internal("making a Kubernetes client panicked"))?;
        let client = made.map_err(|error| failure(&address, error))?;
        let namespace = client.default_namespace().to_owned();
        Ok(Self {
            address: address.into(),
            ..Self::from_client(client, namespace)
        })
    }

    /// Uses another namespace of the cluster.
    #[must_use]
    pub fn with_namespace(mut self, name: impl Into<String>) -> Self {
        self.namespace = name.into();
        self
    }

    /// Returns the namespace that is used.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the address of the API server; empty if the client was given.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Identifies the cluster among those of this process, for as long as it is held.
    pub(crate) fn id(&self) -> usize {
        Arc::as_ptr(&self.start_slots).addr()
    }

    /// Asks the cluster for its version.
    ///
    /// # Errors
    ///
    /// `Unavailable`, with the next step, if it does not answer; `Auth` if it does not
    /// accept the credentials.
    pub async fn info(&self) -> Result<ClusterInfo> {
        let cluster = self.clone();
        run(async move {
            let asked = cluster.client.apiserver_version().await;
            let answer = asked.map_err(|error| cluster.error(error))?;
            Ok(ClusterInfo {
                version: answer.git_version,
                namespace: cluster.namespace,
            })
        })
        .await
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn start_slots(&self) -> &StartSlots {
        &self.start_slots
    }

    /// Checks the name of the namespace, which becomes part of the path of every request.
    pub(crate) fn check_namespace(&self) -> Result<()> {
        check::name("a namespace", &self.namespace)
    }

    /// Returns the interface to one kind of object in the namespace.
    pub(crate) fn api<K>(&self) -> Result<Api<K>>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        self.check_namespace()?;
        Ok(Api::namespaced(self.client.clone(), &self.namespace))
    }

    /// Converts the answer about an object; `None` if there is no such object.
    pub(crate) fn found<T>(&self, answer: kube::Result<T>) -> Result<Option<T>> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if status(&error) == Some(404) => Ok(None),
            Err(error) => Err(self.error(error)),
        }
    }

    /// Converts an error of the client into one for the caller.
    pub(crate) fn error(&self, error: kube::Error) -> Error {
        failure(&self.address, error)
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("address", &self.address)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

/// Makes a client whose small messages are sent at once, and that notices a dead
/// connection.
fn client(config: Config) -> kube::Result<Client> {
    // With several cryptographic libraries in a program and no choice among them, the
    // client would panic. A choice that was made stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_keepalive(Some(KEEP_ALIVE));
    connector.set_keepalive_interval(Some(KEEP_ALIVE));
    connector.set_keepalive_retries(Some(KEEP_ALIVE_PROBES));
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(ACKNOWLEDGE_TIMEOUT));
    if let Some(proxy) = &config.proxy_url {
        return Err(kube::Error::ProxyProtocolUnsupported {
            proxy_url: Box::new(proxy.clone()),
        });
    }
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let http: HttpClient<_, Body> = HttpClient::builder(TokioExecutor::new()).build(connector);
    let policy = RetryPolicy::new(FIRST_PAUSE, LAST_PAUSE, RETRIES, false);
    let policy = policy.map_err(|error| kube::Error::Service(error.into()))?;
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(RetryLayer::new(policy))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .layer(TimeoutLayer::new(RESPONSE_TIMEOUT))
        .service(http);
    Ok(Client::new(service, config.default_namespace))
}

/// Runs work on the engine. Its errors name this backend.
pub(crate) async fn run<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    engine::run(work).await.map_err(|error| error.on("k8s"))
}

/// The HTTP status of the cluster's answer, if it answered.
pub(crate) fn status(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// The error for a refused or unanswered request: why, and what to do.
fn failure(address: &str, error: kube::Error) -> Error {
    let with = |kind, text: &'static str| Error::new(kind, text);
    match error {
        kube::Error::Api(status) => refusal(&status),
        kube::Error::Auth(source) => credentials::unobtainable(source),
        kube::Error::Service(source) => match source.downcast::<AuthError>() {
            Ok(source) => credentials::unobtainable(*source),
            Err(source) => unanswered(address, &*source).with_source(source),
        },
        kube::Error::HyperError(source) => unanswered(address, &source).with_source(source),
        kube::Error::ProxyProtocolUnsupported { .. } => with(
            ErrorKind::Config,
            "the kubeconfig names a proxy, and proxies are not supported; remove `proxy-url`, or give a client of your own",
        ),
        kube::Error::RustlsTls(source) => with(
            ErrorKind::Config,
            "the certificates of the kubeconfig cannot be used; correct them",
        )
        .with_source(source),
        kube::Error::UpgradeConnection(source) => with(
            ErrorKind::Unavailable,
            "the cluster opens no stream into the pod; see whether a proxy before it allows websockets",
        )
        .with_source(source),
        kube::Error::BuildRequest(source) => with(
            ErrorKind::Internal,
            "a request to the cluster cannot be made; please report this",
        )
        .with_source(source),
        kube::Error::SerdeError(source) => with(
            ErrorKind::Unavailable,
            "the answer is no Kubernetes object; see whether the address is that of an API server",
        )
        .with_source(source),
        other => unanswered(address, &other).with_source(other),
    }
}

/// The error for a request that the cluster refused.
fn refusal(status: &kube::error::Status) -> Error {
    let is_over_quota = status.code == 403 && status.message.contains("exceeded quota");
    let (kind, next) = match status.code {
        400 | 422 => (ErrorKind::Config, ""),
        401 => (ErrorKind::Auth, "; log in again, or renew the kubeconfig"),
        403 if is_over_quota => (
            ErrorKind::Unavailable,
            "; delete pods, or raise the quota of the namespace",
        ),
        403 => (
            ErrorKind::PermissionDenied,
            "; grant the rights in docs/kubernetes-rbac.yaml",
        ),
        404 => (ErrorKind::NotFound, ""),
        409 if status.is_already_exists() => (ErrorKind::AlreadyExists, ""),
        409 => (ErrorKind::Conflict, ""),
        429 => (ErrorKind::RateLimited, "; try again in a moment"),
        _ => (ErrorKind::Unavailable, ""),
    };
    let said = Quoted::new(&status.message);
    Error::new(kind, format!("the cluster says: {said}{next}"))
}

/// The error for a cluster that does not answer.
fn unanswered(address: &str, error: &(dyn StdError + 'static)) -> Error {
    let shown = match address {
        "" => String::new(),
        address => format!(" at {}", Quoted::new(address)),
    };
    Error::unavailable(match engine::io_kind(error) {
        Some(io::ErrorKind::ConnectionRefused) => {
            format!("no Kubernetes API server listens{shown}; start the cluster, or set KUBECONFIG")
        }
        Some(io::ErrorKind::InvalidData) => format!(
            "the connection to the Kubernetes API server{shown} is not secure; renew the certificates of the kubeconfig"
        ),
        _ => format!(
            "the Kubernetes API server{shown} does not answer; see whether the cluster runs and can be reached from here"
        ),
    })
}

#[cfg(test)]
pub(crate) mod tests;
