//! Tar archives into and out of a sandbox.

use backend_core::{BackendExt as _, ErrorKind};
use bytes::Bytes;

use crate::support::{Place, purge, run};

fn archive(files: &[(&str, &[u8])]) -> Bytes {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o640);
        archive.append_data(&mut header, path, *content).unwrap();
    }
    archive.into_inner().unwrap().into()
}

fn files(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in tar::Archive::new(archive).entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().to_string_lossy().into_owned();
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
        if entry.header().entry_type().is_file() {
            found.push((path, content));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn archives_are_unpacked_and_packed() {
    let place = Place::new().await;
    let sandbox = place.builder().build().unwrap();
    let home = run(&sandbox, "pwd").await;
    let binary: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let sent = archive(&[("a.txt", b"one\n"), ("deep/er/b.bin", &binary)]);
    let place_there = format!("{home}/un packed");
    sandbox.put_tar(&place_there, sent).await.unwrap();
    let read = sandbox.read_bytes("un packed/deep/er/b.bin").await.unwrap();
    assert!(read == binary);
    assert_eq!(run(&sandbox, "stat -c %a 'un packed/a.txt'").await, "640");
    let packed = sandbox.get_tar(&place_there, 1 << 20).await.unwrap();
    let expected = [
        ("./un packed/a.txt".to_owned(), b"one\n".to_vec()),
        ("./un packed/deep/er/b.bin".to_owned(), binary),
    ];
    assert_eq!(files(&packed), expected);
    let one = sandbox
        .get_tar(&format!("{place_there}/a.txt/"), 1 << 20)
        .await;
    assert_eq!(files(&one.unwrap()).len(), 1);
    // Nothing stays behind.
    assert_eq!(
        run(&sandbox, "ls /tmp/.agentbox | grep -c tar || true").await,
        "0"
    );
    purge(&sandbox).await;
    place.standin.close().await;
}

#[tokio::test]
async fn what_cannot_be_packed_is_told() {
    let place = Place::new().await;
    let sandbox = place.builder().build().unwrap();
    let home = run(&sandbox, "head -c 200000 /dev/zero >big; pwd").await;
    let get = async |path: &str, limit| sandbox.get_tar(path, limit).await.unwrap_err();
    let missing = get(&format!("{home}/nothing"), 1 << 20).await;
    assert_eq!(missing.kind(), ErrorKind::NotFound, "{missing}");
    let large = get(&format!("{home}/big"), 100_000).await;
    assert_eq!(large.kind(), ErrorKind::TooLarge, "{large}");
    let wrong = get("relative", 1 << 20).await;
    assert_eq!(wrong.kind(), ErrorKind::Config, "{wrong}");
    let garbage = sandbox
        .put_tar(&home, Bytes::from_static(b"no archive"))
        .await;
    let garbage = garbage.unwrap_err();
    assert_eq!(garbage.kind(), ErrorKind::Unavailable, "{garbage}");
    assert!(garbage.message().contains("tar"), "{garbage}");
    purge(&sandbox).await;
    place.standin.close().await;
}
