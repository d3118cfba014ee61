//! Builds and pulls against a scripted daemon: one that breaks off, floods, refuses, or
//! is old.
use std::sync::Arc;

use backend_core::ErrorKind;
use backend_docker::image::{self, BuildEvent, BuildOptions, Logins};
use backend_docker::{Daemon, Runtime};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::{FutureExt as _, StreamExt as _};
use tokio::sync::Semaphore;

use crate::support::fake_daemon::{self, Answer, Requests};

/// The answers of a daemon.
#[derive(Clone)]
struct Script {
    /// Existing images.
    present: &'static [&'static str],
    /// The API version.
    api: &'static str,
    /// Status and body of the answer to a pull.
    pull: (u16, &'static str),
    /// Status and body of the answer to a build.
    build: (u16, String),
    /// Extra bytes in the content length that are never sent.
    promised: usize,
    /// Builds are answered once this is open.
    gate: Option<Arc<Semaphore>>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            present: &["base:1"],
            api: "1.41",
            pull: (200, ""),
            build: (200, "{\"stream\":\"Successfully built\"}\n".to_owned()),
            promised: 0,
            gate: None,
        }
    }
}

/// Starts a daemon that follows the script. Also returns the requests it gets.
async fn start(script: Script) -> (Daemon, Requests) {
    fake_daemon::start(move |_, path| respond(script.clone(), path).boxed()).await
}

async fn respond(script: Script, path: String) -> Answer {
    let present = |image: &&str| path.ends_with(&format!("/images/{image}/json"));
    let (status, body) = if path.ends_with("/build") {
        if let Some(gate) = &script.gate {
            drop(gate.acquire().await);
        }
        script.build
    } else if path.ends_with("/version") {
        let api = script.api;
        (200, format!(r#"{{"ApiVersion":"{api}","Os":"linux"}}"#))
    } else if path.ends_with("/images/create") {
        (script.pull.0, script.pull.1.to_owned())
    } else if script.present.iter().any(present) {
        (200, "{}".to_owned())
    } else {
        (404, r#"{"message":"no such thing"}"#.to_owned())
    };
    Answer {
        api: script.api,
        promised: script.promised,
        ..Answer::new(status, body)
    }
}

fn on_base() -> Runtime {
    Runtime::on_base("fake", "base:1").with_setup_command("true")
}

async fn failure(script: Script, runtime: &Runtime) -> backend_core::Error {
    let (daemon, _) = start(script).await;
    let ended = image::ensure(&daemon, runtime, &BuildOptions::new()).await;
    ended.unwrap_err()
}

fn builds(requests: &Requests) -> Vec<String> {
    let requests = requests.lock().unwrap();
    let builds = requests.iter().filter(|line| line.contains("/build?"));
    builds.cloned().collect()
}

#[tokio::test]
async fn a_daemon_that_breaks_off_is_unavailable() {
    let script = Script {
        build: (
            200,
            "{\"stream\":\"Step 1/2 : FROM base:1\\n\"}\n".to_owned(),
        ),
        promised: 100,
        ..Script::default()
    };
    let error = failure(script, &on_base()).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("does not answer"), "{error}");
}

#[tokio::test]
async fn an_end_without_an_image_is_a_failure() {
    let script = Script {
        build: (
            200,
            "{\"stream\":\"half\\n\"}\nnot json\n{\"aux\":7}\n".to_owned(),
        ),
        ..Script::default()
    };
    let text = failure(script, &on_base()).await.to_string();
    assert!(text.contains("the daemon gave no reason"), "{text}");
    assert!(text.ends_with("the last lines were:\n  half"), "{text}");
}

#[tokio::test]
async fn a_line_without_an_end_is_not_collected() {
    let script = Script {
        build: (200, "x".repeat(9 << 20)),
        ..Script::default()
    };
    let error = failure(script, &on_base()).await;
    assert!(
        error.to_string().contains("a line that does not end"),
        "{error}"
    );
}

#[tokio::test]
async fn a_refused_build_says_the_daemons_words() {
    let script = Script {
        build: (500, "{\"message\":\"out of \\u001b[2Jspace\"}\n".to_owned()),
        ..Script::default()
    };
    let error = failure(script, &on_base()).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("out of space; "), "{error}");
}

#[tokio::test]
async fn a_slow_listener_is_told_what_it_missed() {
    let mut body = String::new();
    for number in 0..5000 {
        body.push_str(&format!("{{\"stream\":\"line {number}\\n\"}}\n"));
    }
    body.push_str("{\"aux\":{\"ID\":\"sha256:1\"}}\n");
    let script = Script {
        build: (200, body),
        ..Script::default()
    };
    let (daemon, _) = start(script).await;
    let options = BuildOptions::new();
    let slow = image::build(&daemon, &on_base(), &options).unwrap();
    let other = image::build(&daemon, &on_base(), &options).unwrap();
    other.finish().await.unwrap();
    let events: Vec<_> = slow.collect().await;
    let BuildEvent::Skipped { events: skipped } = events[0] else {
        panic!("{:?}", events[0]);
    };
    let logs = events
        .iter()
        .filter(|it| matches!(it, BuildEvent::Log { .. }))
        .count();
    assert_eq!(logs as u64 + skipped, 5000);
    assert!(logs < 500, "{logs} were kept");
    let done = BuildEvent::Done {
        image: on_base().image_name().unwrap(),
        built: true,
    };
    assert_eq!(events.last(), Some(&done));
}

#[tokio::test]
async fn all_who_ask_at_once_share_one_build() {
    let gate = Arc::new(Semaphore::new(0));
    let script = Script {
        gate: Some(Arc::clone(&gate)),
        ..Script::default()
    };
    let (daemon, requests) = start(script).await;
    let options = BuildOptions::new();
    let ask = || image::build(&daemon, &on_base(), &options).unwrap();
    let all: Vec<_> = (0..20).map(|_| ask()).collect();
    // One of them is dropped, and others join while it runs.
    let mut all = all.into_iter();
    drop(all.next());
    let late = ask();
    gate.add_permits(1);
    for build in all.chain([late]) {
        build.finish().await.unwrap();
    }
    assert_eq!(builds(&requests).len(), 1);
    // Nothing is running any more, so this asks the daemon again.
    let again: Vec<_> = ask().collect().await;
    assert_eq!(again.len(), 2, "{again:?}");
    assert_eq!(builds(&requests).len(), 2);
}

#[tokio::test]
async fn a_failure_is_everybodys() {
    let gate = Arc::new(Semaphore::new(0));
    let script = Script {
        build: (200, "{\"error\":\"exit code: 3\"}\n".to_owned()),
        gate: Some(Arc::clone(&gate)),
        ..Script::default()
    };
    let (daemon, requests) = start(script).await;
    let ask = || image::build(&daemon, &on_base(), &BuildOptions::new()).unwrap();
    let (one, two) = (ask(), ask());
    gate.add_permits(1);
    for build in [one, two] {
        let error = build.finish().await.unwrap_err();
        assert!(error.to_string().contains("exit code: 3"), "{error}");
    }
    assert_eq!(builds(&requests).len(), 1);
}

#[tokio::test]
async fn old_daemons_get_the_classic_builder() {
    for (api, version) in [
        ("1.38", "version=1&"),
        ("1.41", "version=2&"),
        ("1.52", "version=2&"),
    ] {
        let (daemon, requests) = start(Script {
            api,
            ..Script::default()
        })
        .await;
        let options = BuildOptions::new().with_network("a&b").with_no_cache(true);
        image::ensure(&daemon, &on_base(), &options).await.unwrap();
        let asked = builds(&requests);
        assert!(asked[0].contains(version), "{api}: {asked:?}");
        assert!(asked[0].contains("networkmode=a%26b"), "{asked:?}");
        assert!(asked[0].contains("nocache=1"), "{asked:?}");
    }
}

#[tokio::test]
async fn a_missing_image_is_pulled_by_one_tag() {
    let script = Script {
        pull: (
            200,
            "{\"status\":\"Pulling\\u001b[2J from x\",\"id\":\"latest\"}\n",
        ),
        ..Script::default()
    };
    let (daemon, requests) = start(script).await;
    let runtime = Runtime::from_image("x", "registry.example/x");
    let build = image::build(&daemon, &runtime, &BuildOptions::new()).unwrap();
    let events: Vec<String> = build.map(|event| event.to_string()).collect().await;
    assert_eq!(
        events,
        [
            "pulling registry.example/x",
            "latest: Pulling from x",
            "registry.example/x is there"
        ]
    );
    let asked = requests.lock().unwrap().join("\n");
    assert!(
        asked.contains("fromImage=registry.example%2Fx%3Alatest"),
        "{asked}"
    );
}

#[tokio::test]
async fn a_pull_that_fails_says_what_to_do() {
    for (pull, kind, next) in [
        (
            (404, r#"{"message":"pull access denied for x"}"#),
            ErrorKind::Config,
            "check its name",
        ),
        (
            (404, r#"{"message":"manifest unknown"}"#),
            ErrorKind::Config,
            "check its name",
        ),
        (
            (500, r#"{"message":"Get https://x: dial tcp: i/o timeout"}"#),
            ErrorKind::Unavailable,
            "docker load",
        ),
        (
            (
                200,
                "{\"errorDetail\":{\"message\":\"connection reset\"},\"error\":\"x\"}\n",
            ),
            ErrorKind::Unavailable,
            "docker load",
        ),
    ] {
        let script = Script {
            pull,
            ..Script::default()
        };
        for runtime in [
            Runtime::from_image("x", "x:1"),
            Runtime::on_base("x", "x:1"),
        ] {
            let error = failure(script.clone(), &runtime).await;
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(next), "{error}");
            let said = error.chain().to_string();
            assert_eq!(said.matches("docker: ").count(), 1, "{said}");
        }
    }
}

#[tokio::test]
async fn cached_images_are_used_unless_the_runtime_says_no() {
    let present = on_base().image_name().unwrap();
    let script = Script {
        present: vec!["base:1", present.leak()].leak(),
        ..Script::default()
    };
    let (daemon, requests) = start(script).await;
    let options = BuildOptions::new();
    image::ensure(&daemon, &on_base(), &options).await.unwrap();
    assert_eq!(builds(&requests).len(), 0);
    let uncached = on_base().with_cache_image(false);
    image::ensure(&daemon, &uncached, &options).await.unwrap();
    assert_eq!(builds(&requests).len(), 1);
    let anew = options.with_no_cache(true);
    image::ensure(&daemon, &on_base(), &anew).await.unwrap();
    assert_eq!(builds(&requests).len(), 2);
}

#[tokio::test]
async fn a_login_goes_with_the_pull_of_its_own_registry() {
    let logins = Logins::new().with_password("mirror.example", "me", "secret");
    let options = BuildOptions::new().with_logins(logins);
    for (image, is_sent) in [
        ("mirror.example/python:3", true),
        ("python:3", false),
        ("other.example/python:3", false),
    ] {
        let (daemon, requests) = start(Script::default()).await;
        let runtime = Runtime::from_image("fetched", image);
        image::ensure(&daemon, &runtime, &options).await.unwrap();
        for request in requests.lock().unwrap().iter() {
            let header = request.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("x-registry-auth")
                    .then_some(value)
            });
            // A pull without a login sends the header too.
            let header = header.unwrap_or_default().trim_end_matches('=');
            let sent = URL_SAFE_NO_PAD.decode(header).unwrap();
            let sent = String::from_utf8(sent).unwrap();
            let is_pull = request.contains("/images/create?");
            assert_eq!(sent.contains("secret"), is_sent && is_pull, "{request}");
            assert!(!request.contains("secret"), "{request}");
        }
    }
}

#[tokio::test]
async fn an_image_gets_a_name_and_becomes_a_file() {
    let (daemon, requests) = fake_daemon::start(|method, path| {
        let answer = match path.rsplit_once("/images/base:1/") {
            Some((_, "tag")) if method == "POST" => Answer::new(201, ""),
            Some((_, "get")) if method == "GET" => Answer::new(200, "an archive"),
            _ if path.ends_with("/version") => {
                Answer::new(200, r#"{"ApiVersion":"1.41","Os":"linux"}"#)
            }
            _ => Answer::new(404, r#"{"message":"no such thing"}"#),
        };
        async move { answer }.boxed()
    })
    .await;
    let name = "host:5000/a/b";
    image::tag(&daemon, "base:1", name).await.unwrap();
    let sent = requests.lock().unwrap().join("\n");
    let query = "/images/base:1/tag?repo=host%3A5000%2Fa%2Fb&tag=latest ";
    assert!(sent.contains(query), "{sent}");
    let error = image::tag(&daemon, "base:1", "a@sha256:00").await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Config);
    let error = image::tag(&daemon, "none:1", name).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);

    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("image.tar");
    image::save(&daemon, "base:1", &file).await.unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), b"an archive");
    let error = image::save(&daemon, "none:1", &file).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let nowhere = temporary.path().join("none/image.tar");
    let error = image::save(&daemon, "base:1", &nowhere).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("name another file"), "{error}");
}
