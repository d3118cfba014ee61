//! Three processes use the sessions of one cluster, and are killed at random: no session has
//! two pods at once, none is ended while it is used, and all are ended when no process uses
//! them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sessions::{Engine as _, RecordState, Session};

use crate::support::k8s::{Place, has_volumes, manager, runtime, variable};
use crate::support::killed::{
    IDLE_TIMEOUT, IDS, Log, PATIENCE, between, execute, kill_at_random, sees_its_own, use_sessions,
};

/// The namespace, set in the processes that will be killed.
const NAMESPACE: &str = "AGENTBOX_TEST_SESSIONS_NAMESPACE";
/// The directory of the logs.
const LOGS: &str = "AGENTBOX_TEST_SESSIONS_LOGS";

/// Users at once in each process.
const USERS: usize = 2;
/// How long processes are killed, at least.
const KILLING: Duration = Duration::from_secs(20);
/// Volumes: for the sessions, and for the pods that killed processes kept ready.
const VOLUMES: usize = 48;

/// Notes that a session was seen in a pod.
fn note_seen(log: &Log, id: &str, pod: &str) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    log.line(&format!("seen {id} {pod} {}", now.as_millis()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of another test, which starts it"]
async fn part_uses_sessions_until_it_is_killed() {
    let Ok(namespace) = std::env::var(NAMESPACE) else {
        return;
    };
    let place = Place::of_another(namespace).await;
    let log = Log::create(Path::new(&variable(LOGS)));
    // Some claim pods that are ready, the others create them.
    let engine = place.engine();
    let engine = if fastrand::bool() {
        engine.pool(runtime(), 1)
    } else {
        engine
    };
    use_sessions(engine.build().unwrap(), USERS, &log, use_one).await;
}

/// Uses a session without a pause. Files outside of its volume are lost if its pod is replaced
/// meanwhile.
async fn use_one(session: &Session, id: &str, log: &Log) -> Result<(), String> {
    let mark = format!("{:016x}", fastrand::u64(..));
    // The first user of a pod gives it a name that no other pod has.
    let named = format!("(set -C; echo {mark} > /tmp/pod) 2>/dev/null; cat /tmp/pod");
    let pod = execute(session, &named).await?;
    note_seen(log, id, &pod);
    execute(session, &format!("echo {mark} >> {id}.txt")).await?;
    let deadline = Instant::now() + between(0, 10_000);
    while Instant::now() < deadline {
        let found = execute(session, "cat /tmp/pod").await?;
        note_seen(log, id, &found);
        if found != pod {
            return Err(format!("was ended while it was used: {found}"));
        }
        tokio::time::sleep(between(0, 400)).await;
    }
    execute(session, &format!("grep -q {mark} {id}.txt")).await?;
    sees_its_own(session, id).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn processes_that_are_killed_share_sessions() {
    if !has_volumes() {
        return;
    }
    let place = Place::new().await;
    place.make_volumes(VOLUMES).await;
    let logs = tempfile::tempdir().unwrap();
    let part = "k8s_processes::part_uses_sessions_until_it_is_killed";
    let namespace = place.namespace.as_ref();
    let variables: [(&str, &OsStr); 2] = [(NAMESPACE, namespace), (LOGS, logs.path().as_ref())];
    let all_used = || {
        let lines = Log::read_all(logs.path());
        let is_of = |id, line: &String| line.starts_with(&format!("seen {id} "));
        IDS.iter()
            .all(|id| lines.iter().any(|line| is_of(id, line)))
    };
    kill_at_random(part, &variables, KILLING, (700, 4000), all_used).await;
    // When each pod of a session was seen first and last.
    let mut seen = BTreeMap::<_, BTreeMap<_, (u64, u64)>>::new();
    let lines = Log::read_all(logs.path());
    for line in &lines {
        let ["seen", id, pod, at] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let at: u64 = at.parse().unwrap();
        let pods = seen.entry(id).or_default();
        let seen = pods.entry(pod).or_insert((at, at));
        *seen = (seen.0.min(at), seen.1.max(at));
    }
    println!("{} uses", lines.len());
    assert_eq!(seen.len(), IDS.len(), "all were used: {seen:?}");
    for (id, pods) in &seen {
        let mut times: Vec<_> = pods.values().collect();
        times.sort();
        let overlap = times.windows(2).any(|two| two[1].0 < two[0].1);
        assert!(!overlap, "{id} had two pods at once: {pods:?}");
    }
    all_end(&place).await;
}

/// Checks that a later process ends what the killed ones left, once it is idle.
async fn all_end(place: &Place) {
    let engine = place.engine().build().unwrap();
    let manager = manager(&engine);
    let deadline = Instant::now() + PATIENCE;
    loop {
        // As if the signs of life of the killed processes had become old.
        let later = SystemTime::now() + Duration::from_secs(120);
        engine.maintain(later).await.unwrap();
        manager.cleanup_idle(Some(IDLE_TIMEOUT)).await.unwrap();
        let left = place.pods().await;
        if left.is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "left: {left:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let records = manager.list().await.unwrap();
    assert_eq!(records.len(), IDS.len(), "{records:?}");
    for record in records {
        assert_eq!(record.state, RecordState::Stored);
        assert!(manager.purge(record.id.as_str()).await.unwrap());
    }
    assert!(manager.list().await.unwrap().is_empty());
}
