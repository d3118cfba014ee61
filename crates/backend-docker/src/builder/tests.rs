//! Invalid options are refused before anything is created.

use backend_core::{Backend as _, ErrorKind, Sandbox as _};

use super::*;

fn new() -> DockerBuilder {
    // Never contacted: no test here starts a container.
    let daemon = Daemon::at("tcp://127.0.0.1:1").unwrap();
    let builder = DockerSandbox::builder().daemon(daemon).mode(Mode::Portable);
    builder.image("image:1")
}

fn refused(builder: DockerBuilder) -> String {
    let error = builder.build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    error.to_string()
}

#[test]
fn an_image_or_a_runtime() {
    let daemon = || Daemon::at("tcp://127.0.0.1:1").unwrap();
    assert!(refused(DockerSandbox::builder().daemon(daemon())).contains("no image"));
    assert!(refused(new().runtime(Runtime::default())).contains("choose one"));
    let error = refused(new().image("no such image"));
    assert!(error.starts_with("docker: 'no such image'"), "{error}");
}

#[test]
fn the_working_directory() {
    assert_eq!(new().build().unwrap().working_dir().as_str(), "/workspace");
    let given = new().working_dir("/srv//x/").build().unwrap();
    assert_eq!(given.working_dir().as_str(), "/srv/x");
    let runtime = Runtime::default().with_work_dir("/app");
    let daemon = Daemon::at("tcp://127.0.0.1:1").unwrap();
    let builder = DockerSandbox::builder().daemon(daemon).mode(Mode::Portable);
    let sandbox = builder.runtime(runtime).build().unwrap();
    assert_eq!(sandbox.working_dir().as_str(), "/app");
    refused(new().working_dir("relative"));
    refused(new().working_dir("/proc"));
}

#[test]
fn every_option_is_checked() {
    refused(new().env("A=B", ""));
    refused(new().label("agentbox.x", ""));
    refused(new().add_capability("ALL"));
    refused(new().user("a b"));
    refused(new().name("a/b"));
    refused(new().oci_runtime("/bin/sh"));
    assert!(refused(new().network(Network::Named("host".into()))).contains("HostNetwork"));
    refused(new().seccomp_profile("unconfined"));
    let both = new()
        .seccomp_profile("{}")
        .relax(Relaxation::UnconfinedSeccomp);
    assert!(refused(both).contains("choose one"));
    refused(new().memory(1));
    refused(new().memory(u64::MAX));
    refused(new().swap(u64::MAX));
    refused(new().pids_limit(0));
    for cpus in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        refused(new().cpus(cpus));
    }
    refused(new().cpu_shares(1));
    refused(new().idle_timeout(Duration::ZERO));
    refused(new().tmpfs("/", ""));
    refused(new().tmpfs("/tmp", "a b"));
    refused(new().ca_bundle("ca.crt"));
    refused(new().socket_dir("sockets"));
}

#[test]
fn mounts() {
    let socket = Volume::host("/var/run/docker.sock", "/s");
    assert!(refused(new().volume(socket)).contains("container engine"));
    refused(new().volume(Volume::host("/srv", "/proc/x")));
    refused(new().volume(Volume::named("../x", "/x")));
    let twice = new()
        .volume(Volume::host("/srv", "/x"))
        .volume(Volume::named("data", "/x/"));
    assert!(refused(twice).contains("two mounts"));
    refused(new().tmpfs("/x", "").volume(Volume::host("/srv", "/x")));
    new().volume(Volume::host("/srv", "/x")).build().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn sockets_where_they_lead_somewhere() {
    let with = |path: &str| new().socket_dir(path);
    let usable = |builder: DockerBuilder, daemon: &str| {
        let daemon = Daemon::at(daemon).unwrap();
        builder.settings.usable_socket_dir(&daemon)
    };
    let here = tempfile::NamedTempFile::new().unwrap();
    let here = format!("unix://{}", here.path().display());
    assert_eq!(usable(with("/srv/s"), &here), Some("/srv/s".into()));
    assert_eq!(usable(new(), &here), None);
    assert_eq!(usable(with("/srv/s"), "tcp://127.0.0.1:1"), None);
    let uploaded = with("/srv/s").delivery(Delivery::Upload);
    assert_eq!(usable(uploaded, &here), None);
    assert_eq!(usable(with("/run"), &here), None, "the engine's socket");
    assert_eq!(usable(with("/srv/../run"), &here), None);
    let attached = with("/srv/s").attach("box");
    assert!(format!("{attached:?}").contains("/srv/s"));
}

#[test]
fn an_agent_that_must_be_there() {
    let error = refused(new().mode(Mode::Agent));
    assert!(error.contains("the portable mode"), "{error}");
}

#[test]
fn names() {
    let one = new().build().unwrap();
    let other = new().build().unwrap();
    assert!(one.id().starts_with("agentbox-"));
    assert_ne!(one.id(), other.id());
    assert_eq!(new().name("mine").build().unwrap().id(), "mine");
    assert_eq!(one.clone().id(), one.id());
    assert_eq!(one.info().name, "docker");
}
