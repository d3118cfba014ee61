use std::io::Read;

use backend_core::ErrorKind::{Unavailable, Unsupported};
use backend_docker::image::{self, BuildEvent, BuildOptions, Builder, CaBundle};
use backend_docker::{Daemon, Runtime};
use backend_testkit::fails;
use bollard::models::HostConfig;
use bollard::query_parameters::ListContainersOptionsBuilder;
use futures::StreamExt;

use crate::support::build as support;
use crate::support::build::{
    client, create, fresh, labelled, remove_container, remove_images, small, watch,
};
use crate::support::docker::{busybox, daemon, until};

/// Options for builds without network access.
fn options() -> BuildOptions {
    BuildOptions::new().with_network("none")
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn an_image_is_built_once_and_found_afterwards() {
    let runtime = small(&fresh("once"))
        .with_env("GREETING", r#"$HOME "q" \ é"#)
        .with_setup_command("echo seen >&2")
        .with_work_dir("/desk/dir");
    let (events, built) = watch(&runtime, &options()).await;
    let name = built.unwrap();
    assert_eq!(name, runtime.image_name().unwrap());
    let steps: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            BuildEvent::Step { number, total, .. } => Some((*number, *total)),
            _ => None,
        })
        .collect();
    assert_eq!(steps, [(1, 4), (2, 4), (3, 4), (4, 4)], "{events:?}");
    let seen = BuildEvent::Log {
        line: "seen".to_owned(),
    };
    assert!(events.contains(&seen), "{events:?}");
    let done = |built| BuildEvent::Done {
        image: name.clone(),
        built,
    };
    assert_eq!(events.last(), Some(&done(true)));

    let (events, found) = watch(&runtime, &options()).await;
    assert_eq!((events, found.unwrap()), (vec![done(false)], name.clone()));
    let other_words = runtime.clone().with_description("other words");
    let (events, _) = watch(&other_words, &options()).await;
    assert_eq!(events, [done(false)]);

    let printed = support::run(&name, "pwd; echo \"$GREETING\"").await;
    assert_eq!(printed, "/desk/dir\n$HOME \"q\" \\ é\n");
    let inspected = client().inspect_image(&name).await.unwrap().config.unwrap();
    let labels = inspected.labels.unwrap();
    assert_eq!(labels.get("agentbox.runtime"), Some(&runtime.name));
    remove_images(&runtime.name).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn the_classic_builder_makes_the_same() {
    let runtime = small(&fresh("classic"))
        .with_setup_command("echo \"seen $((1+1))\"")
        .with_run_as_uid(4321);
    let classic = options().with_builder(Builder::Classic);
    let (events, built) = watch(&runtime, &classic).await;
    let name = built.unwrap();
    assert!(
        events.iter().any(|event| event.to_string() == "seen 2"),
        "{events:?}"
    );
    let last_step = |event: &BuildEvent| matches!(event, BuildEvent::Step { number, total, .. } if number == total);
    assert!(events.iter().any(last_step), "{events:?}");
    let printed = support::run(&name, "id -u; id -un; pwd; touch x ~/y; echo $HOME").await;
    assert_eq!(printed, "4321\nagent\n/workspace\n/home/agent\n");
    let (events, _) = watch(&runtime, &options()).await;
    assert_eq!(events.len(), 1, "another builder finds it: {events:?}");

    let pem = "-----BEGIN CERTIFICATE-----\nMAo=\n-----END CERTIFICATE-----\n";
    let trusting = classic.with_ca_bundle(CaBundle::from_pem(pem).unwrap());
    let refused = image::ensure(&daemon(), &small(&fresh("no")), &trusting).await;
    fails(Unsupported, refused);
    remove_images(&runtime.name).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn two_at_once_are_one_build() {
    let runtime = small(&fresh("two")).with_setup_command("sleep 1");
    // Each would really build, and leave an unnamed image behind.
    let anew = options().with_no_cache(true).with_keep_superseded(true);
    let (one, two) = tokio::join!(watch(&runtime, &anew), watch(&runtime, &anew));
    assert_eq!(one.1.unwrap(), two.1.unwrap());
    assert_eq!(one.0, two.0, "both see the same events");
    assert_eq!(
        labelled(&runtime.name).await,
        [runtime.image_name().unwrap()]
    );

    watch(&runtime, &anew).await.1.unwrap();
    assert_eq!(
        labelled(&runtime.name).await.len(),
        2,
        "later, it is built anew"
    );
    remove_images(&runtime.name).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn the_first_callers_end_is_not_the_others() {
    let runtime = small(&fresh("first")).with_setup_command("sleep 2");
    let mut first = image::build(&daemon(), &runtime, &options()).unwrap();
    let second = image::build(&daemon(), &runtime, &options()).unwrap();
    assert!(matches!(first.next().await, Some(BuildEvent::Step { .. })));
    drop(first);
    let name = second.finish().await.unwrap();
    assert_eq!(labelled(&runtime.name).await, [name]);
    remove_images(&runtime.name).await;
}

/// Counts the processes of this host whose command line contains a text.
fn processes(text: &str) -> usize {
    let proc = std::fs::read_dir("/proc").unwrap();
    let commands = proc.filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
    commands
        .filter(|command| String::from_utf8_lossy(command).contains(text))
        .count()
}

/// Counts the containers of the daemon, running or not, whose command contains a text.
async fn containers(text: &str) -> usize {
    let all = ListContainersOptionsBuilder::default().all(true).build();
    let listed = client().list_containers(Some(all)).await.unwrap();
    let commands = listed.into_iter().filter_map(|container| container.command);
    commands.filter(|command| command.contains(text)).count()
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_build_nobody_waits_for_is_given_up() {
    for builder in [Builder::BuildKit, Builder::Classic] {
        let seconds = format!("4{:07}", fastrand::u32(..10_000_000));
        let runtime = small(&fresh("dropped")).with_setup_command(format!("sleep {seconds}"));
        let options = options().with_builder(builder);
        let first = image::build(&daemon(), &runtime, &options).unwrap();
        let second = image::build(&daemon(), &runtime, &options).unwrap();
        until("it sleeps", async || processes(&seconds) > 0).await;
        drop(first);
        drop(second);
        until("it is gone", async || processes(&seconds) == 0).await;
        until("no container", async || containers(&seconds).await == 0).await;
        // The images that the classic builder created so far are removed by the next
        // build or prune.
        image::prune(&daemon(), &runtime).await.unwrap();
        assert_eq!(labelled(&runtime.name).await, [""; 0]);
    }
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_failing_build_shows_the_end_of_its_log() {
    for builder in [Builder::BuildKit, Builder::Classic] {
        let runtime = small(&fresh("failing"))
            .with_setup_command("seq 1 1000 >&2; printf 'the \\033[2Jreason\\n' >&2; exit 7");
        let ended = image::ensure(&daemon(), &runtime, &options().with_builder(builder)).await;
        let error = fails(Unavailable, ended);
        let text = error.to_string();
        assert!(text.contains(&runtime.image_name().unwrap()), "{text}");
        assert!(
            text.contains('7') && text.contains("correct the runtime"),
            "{text}"
        );
        assert!(text.contains("\n  1000\n  the reason"), "{text}");
        assert!(
            !text.contains("\n  900\n") && !text.contains('\u{1b}'),
            "{text}"
        );
        assert_eq!(labelled(&runtime.name).await, [""; 0]);
        assert_eq!(containers("the reason").await, 0);
    }
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn superseded_images_go_and_no_others() {
    let name = fresh("prune");
    let longer = format!("{name}-x");
    let old = small(&name);
    let neighbour = small(&longer);
    let old_image = image::ensure(&daemon(), &old, &options()).await.unwrap();
    let neighbour_image = image::ensure(&daemon(), &neighbour, &options())
        .await
        .unwrap();

    // In use, even though the container is not running.
    let container = create(&old_image, &["true"], HostConfig::default()).await;
    let new = small(&name);
    let new_image = image::ensure(&daemon(), &new, &options()).await.unwrap();
    let mut both = [old_image.clone(), new_image.clone()];
    both.sort();
    assert_eq!(labelled(&name).await, both);
    assert_eq!(image::prune(&daemon(), &new).await.unwrap(), [""; 0]);

    remove_container(&container).await;
    assert_eq!(image::prune(&daemon(), &new).await.unwrap(), [old_image]);
    let newer = small(&name);
    let newer_image = image::ensure(&daemon(), &newer, &options()).await.unwrap();
    assert_eq!(labelled(&name).await, [newer_image]);
    assert_eq!(labelled(&longer).await, [neighbour_image]);

    // Built again under the same name: the old image loses its name.
    let anew = options().with_no_cache(true);
    image::ensure(&daemon(), &newer, &anew).await.unwrap();
    assert_eq!(labelled(&name).await.len(), 1);
    remove_images(&name).await;
    remove_images(&longer).await;
}

/// Returns the paths in the layers of a saved image, and all of its bytes.
async fn saved(image: &str) -> (Vec<String>, Vec<u8>) {
    let client = client();
    let mut export = std::pin::pin!(client.export_image(image));
    let mut bytes = Vec::new();
    while let Some(chunk) = export.next().await {
        bytes.extend_from_slice(&chunk.unwrap());
    }
    let mut paths = Vec::new();
    for entry in tar::Archive::new(&bytes[..]).entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        let mut layer = tar::Archive::new(&content[..]);
        let Ok(inner) = layer.entries() else {
            continue;
        };
        let inner = inner.map_while(Result::ok);
        paths.extend(inner.map(|entry| entry.path().unwrap().to_string_lossy().into_owned()));
    }
    (paths, bytes)
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_ca_bundle_leaves_no_trace() {
    let marker = format!("MARK{:016x}", fastrand::u64(..));
    let pem = format!("-----BEGIN CERTIFICATE-----\n{marker}\n-----END CERTIFICATE-----\n");
    let trusting = options().with_ca_bundle(CaBundle::from_pem(pem).unwrap());
    let runtime = small(&fresh("ca"))
        .with_setup_command("env; cat /dev/*.pem; echo x > /made")
        .with_run_as_uid(1000);
    let (events, built) = watch(&runtime, &trusting).await;
    let name = built.unwrap();
    let log: Vec<_> = events.iter().map(ToString::to_string).collect();
    assert!(
        log.contains(&marker),
        "it was there during the build: {log:?}"
    );
    for variable in CaBundle::VARIABLES {
        let prefix = format!("{variable}=/dev/");
        assert!(
            log.iter().any(|line| line.starts_with(&prefix)),
            "{variable}: {log:?}"
        );
    }

    let (paths, bytes) = saved(&name).await;
    assert!(paths.iter().any(|path| path == "made"), "{paths:?}");
    let odd = |path: &&String| path.contains("agentbox") || path.contains("pem");
    assert_eq!(paths.iter().find(odd), None);
    let history = client().image_history(&name).await.unwrap();
    let inspected = client().inspect_image(&name).await.unwrap();
    let told = format!("{history:?} {inspected:?}");
    for word in CaBundle::VARIABLES
        .into_iter()
        .chain([marker.as_str(), "CERTIFICATE-----"])
    {
        let found = bytes
            .windows(word.len())
            .any(|window| window == word.as_bytes());
        assert!(!found, "{word} is in the saved image");
        assert!(!told.contains(word), "{word} is in {told}");
    }
    remove_images(&runtime.name).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn an_image_that_cannot_be_had_says_what_to_do() {
    // Nothing listens there.
    for runtime in [
        Runtime::from_image("a", "127.0.0.1:1/nowhere:1"),
        Runtime::on_base("a", "127.0.0.1:1/nowhere:1"),
    ] {
        let error = fails(
            Unavailable,
            image::ensure(&daemon(), &runtime, &options()).await,
        );
        let text = error.to_string();
        assert!(
            text.contains("'127.0.0.1:1/nowhere:1' is not there"),
            "{text}"
        );
        assert!(text.contains("docker load"), "{text}");
    }
    let present = busybox();
    let runtime = Runtime::from_image("b", &present);
    let (events, found) = watch(&runtime, &options()).await;
    assert_eq!(found.unwrap(), present);
    assert_eq!(events.len(), 1, "{events:?}");
}

#[tokio::test]
async fn a_daemon_that_is_not_there_is_unavailable() {
    let nobody = Daemon::at("tcp://127.0.0.1:1").unwrap();
    let runtime = Runtime::from_image("a", "x");
    fails(
        Unavailable,
        image::ensure(&nobody, &runtime, &options()).await,
    );
    let base = Runtime::on_base("a", "x").with_cache_image(false);
    fails(Unavailable, image::ensure(&nobody, &base, &options()).await);
    fails(Unavailable, image::prune(&nobody, &runtime).await);
}
