//! Containers left by a killed process are found and removed. Nothing else is touched.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use backend_core::{ErrorKind, Sandbox as _};
use backend_docker::{DockerSandbox, leftovers, reap};
use backend_testkit::fails;

use crate::support::docker;
use crate::support::docker::{builder, busybox, daemon, exists, purge, until};

/// Set in the process that will be killed.
const VICTIM: &str = "AGENTBOX_TEST_VICTIM";

/// Held by tests that would otherwise reap each other's leftovers.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Another process of this test program that holds sandboxes.
struct Victim {
    child: Child,
    names: Vec<String>,
}

impl Victim {
    fn start() -> Self {
        Self::run("docker_leftovers::holds_sandboxes_until_it_is_killed")
    }

    /// Starts a process that runs this test.
    fn run(test: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", test])
            .env(VICTIM, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = output.lines().map(Result::unwrap);
        let names = lines.find_map(|line| Some(line.split_once("holds: ")?.1.to_owned()));
        let names = names.unwrap().split(' ').map(str::to_owned).collect();
        Self { child, names }
    }

    /// Ends it like a crash.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Containers of the user that carry a sandbox's labels, and their volume.
struct Copies {
    image: String,
    volume: String,
    /// Created from the image of the committed sandbox.
    committed: String,
    /// Created by hand, with the same labels.
    labelled: String,
}

impl Copies {
    fn of(sandbox: &str) -> Self {
        let number = format!("{:x}-{sandbox}", std::process::id());
        let image = format!("agentbox-test-committed:{number}");
        let volume = format!("agentbox-test-volume-{number}");
        docker::docker(&["commit", sandbox, &image]);
        let mount = format!("{volume}:/kept");
        let run = [
            "run",
            "-d",
            "--network",
            "none",
            "-v",
            &mount,
            "-v",
            "/scratch",
        ];
        let committed = docker::docker(&[&run[..], &[&image]].concat());
        let format = "{{range $key, $value := .Config.Labels}}{{$key}}={{$value}}\n{{end}}";
        let labels = docker::docker(&["inspect", "-f", format, sandbox]);
        let labels = labels.lines().filter(|line| !line.is_empty());
        let labels: Vec<_> = labels.flat_map(|line| ["--label", line]).collect();
        assert!(labels.len() > 8, "{labels:?}");
        let create = [&["create"][..], &labels, &[&busybox(), "true"]];
        let labelled = docker::docker(&create.concat());
        Self {
            image,
            volume,
            committed,
            labelled,
        }
    }

    /// Checks that all of them are unchanged.
    fn check(&self) {
        let format = "{{.State.Running}} {{range .Mounts}}{{.Name}} {{end}}";
        let found = docker::docker(&["inspect", "-f", format, &self.committed]);
        assert!(found.starts_with("true "), "{found}");
        for volume in found.split(' ').skip(1) {
            docker::docker(&["volume", "inspect", volume]);
        }
        docker::docker(&["inspect", &self.labelled]);
    }

    fn remove(self) {
        docker::docker(&["rm", "-f", "-v", &self.committed, &self.labelled]);
        docker::docker(&["volume", "rm", &self.volume]);
        docker::docker(&["rmi", &self.image]);
    }
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
#[allow(clippy::disallowed_methods, reason = "how a victim knows itself")]
async fn holds_sandboxes_until_it_is_killed() {
    if std::env::var(VICTIM).is_err() {
        return;
    }
    let named = format!("agentbox-victim-{:x}", std::process::id());
    let all = [
        builder().build().unwrap(),
        builder().auto_remove(false).build().unwrap(),
        builder().name(&named).build().unwrap(),
    ];
    for sandbox in &all {
        sandbox.start().await.unwrap();
    }
    let names: Vec<_> = all.iter().map(|sandbox| sandbox.id()).collect();
    println!("holds: {}", names.join(" "));
    std::io::stdout().flush().unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_killed_process_is_cleaned_up_after() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let daemon = daemon();
    let mut victim = Victim::start();
    let held = victim.names.clone();
    let [removed, stopped, named] = &held[..] else {
        panic!("{held:?}");
    };
    let ours = async || -> Vec<String> {
        let all = leftovers(&daemon).await.unwrap();
        let names = all.into_iter().map(|left| left.name);
        names.filter(|name| held.contains(name)).collect()
    };
    assert_eq!(ours().await, Vec::<String>::new(), "it lives");
    let foreign = docker::docker(&["create", &busybox(), "true"]);
    // Labelled as if created on another host, by a process that does not run here.
    let elsewhere = docker::docker(&[
        "create",
        "--label",
        "agentbox.sandbox=elsewhere",
        "--label",
        "agentbox.disposal=remove",
        "--label",
        "agentbox.owner=1:1:another-boot:1",
        "--label",
        "agentbox.host=another/host",
        &busybox(),
        "true",
    ]);
    let mine = builder().build().unwrap();
    mine.start().await.unwrap();
    victim.kill();
    let mut left = ours().await;
    left.sort();
    let mut expected = vec![removed.clone(), stopped.clone()];
    expected.sort();
    assert_eq!(left, expected);
    reap(&daemon).await.unwrap();
    assert!(!exists(removed));
    assert!(exists(stopped) && exists(named), "those were to be kept");
    let running = |name: &str| docker::docker(&["inspect", "-f", "{{.State.Running}}", name]);
    assert_eq!((&*running(stopped), &*running(named)), ("false", "true"));
    assert_eq!(ours().await, Vec::<String>::new());
    assert!(
        mine.is_alive().await.unwrap(),
        "those of processes that live stay"
    );
    for id in [&foreign, &elsewhere] {
        docker::docker(&["inspect", id]);
    }
    docker::docker(&["rm", "-f", &foreign, &elsewhere, stopped, named]);
    purge(&mine).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn labels_that_were_copied_are_no_leftovers() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let daemon = daemon();
    let mut victim = Victim::start();
    let [removed, stopped, named] = &victim.names.clone()[..] else {
        panic!("{:?}", victim.names);
    };
    let copies = Copies::of(removed);
    let renamed = format!("{removed}-renamed");
    docker::docker(&["rename", removed, &renamed]);
    victim.kill();
    let ids = async || -> Vec<String> {
        let all = leftovers(&daemon).await.unwrap();
        all.into_iter().map(|left| left.id).collect()
    };
    let found = ids().await;
    let id = docker::docker(&["inspect", "-f", "{{.Id}}", &renamed]);
    assert!(
        found.contains(&id),
        "another name changes nothing: {found:?}"
    );
    assert!(!found.contains(&copies.committed) && !found.contains(&copies.labelled));
    reap(&daemon).await.unwrap();
    assert!(!exists(&renamed));
    copies.check();
    // Nor can one of them be attached to as if it were the sandbox.
    let error = DockerSandbox::attach(&copies.committed).daemon(daemon.clone());
    fails(
        ErrorKind::PermissionDenied,
        error.agent(docker::agent()).open().await,
    );
    copies.remove();
    docker::docker(&["rm", "-f", stopped, named]);
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn starts_and_reaps_until_it_is_killed() {
    if std::env::var(VICTIM).is_err() {
        return;
    }
    let sandbox = builder().reap_leftovers(true).build().unwrap();
    sandbox.start().await.unwrap();
    println!("holds: {}", sandbox.id());
    std::io::stdout().flush().unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn the_next_start_reaps_by_itself() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let mut victim = Victim::start();
    let copies = Copies::of(&victim.names[0]);
    victim.kill();
    // Only the first start of a process reaps, and in this process other tests have
    // started sandboxes.
    let mut next = Victim::run("docker_leftovers::starts_and_reaps_until_it_is_killed");
    // The daemon lists the newest containers first, so the copies were examined before
    // this one.
    until("the reaping", async || !exists(&victim.names[0])).await;
    copies.check();
    copies.remove();
    next.kill();
    docker::docker(&[
        "rm",
        "-f",
        &victim.names[1],
        &victim.names[2],
        &next.names[0],
    ]);
}
