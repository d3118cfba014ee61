//! The requests sent to the daemon.

use sandbox_runtime::Runtime;

use super::*;
use crate::builder::DockerBuilder;
use crate::options::Volume;
use crate::sandbox::DockerSandbox;

fn facts() -> ImageFacts {
    ImageFacts {
        reference: "image:1".into(),
        id: "sha256:1".into(),
        architecture: "amd64".into(),
        ..ImageFacts::default()
    }
}

/// Calls `check` with the plan that follows from the options and the image.
fn planned<T>(builder: DockerBuilder, facts: &ImageFacts, check: impl FnOnce(&Plan<'_>) -> T) -> T {
    let settings = builder.settings;
    let user = User::choose(&settings, facts, None);
    let working_dir = VPath::parse("/workspace").unwrap();
    check(&Plan {
        name: "box",
        nonce: "7",
        settings: &settings,
        working_dir: &working_dir,
        facts,
        user: &user,
        agent: Some("/opt/sandbox-agent"),
        stamp: Some("stamp"),
        sockets: settings.socket_dir.as_ref().and_then(|path| path.to_str()),
        keep_alive: vec!["sleep".into(), "infinity".into()],
    })
}

fn new() -> DockerBuilder {
    DockerSandbox::builder().image("image:1")
}

fn body(builder: DockerBuilder) -> ContainerCreateBody {
    planned(builder, &facts(), |plan| plan.body())
}

fn host(builder: DockerBuilder) -> HostConfig {
    body(builder).host_config.unwrap()
}

#[test]
fn hardened_unless_asked() {
    let body = body(new());
    assert_eq!(body.user.as_deref(), Some("1000:1000"));
    assert_eq!(body.entrypoint.unwrap(), ["sleep", "infinity"]);
    assert_eq!(body.healthcheck.unwrap().test.unwrap(), ["NONE"]);
    let host = body.host_config.unwrap();
    assert_eq!(host.cap_drop.unwrap(), ["ALL"]);
    assert_eq!(host.cap_add.unwrap(), Vec::<String>::new());
    assert_eq!(host.security_opt.unwrap(), ["no-new-privileges:true"]);
    assert_eq!(host.memory, Some(2 << 30));
    assert_eq!(host.memory_swap, host.memory, "no swap on top");
    assert_eq!(host.pids_limit, Some(512));
    assert_eq!(host.init, Some(true));
    assert_eq!(host.network_mode.as_deref(), Some("none"));
    assert_eq!(host.ipc_mode.as_deref(), Some("private"));
    assert_eq!(host.pid_mode, None);
    assert_eq!(host.privileged, None);
    assert_eq!(host.auto_remove, None);
    assert_eq!(host.log_config.unwrap().typ.as_deref(), Some("none"));
}

#[test]
fn the_directory_for_sockets_is_read_only_and_not_part_of_the_fingerprint() {
    let with = body(new().socket_dir("/run/sockets"));
    let mounts = with.host_config.unwrap().mounts.unwrap();
    let target = |mount: &&Mount| mount.target.as_deref() == Some(BOUND_SOCKETS);
    let mount = mounts.iter().find(target).unwrap();
    assert_eq!(mount.source.as_deref(), Some("/run/sockets"));
    assert_eq!(mount.typ, Some(MountType::BIND));
    assert_eq!(mount.read_only, Some(true));
    let (with, without) = (with.labels.unwrap(), body(new()).labels.unwrap());
    assert_eq!(with[labels::SOCKETS], "/run/sockets");
    assert!(!without.contains_key(labels::SOCKETS));
    assert_eq!(with[labels::CONFIG], without[labels::CONFIG]);
}

#[test]
fn each_relaxation_gives_up_one_thing() {
    let strict = host(new());
    let relaxed = |relaxation| host(new().relax(relaxation));
    let changed = |relaxation, change: fn(&mut HostConfig)| {
        let mut expected = strict.clone();
        change(&mut expected);
        assert_eq!(relaxed(relaxation), expected, "{relaxation:?}");
    };
    changed(Relaxation::HostNetwork, |host| {
        host.network_mode = Some("host".into());
    });
    changed(Relaxation::HostProcesses, |host| {
        host.pid_mode = Some("host".into());
    });
    changed(Relaxation::NewPrivileges, |host| {
        host.security_opt = Some(vec![]);
    });
    changed(Relaxation::UnconfinedSeccomp, |host| {
        let options = ["no-new-privileges:true", "seccomp=unconfined"];
        host.security_opt = Some(options.map(str::to_owned).to_vec());
    });
    changed(Relaxation::UnlimitedProcesses, |host| {
        host.pids_limit = Some(-1);
    });
    changed(Relaxation::UnlimitedMemory, |host| {
        (host.memory, host.memory_swap) = (None, None);
    });
}

#[test]
fn options_arrive() {
    let builder = new()
        .network(Network::Named("net-1".into()))
        .memory(64 << 20)
        .swap(1 << 20)
        .cpus(1.5)
        .cpu_shares(512)
        .pids_limit(7)
        .add_capability("CHOWN")
        .seccomp_profile("{}")
        .oci_runtime("runsc")
        .init(false)
        .user("5:6")
        .label("a", "b")
        .env("X", "y");
    let body = body(builder);
    assert_eq!(body.user.as_deref(), Some("5:6"));
    assert!(body.env.unwrap().contains(&"X=y".to_owned()));
    assert_eq!(body.labels.unwrap().get("a").map(String::as_str), Some("b"));
    let host = body.host_config.unwrap();
    assert_eq!(host.network_mode.as_deref(), Some("net-1"));
    assert_eq!(host.memory_swap, Some(65 << 20));
    assert_eq!(host.nano_cpus, Some(1_500_000_000));
    assert_eq!(host.cpu_shares, Some(512));
    assert_eq!(host.pids_limit, Some(7));
    assert_eq!(host.cap_add.unwrap(), ["CHOWN"]);
    assert_eq!(host.security_opt.unwrap()[1], "seccomp={}");
    assert_eq!(host.runtime.as_deref(), Some("runsc"));
    assert_eq!(host.init, Some(false));
}

#[test]
fn mounts_are_never_made_up() {
    let builder = new()
        .volume(Volume::host("/srv/a:b", "/a").read_only(true))
        .volume(Volume::named("data", "/d"))
        .ca_bundle("/etc/ca.crt");
    let host = host(builder);
    assert_eq!(host.binds, None, "binds make directories that are missing");
    let mounts = host.mounts.unwrap();
    let mounts: Vec<_> = mounts
        .iter()
        .map(|mount| {
            let typ = mount.typ.map(|typ| typ.to_string()).unwrap();
            let source = mount.source.clone().unwrap();
            format!(
                "{typ} {source} {} {:?}",
                mount.target.clone().unwrap(),
                mount.read_only
            )
        })
        .collect();
    let expected = [
        "bind /srv/a:b /a Some(true)",
        "volume data /d Some(false)",
        "bind /opt/sandbox-agent /dev/.agentbox/sandbox-agent Some(true)",
        "bind /etc/ca.crt /dev/.agentbox/ca.crt Some(true)",
    ];
    assert_eq!(mounts, expected);
}

#[test]
fn a_read_only_root_has_places_in_memory() {
    let tmpfs = host(new().read_only_root(true)).tmpfs.unwrap();
    assert_eq!(tmpfs["/tmp"], "exec,mode=1777");
    assert_eq!(tmpfs["/workspace"], "exec,mode=755,uid=1000,gid=1000");
    let builder = new()
        .read_only_root(true)
        .tmpfs("/tmp", "size=1m,noexec")
        .tmpfs("/x", "")
        .tmpfs("/y", "size=2m,mode=700")
        .volume(Volume::host("/srv", "/workspace"));
    let tmpfs = host(builder).tmpfs.unwrap();
    assert_eq!(tmpfs["/tmp"], "size=1m,noexec,uid=1000,gid=1000");
    assert_eq!(tmpfs["/x"], "exec,uid=1000,gid=1000");
    assert_eq!(tmpfs["/y"], "size=2m,mode=700,exec");
    assert!(!tmpfs.contains_key("/workspace"), "a volume is there");
    let body = body(new().read_only_root(true));
    assert!(body.env.unwrap().contains(&"HOME=/tmp".to_owned()));
}

#[test]
fn who_works_there() {
    let user = |builder: DockerBuilder, facts: &ImageFacts, shared| {
        User::choose(&builder.settings, facts, shared).name
    };
    let plain = facts();
    let named = ImageFacts {
        user: Some("node".into()),
        ..facts()
    };
    let runtime = Runtime::default().with_run_as_uid(1234);
    assert_eq!(user(new(), &plain, None), "1000:1000");
    assert_eq!(
        user(new(), &plain, Some((0, 0))),
        "1000:1000",
        "never root unasked"
    );
    assert_eq!(user(new(), &plain, Some((501, 20))), "501:20");
    assert_eq!(user(new(), &named, Some((501, 20))), "node");
    assert_eq!(user(new().runtime(runtime), &named, None), "1234:1234");
    assert_eq!(user(new().user("0"), &named, None), "0");
    assert_eq!(User::named("root".into()).ids, Some((0, 0)));
    assert_eq!(User::named("7".into()).ids, Some((7, 7)));
    assert_eq!(User::named("7:8".into()).ids, Some((7, 8)));
    assert_eq!(User::named("node".into()).ids, None);
}

#[test]
fn what_is_given_to_the_user() {
    let owned = |builder, facts: &ImageFacts, fresh: &[String]| {
        let owned = planned(builder, facts, |plan| plan.owned(fresh));
        owned.into_iter().map(|one| one.path).collect::<Vec<_>>()
    };
    let plain = facts();
    assert_eq!(owned(new(), &plain, &[]), ["/home/agent", "/workspace"]);
    assert_eq!(owned(new().user("0"), &plain, &[]), Vec::<String>::new());
    assert_eq!(owned(new().user("7"), &plain, &[]), ["/workspace"]);
    assert_eq!(
        owned(new().read_only_root(true), &plain, &[]),
        Vec::<String>::new()
    );
    let shared = || new().user("7").volume(Volume::host("/srv", "/workspace"));
    assert_eq!(
        owned(shared(), &plain, &[]),
        Vec::<String>::new(),
        "never the host's"
    );
    let given = Volume::host("/srv", "/workspace").owned(true);
    assert_eq!(
        owned(new().user("7").volume(given), &plain, &[]),
        ["/workspace"]
    );
    let kept = || new().user("7").volume(Volume::named("data", "/workspace"));
    assert_eq!(
        owned(kept(), &plain, &[]),
        Vec::<String>::new(),
        "it was there"
    );
    assert_eq!(owned(kept(), &plain, &["data".into()]), ["/workspace"]);
    let arranged = ImageFacts {
        user: Some("node".into()),
        working_dir: "/workspace".into(),
        ..facts()
    };
    assert_eq!(owned(new(), &arranged, &[]), Vec::<String>::new());
    let elsewhere = ImageFacts {
        working_dir: "/app".into(),
        ..arranged
    };
    assert_eq!(owned(new(), &elsewhere, &[]), ["/workspace"]);
}

#[test]
fn a_fingerprint_is_about_options_and_image_only() {
    let print = |builder, facts: &ImageFacts| {
        planned(builder, facts, |plan| plan.fingerprint(&plan.body()))
    };
    let first = print(new(), &facts());
    assert_eq!(first, print(new(), &facts()));
    assert_eq!(first.len(), 32);
    let other = ImageFacts {
        id: "sha256:2".into(),
        ..facts()
    };
    assert_ne!(first, print(new(), &other));
    assert_ne!(first, print(new().env("A", "b"), &facts()));
    assert_ne!(first, print(new().label("a", "b"), &facts()));
    assert_ne!(first, print(new().relax(Relaxation::HostNetwork), &facts()));
    let without_agent = planned(new(), &facts(), |plan| {
        let body = Plan {
            agent: None,
            stamp: None,
            nonce: "8",
            keep_alive: vec!["other".into()],
            ..*plan
        };
        body.fingerprint(&body.body())
    });
    assert_eq!(
        first, without_agent,
        "another agent or nonce is no other option"
    );
}

#[test]
fn labels_say_whose_it_is() {
    let labels_of = |builder| body(builder).labels.unwrap();
    let found = labels_of(new().idle_timeout(std::time::Duration::from_secs(60)));
    assert_eq!(found[labels::SANDBOX], "box");
    assert_eq!(found[labels::DISPOSAL], "remove");
    assert_eq!(found[labels::IDLE], "60");
    assert_eq!(found[labels::AGENT], "stamp");
    let owner = Owner::parse(&found[labels::OWNER]).unwrap();
    assert_eq!(owner.pid, std::process::id());
    assert_eq!(
        labels_of(new().auto_remove(false))[labels::DISPOSAL],
        "stop"
    );
    assert_eq!(labels_of(new().name("mine"))[labels::DISPOSAL], "keep");
    assert!(labels::is_ours(&found, &host(new())));
}
