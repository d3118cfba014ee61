//! Settings of a builder, and those that it refuses.

use backend_core::{Backend as _, ErrorKind};

use super::*;

fn builder() -> DaytonaBuilder {
    let account = Account::builder().api_key("k").build().unwrap();
    DaytonaSandbox::builder()
        .account(account)
        .mode(Mode::Portable)
}

#[test]
fn invalid_options_are_refused_before_anything_is_created() {
    let minute = Duration::from_secs(60);
    for (wrong, expected) in [
        (DaytonaSandbox::builder(), "no account"),
        (builder().snapshot("a").image("b"), "choose one"),
        (builder().snapshot(""), "snapshot"),
        (builder().image("a b"), "image reference"),
        (builder().working_dir("relative"), "absolute"),
        (builder().env("A-B", "x"), "variable name"),
        (builder().env("A", "x").secret("A", "s"), "leave one out"),
        (builder().label("agentbox.dev/owner", "me"), "reserved"),
        (builder().name("a/b"), "valid name"),
        (builder().cpus(2), "snapshot determines"),
        (builder().image("a").cpus(0), "at least 1"),
        (builder().image("a").memory(1), "bytes of memory"),
        (builder().volume(Volume::new("v", "/")), "mounted on"),
        (builder().auto_stop(Duration::ZERO), "until a stop"),
        (
            builder().auto_stop(minute).auto_pause(minute),
            "leave one out",
        ),
        (builder().start_timeout(Duration::ZERO), "start timeout"),
        (builder().idle_timeout(Duration::ZERO), "idle timeout"),
        (
            builder().network(Network::Allow {
                addresses: vec!["a,b".into()],
                domains: vec![],
            }),
            "network",
        ),
    ] {
        let error = wrong.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
    let twice = builder()
        .volume(Volume::new("v", "/a"))
        .volume(Volume::new("w", "/a/"));
    assert!(twice.build().unwrap_err().message().contains("two mounts"));
}

#[test]
fn the_working_directory_fits_the_source() {
    let directory = |builder: DaytonaBuilder| builder.build().unwrap().working_dir().to_string();
    assert_eq!(directory(builder()), "/home/daytona");
    assert_eq!(directory(builder().image("alpine:3")), "/workspace");
    assert_eq!(
        directory(builder().image("alpine:3").working_dir("/srv")),
        "/srv"
    );
}

#[test]
fn nothing_secret_is_shown() {
    let account = Account::builder().api_key("dtn_secret").build().unwrap();
    let builder = builder().account(account).env("TOKEN", "hush");
    let built = builder.clone().build().unwrap();
    let shown = format!("{builder:?} {built:?}");
    assert!(
        !shown.contains("dtn_secret") && !shown.contains("hush"),
        "{shown}"
    );
}
