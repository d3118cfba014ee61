//! A name that another process has taken, against a daemon that records its requests.

use std::sync::Mutex;

use backend_core::Sandbox as _;
use backend_docker::{DockerSandbox, Mode};
use futures::FutureExt as _;

use crate::support::fake_daemon::{self, Answer};

#[tokio::test]
async fn a_name_whose_creation_failed_elsewhere_is_tried_again() {
    // The name is reserved twice, with no container to be found, and then free.
    let refusals = Mutex::new(2);
    let respond = move |method: &str, path: &str| {
        if path.ends_with("/version") {
            Answer::new(200, r#"{"ApiVersion":"1.41","Os":"linux"}"#)
        } else if path.contains("/images/") {
            Answer::new(200, r#"{"Id":"sha256:1","Architecture":"amd64"}"#)
        } else if path.contains("/containers/create") {
            let mut left = refusals.lock().unwrap();
            if *left == 0 {
                return Answer::new(201, r#"{"Id":"1","Warnings":[]}"#);
            }
            *left -= 1;
            Answer::new(409, r#"{"message":"the name is in use"}"#)
        } else if method == "POST" && path.ends_with("/start") {
            Answer::new(204, "")
        } else {
            Answer::new(404, r#"{"message":"no such container"}"#)
        }
    };
    let (daemon, requests) = fake_daemon::start(move |method, path| {
        futures::future::ready(respond(&method, &path)).boxed()
    })
    .await;
    let sandbox = DockerSandbox::builder()
        .daemon(daemon)
        .image("box")
        .name("shared")
        .mode(Mode::Portable)
        .build()
        .unwrap();
    // Nothing answers for the files of the container. Only its creation matters here.
    let _ = sandbox.start().await;
    let requests = requests.lock().unwrap();
    let sent = |what: &str| requests.iter().filter(|line| line.contains(what)).count();
    assert_eq!(sent("/containers/create?"), 3, "{requests:?}");
    assert_eq!(sent("/containers/shared/start"), 1, "{requests:?}");
}
