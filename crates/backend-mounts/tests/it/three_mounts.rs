//! Three mounts as in the predecessor's example: read-only input, output for small text
//! files, and a configuration that needs approval.
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use backend_composite::Composite;
use backend_core::ErrorKind::{ApprovalRequired, InvalidInput, PermissionDenied, TooLarge};
use backend_core::{Backend as _, BackendExt as _, VPath};
use backend_mounts::{Derive, MountTree, Opener};
use backend_testkit::fails;
use permissions::approval::ApproverError;
use permissions::{Answer, Approver, Guarded, Question};
use tempfile::TempDir;

const THREE: &str = r#"
[paths.input]
root = "input"

[paths.output]
root = "output"
mode = "rw"
suffixes = [".md", ".txt"]
max_file_bytes = 1000
write_approval = false

[paths.config]
root = "config"
read_approval = true
"#;

/// An approver that says yes and records the questions.
#[derive(Debug, Clone, Default)]
struct Asked(Arc<Mutex<Vec<String>>>);

impl Asked {
    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

#[async_trait]
impl Approver for Asked {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        self.0.lock().unwrap().push(question.description.clone());
        Ok(Answer::yes())
    }
}

fn three() -> (MountTree, TempDir) {
    let place = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("input/data.csv", "a,b\n1,2\n"),
        ("config/app.toml", "key = 1\n"),
    ] {
        let path = place.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let tree = Opener::from_toml(THREE).unwrap().base(place.path());
    (tree.open().unwrap(), place)
}

fn guarded(tree: &MountTree) -> (Guarded<Composite>, Asked) {
    let asked = Asked::default();
    (tree.guard().approver(asked.clone()).build(), asked)
}

async fn names(files: &Guarded<Composite>, path: &str) -> Vec<String> {
    let listing = files.list_dir(path).await.unwrap();
    let names = listing.entries.iter().map(|entry| entry.path.to_string());
    names.collect()
}

#[tokio::test]
async fn input_is_read_and_nothing_else() {
    let (tree, _place) = three();
    let (files, asked) = guarded(&tree);
    let text = files.read_to_string("/input/data.csv").await.unwrap();
    assert_eq!(text, "a,b\n1,2\n");
    for refused in [
        files.write_file("/input/new.txt", "x").await.map(drop),
        files
            .replace_text("/input/data.csv", "1", "2")
            .await
            .map(drop),
        files.delete_file("/input/data.csv").await,
        files.move_to("/input/data.csv", "/output/data.txt").await,
    ] {
        fails(PermissionDenied, refused);
    }
    assert!(asked.taken().is_empty());
}

#[tokio::test]
async fn output_takes_small_text_files() {
    let (tree, place) = three();
    let (files, asked) = guarded(&tree);
    files
        .write_file("/output/deep/report.md", "# Report\n")
        .await
        .unwrap();
    let written = std::fs::read_to_string(place.path().join("output/deep/report.md"));
    assert_eq!(written.unwrap(), "# Report\n");
    files
        .write_file("/output/full.txt", "x".repeat(1000))
        .await
        .unwrap();
    let large = files
        .write_file("/output/large.txt", "x".repeat(1001))
        .await;
    fails(TooLarge, large);
    let program = files.write_file("/output/run.sh", "x").await;
    fails(PermissionDenied, program);
    let copied = files.copy_to("/input/data.csv", "/output/data.csv").await;
    fails(PermissionDenied, copied);
    files
        .copy_to("/input/data.csv", "/output/data.txt")
        .await
        .unwrap();
    assert!(asked.taken().is_empty());
}

#[tokio::test]
async fn the_configuration_is_read_after_a_yes() {
    let (tree, _place) = three();
    let (files, asked) = guarded(&tree);
    let text = files.read_to_string("/config/app.toml").await.unwrap();
    assert_eq!(text, "key = 1\n");
    assert_eq!(asked.taken().len(), 1);
    fails(
        PermissionDenied,
        files.write_file("/config/app.toml", "x").await,
    );
    assert!(asked.taken().is_empty());
    // There is no approver.
    let error = tree
        .guard()
        .build()
        .read_to_string("/config/app.toml")
        .await;
    fails(ApprovalRequired, error);
}

#[tokio::test]
async fn the_three_are_one_tree() {
    let (tree, _place) = three();
    let (files, asked) = guarded(&tree);
    assert_eq!(names(&files, "/").await, ["/config", "/input", "/output"]);
    assert!(asked.taken().is_empty(), "a name is not what is in it");
    let outside = files.write_file("/elsewhere/a.txt", "x").await;
    fails(PermissionDenied, outside);
    let missing = files.read_to_string("/elsewhere/a.txt").await;
    fails(PermissionDenied, missing);
    let found = files.search_text("1").await.unwrap();
    let found: Vec<_> = found
        .files
        .iter()
        .map(|file| file.path.to_string())
        .collect();
    assert_eq!(found, ["/config/app.toml", "/input/data.csv"]);
    assert_eq!(asked.taken().len(), 1);
}

#[tokio::test]
async fn a_part_is_only_less_along_the_whole_chain() {
    let (tree, place) = three();
    std::fs::create_dir_all(place.path().join("output/mine/deep")).unwrap();
    let mine = tree
        .derive(Derive::new().write(["/output/mine"]))
        .await
        .unwrap();
    let (files, _) = guarded(&mine);
    files.write_file("/output/mine/a.md", "x").await.unwrap();
    assert!(files.write_file("/output/a.md", "x").await.is_err());
    assert!(files.read_to_string("/input/data.csv").await.is_err());
    // Suffixes and sizes still apply.
    assert!(files.write_file("/output/mine/run.sh", "x").await.is_err());
    assert!(
        files
            .write_file("/output/mine/b.md", "x".repeat(1001))
            .await
            .is_err()
    );

    let deep = mine
        .derive(Derive::new().read(["/output/mine/deep"]))
        .await
        .unwrap();
    let (files, _) = guarded(&deep);
    assert!(
        files
            .write_file("/output/mine/deep/a.md", "x")
            .await
            .is_err()
    );
    for wider in [
        Derive::new().write(["/output/mine/deep"]),
        Derive::new().read(["/output/mine"]),
        Derive::new().read(["/input"]),
    ] {
        fails(PermissionDenied, deep.derive(wider).await);
    }
    let file = Derive::new().read(["/output/mine/a.md"]);
    fails(InvalidInput, mine.derive(file).await);
    // The original tree is unchanged.
    let (files, _) = guarded(&tree);
    files.write_file("/output/a.md", "x").await.unwrap();
}

#[tokio::test]
async fn a_nested_mount_covers_its_part_and_links_lead_into_no_other() {
    let place = tempfile::tempdir().unwrap();
    for path in "outer/inner/shadowed.txt inner/real.txt outer/own.txt".split(' ') {
        let path = place.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "needle\n").unwrap();
    }
    let link = place.path().join("outer/link");
    std::os::unix::fs::symlink(place.path().join("inner"), link).unwrap();
    let text = r#"
        [[mounts]]
        host_path = "outer"
        mount_point = "/data"
        [[mounts]]
        host_path = "inner"
        mount_point = "/data/inner"
    "#;
    let tree = Opener::from_toml(text).unwrap().base(place.path());
    let (files, _) = guarded(&tree.open().unwrap());
    assert_eq!(names(&files, "/data/inner").await, ["/data/inner/real.txt"]);
    let found = files.find_files("*.txt").await.unwrap();
    let found: Vec<_> = found
        .files
        .iter()
        .map(|file| file.path.to_string())
        .collect();
    assert_eq!(found, ["/data/inner/real.txt", "/data/own.txt"]);
    assert!(
        files
            .read_to_string("/data/inner/shadowed.txt")
            .await
            .is_err()
    );
    let error = fails(
        PermissionDenied,
        files.read_to_string("/data/link/real.txt").await,
    );
    let host = place.path().to_string_lossy().into_owned();
    assert!(!error.to_string().contains(&host), "{error}");
    // A mount is neither deleted nor moved.
    let root = VPath::parse("/data/inner").unwrap();
    let options = backend_core::ops::DeleteOptions::default().recursive(true);
    assert!(files.delete(&root, options).await.is_err());
}
