//! A client that records its requests, and may change them.

use std::sync::{Arc, Mutex};

use http::Request;
use kube::Client;
use kube::client::Body;

/// The requests of a client, as `METHOD PATH?QUERY`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<Vec<String>>>);

impl Requests {
    /// Returns the requests since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    fn add(&self, request: &Request<Body>) {
        let line = format!("{} {}", request.method(), request.uri());
        self.0.lock().unwrap().push(line);
    }
}

/// Returns a client that uses another one, and what it asks for.
pub(crate) fn observed(client: &Client, namespace: &str) -> (Client, Requests) {
    changed(client, namespace, |_| {})
}

/// The same with requests that are changed on their way.
pub(crate) fn changed(
    client: &Client,
    namespace: &str,
    change: impl Fn(&mut Request<Body>) + Send + 'static,
) -> (Client, Requests) {
    let requests = Requests::default();
    let (client, seen) = (client.clone(), requests.clone());
    let service = tower::service_fn(move |mut request: Request<Body>| {
        seen.add(&request);
        change(&mut request);
        let client = client.clone();
        async move { client.send(request).await }
    });
    (Client::new(service, namespace), requests)
}

pub(crate) fn is_watch(request: &str) -> bool {
    request.contains("watch=true")
}

pub(crate) fn is_exec(request: &str) -> bool {
    request.contains("/exec?")
}
