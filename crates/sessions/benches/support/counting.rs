//! The load that a part of this process makes, and the one of the cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::Request;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use kube::Client;
use kube::client::Body;

/// The requests of a client, and the bytes of their bodies and answers.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    requests: AtomicU64,
    bytes: AtomicU64,
    watched: AtomicU64,
}

impl Counts {
    /// Returns the requests, the bytes, and those of watches, since the last call.
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    pub(crate) fn take(&self) -> [f64; 3] {
        let all = [&self.requests, &self.bytes, &self.watched];
        all.map(|count| count.swap(0, Ordering::Relaxed) as f64)
    }
}

/// Returns a client that uses another one, and its counts.
pub(crate) fn counted(client: &Client, namespace: &str) -> (Client, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let (client, counting) = (client.clone(), Arc::clone(&counts));
    let service = tower::service_fn(move |request: Request<Body>| {
        let query = request.uri().query().unwrap_or_default();
        let is_watch = query.contains("watch=true");
        let sent = request.body().size_hint().exact().unwrap_or_default();
        counting.requests.fetch_add(1, Ordering::Relaxed);
        counting.bytes.fetch_add(sent, Ordering::Relaxed);
        let (client, counting) = (client.clone(), Arc::clone(&counting));
        async move {
            let answer = client.send(request).await?;
            Ok::<_, kube::Error>(answer.map(|body| {
                body.map_frame(move |frame| {
                    let size = frame.data_ref().map_or(0, |data| data.len() as u64);
                    let count = if is_watch {
                        &counting.watched
                    } else {
                        &counting.bytes
                    };
                    count.fetch_add(size, Ordering::Relaxed);
                    frame
                })
            }))
        }
    });
    (Client::new(service, namespace), counts)
}

/// Returns the requests that the API server has answered, and those that it made to etcd.
pub(crate) async fn served(client: &Client) -> [f64; 2] {
    let request = Request::get("/metrics").body(Vec::new()).unwrap();
    let metrics = client.request_text(request).await.unwrap();
    [
        "apiserver_request_total{",
        "etcd_request_duration_seconds_count{",
    ]
    .map(|name| {
        let lines = metrics.lines().filter(|line| line.starts_with(name));
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        values.sum()
    })
}

/// A process whose load is read, such as a daemon of the cluster.
pub(crate) struct Watched(String);

impl Watched {
    pub(crate) fn this() -> Self {
        Self("self".to_owned())
    }

    pub(crate) fn daemon(name: &str) -> Self {
        let directory = std::env::var("AGENTBOX_CLUSTER_DIR").unwrap();
        let pid = std::fs::read_to_string(format!("{directory}/pids/{name}")).unwrap();
        Self(pid.trim().to_owned())
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.0)).unwrap()
    }

    /// Returns its CPU time in milliseconds.
    pub(crate) fn cpu(&self) -> f64 {
        let stat = self.file("stat");
        // After the name, which may have spaces. The system counts hundredths of a second.
        let (_, numbers) = stat.rsplit_once(')').unwrap();
        let times = numbers.split_whitespace().skip(11).take(2);
        times
            .map(|ticks| ticks.parse::<f64>().unwrap() * 10.0)
            .sum()
    }

    /// Returns its memory in bytes.
    pub(crate) fn memory(&self) -> f64 {
        let status = self.file("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.unwrap().trim().strip_suffix(" kB").unwrap();
        kib.parse::<f64>().unwrap() * 1024.0
    }
}
