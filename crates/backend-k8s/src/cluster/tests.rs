//! Errors of a cluster, and clusters that are not there.

use kube::error::Status;

use super::*;

/// Returns a cluster without encryption at this address, with the namespace `work`.
pub(crate) async fn cluster_at(server: &str) -> Cluster {
    let place = tempfile::tempdir().unwrap();
    let path = kubeconfig(place.path(), server);
    Cluster::from_kubeconfig(&path, None).await.unwrap()
}

/// A kubeconfig for an API server without encryption at this address.
fn kubeconfig(directory: &Path, server: &str) -> std::path::PathBuf {
    let path = directory.join("config");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
         clusters: [{{name: here, cluster: {{server: '{server}'}}}}]\n\
         contexts: [{{name: here, context: {{cluster: here, user: me, namespace: work}}}}]\n\
         users: [{{name: me, user: {{}}}}]\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn refusals_keep_their_meaning() {
    let refused = |code, reason: &str, message: &str| {
        let status = Status::failure(message, reason).with_code(code);
        failure("", kube::Error::Api(status.boxed()))
    };
    for (code, reason, kind) in [
        (400, "BadRequest", ErrorKind::Config),
        (401, "Unauthorized", ErrorKind::Auth),
        (403, "Forbidden", ErrorKind::PermissionDenied),
        (404, "NotFound", ErrorKind::NotFound),
        (409, "AlreadyExists", ErrorKind::AlreadyExists),
        (409, "Conflict", ErrorKind::Conflict),
        (410, "Expired", ErrorKind::Unavailable),
        (422, "Invalid", ErrorKind::Config),
        (429, "TooManyRequests", ErrorKind::RateLimited),
        (500, "InternalError", ErrorKind::Unavailable),
    ] {
        let error = refused(code, reason, "no\u{1b}[2J");
        assert_eq!(error.kind(), kind, "{code} {reason}");
        assert!(!error.to_string().contains('\u{1b}'));
    }
    let quota = refused(403, "Forbidden", "exceeded quota: pods");
    assert_eq!(quota.kind(), ErrorKind::Unavailable);
    assert!(quota.to_string().contains("raise the quota"), "{quota}");
}

#[test]
fn failures_of_the_system_say_what_to_do() {
    for (kind, text) in [
        (io::ErrorKind::ConnectionRefused, "start the cluster"),
        (io::ErrorKind::InvalidData, "renew the certificates"),
        (io::ErrorKind::TimedOut, "does not answer"),
    ] {
        let source = io::Error::from(kind);
        let error = failure("https://x", kube::Error::Service(source.into()));
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains(text), "{error}");
        assert!(error.to_string().contains("'https://x'"), "{error}");
    }
}

#[tokio::test]
async fn a_cluster_that_is_not_there_says_what_to_do() {
    let place = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let path = kubeconfig(place.path(), &format!("http://{address}"));
    let cluster = Cluster::from_kubeconfig(&path, None).await.unwrap();
    assert_eq!(cluster.namespace(), "work");
    let error = cluster.info().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("start the cluster"), "{error}");
    let error = Cluster::from_kubeconfig(&path, Some("other")).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Config);
    let error = Cluster::from_kubeconfig(place.path().join("none"), None).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Config);
}

#[tokio::test]
async fn credentials_are_in_no_error() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("config");
    let failed = |user: String| {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
             clusters: [{{name: here, cluster: {{server: 'http://127.0.0.1:1'}}}}]\n\
             contexts: [{{name: here, context: {{cluster: here, user: me}}}}]\n\
             users:\n- name: me\n  user:\n{user}"
        );
        std::fs::write(&path, text).unwrap();
        let path = path.clone();
        async move {
            let error = Cluster::from_kubeconfig(&path, None).await.unwrap_err();
            (error.chain().to_string(), format!("{error:?}"))
        }
    };
    let program = |line: &str| {
        format!(
            "    exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: sh\n\
             \x20     args: ['-c', '{line}', 'hunter1']\n\
             \x20     env: [{{name: KEY, value: hunter2}}]\n"
        )
    };
    for user in [
        program("echo hunter3; exit 7"),
        program("echo [hunter3"),
        "    token: hunter1\n    exec: [hunter2\n".to_owned(),
        "    token: hunter1\n    exec: hunter2\n".to_owned(),
    ] {
        let (chain, debug) = failed(user).await;
        for shown in [chain, debug] {
            assert!(!shown.contains("hunter"), "{shown}");
        }
    }
}

#[tokio::test]
async fn a_namespace_that_is_no_name_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let path = kubeconfig(place.path(), "http://127.0.0.1:1");
    let cluster = Cluster::from_kubeconfig(&path, None).await.unwrap();
    let cluster = cluster.with_namespace("../../nodes");
    let api = cluster.api::<k8s_openapi::api::core::v1::Pod>();
    assert_eq!(api.err().unwrap().kind(), ErrorKind::Config);
}
