//! The requests to the API server that engines make.

use std::sync::{Arc, Mutex};

use backend_k8s::Cluster;
use http::Request;
use kube::Client;
use kube::client::Body;

use super::k8s::Place;

/// The requests of a client, as `METHOD PATH?QUERY`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<Vec<String>>>);

impl Requests {
    /// Makes the engines of a place use a client, and notes its requests.
    pub(crate) fn of(place: &mut Place, client: Client) -> Self {
        let requests = Self::default();
        let seen = requests.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let line = format!("{} {}", request.method(), request.uri());
            seen.0.lock().unwrap().push(line);
            let client = client.clone();
            async move { client.send(request).await }
        });
        let client = Client::new(service, &*place.namespace);
        place.cluster = Cluster::from_client(client, &*place.namespace);
        requests
    }

    /// Returns the requests since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}
