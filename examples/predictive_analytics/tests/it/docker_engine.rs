//! pandas and scikit-learn, in a container.

use backend_docker::image::{self, BuildOptions, CaBundle};
use backend_docker::{Daemon, Runtimes};
use examples::web::tester::Server;
use reqwest::{Method, StatusCode};

use crate::APP;
use crate::turn::{data_of, replies, said};

fn variable(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set; run `cargo xtask test-all`, which sets it"))
}

/// Makes the image of the runtime, unless it was made before: over the host's network, which
/// is there where a container's may not be.
async fn make_image(base: &str) {
    let runtimes = Runtimes::new().with_image("python:3.12-slim", base);
    let runtime = runtimes.unwrap().get("python-datascience").unwrap();
    let mut options = BuildOptions::new().with_network("host");
    if let Ok(file) = std::env::var("SSL_CERT_FILE") {
        options = options.with_ca_bundle(CaBundle::from_file(file).unwrap());
    }
    let daemon = Daemon::at(&variable("DOCKER_HOST")).unwrap();
    image::ensure(&daemon, &runtime, &options).await.unwrap();
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn scikit_learn_computes_what_the_standard_library_does() {
    let data = tempfile::tempdir().unwrap();
    let base = variable("TEST_IMAGE_PYTHON");
    make_image(&base).await;
    let mut program = APP.program(&data.path().join("docker"));
    let backend = format!("docker:{base}");
    let docker = Server::launch(program.args(["--backend", &backend])).await;
    let session = docker.session().await;
    let said_there = "What will the next 6 months bring?";
    let (events, output) = said(&docker, &session, said_there).await;
    let there = replies(&events);
    assert_eq!(there.len(), 3, "{events:?}");
    assert!(!output.contains("No module named"), "{output}");

    let local = APP.start(&data.path().join("local"), &[]).await;
    let (events, _) = said(&local, &local.session().await, said_there).await;
    for (there, here) in there.iter().zip(replies(&events)) {
        let (mut there, mut here) = (data_of(there), data_of(here));
        assert_eq!(there["engine"], "scikit-learn");
        there["engine"].take();
        here["engine"].take();
        assert_alike(&there, &here);
    }

    let delete = docker.ask(Method::DELETE, &session).send().await.unwrap();
    assert_eq!(delete.status(), StatusCode::NO_CONTENT);
    docker.stop().await;
}

/// Checks that values are the same, except for the last digit of numbers.
fn assert_alike(one: &serde_json::Value, other: &serde_json::Value) {
    match (one.as_f64(), other.as_f64()) {
        (Some(a), Some(b)) => assert!((a - b).abs() < 0.02, "{a} {b}"),
        _ if one.is_array() => {
            let (one, other) = (one.as_array().unwrap(), other.as_array().unwrap());
            assert_eq!(one.len(), other.len());
            one.iter().zip(other).for_each(|(a, b)| assert_alike(a, b));
        }
        _ if one.is_object() => {
            let (one, other) = (one.as_object().unwrap(), other.as_object().unwrap());
            assert!(one.keys().eq(other.keys()));
            one.iter().for_each(|(key, a)| assert_alike(a, &other[key]));
        }
        _ => assert_eq!(one, other),
    }
}
