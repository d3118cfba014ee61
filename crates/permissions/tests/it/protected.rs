//! Tests that protected files, such as those a policy was loaded from, cannot be
//! changed.

use backend_core::{BackendExt as _, ErrorKind, VPath};
use backend_local::LocalBackend;
use backend_state::StateBackend;
use backend_testkit::{fails, path};
#[cfg(feature = "shell")]
use permissions::Action;
use permissions::{Guarded, Policy, Preset, Refusal};

use crate::support::scene::local;

/// Allows everything except changing the files that define the policy.
fn open() -> Policy {
    Policy::allow_all().protecting([path("/conf/rules.toml"), path("/config.toml")])
}

#[tokio::test]
async fn the_files_of_a_policy_can_be_read_and_not_changed() {
    for policy in [
        open(),
        Policy::builder()
            .ruleset(&Preset::Permissive.ruleset(), &VPath::root())
            .build()
            .protecting([path("/conf/rules.toml"), path("/config.toml")]),
    ] {
        let files = StateBackend::new();
        for file in ["/conf/rules.toml", "/config.toml", "/conf/other", "/a"] {
            files.write_file(file, "x\n").await.unwrap();
        }
        let guarded = Guarded::builder(files.clone()).policy(policy).build();
        assert_eq!(
            guarded.read_to_string("/conf/rules.toml").await.unwrap(),
            "x\n"
        );
        guarded.write_file("/conf/other", "y").await.unwrap();
        guarded.write_file("/conf/new", "y").await.unwrap();
        let refused = [
            guarded.write_file("/conf/rules.toml", "y").await.err(),
            guarded.replace_text("/config.toml", "x", "y").await.err(),
            guarded.write_file("/config.toml/x", "y").await.err(),
            guarded.delete_file("/config.toml").await.err(),
            guarded.delete_tree("/conf").await.err(),
            guarded.move_to("/conf", "/elsewhere").await.err(),
            guarded.move_to("/conf/rules.toml", "/b").await.err(),
            guarded.move_to("/a", "/config.toml").await.err(),
            guarded.copy_to("/a", "/config.toml").await.err(),
        ];
        for (number, error) in refused.into_iter().enumerate() {
            let error = error.unwrap_or_else(|| panic!("{number} was allowed"));
            assert_eq!(
                error.kind(),
                ErrorKind::PermissionDenied,
                "{number}: {error}"
            );
            assert!(Refusal::of(&error).is_some(), "{number}: {error}");
        }
        for file in ["/conf/rules.toml", "/config.toml"] {
            assert_eq!(files.read_to_string(file).await.unwrap(), "x\n");
        }
    }
}

#[tokio::test]
async fn a_link_to_such_a_file_does_not_help() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("config.toml"), "x\n").unwrap();
    std::os::unix::fs::symlink("config.toml", directory.path().join("link")).unwrap();
    let files = LocalBackend::builder(directory.path()).open().unwrap();
    let guarded = Guarded::builder(files).policy(open()).build();
    fails(
        ErrorKind::PermissionDenied,
        guarded.write_file("/link", "y").await,
    );
    let text = std::fs::read_to_string(directory.path().join("config.toml")).unwrap();
    assert_eq!(text, "x\n");
}

#[cfg(feature = "shell")]
fn judge(policy: &Policy, line: &str) -> Action {
    let here = VPath::root();
    let command = permissions::command::CommandContext::new(line, &here);
    policy.judge_command(command).verdict.action()
}

#[cfg(feature = "shell")]
#[test]
fn commands_that_change_protected_files_are_held_to_them() {
    let lines = crate::support::corpus::corpus("protected.txt");
    let directories = Policy::allow_all().protecting([path("/conf/rules.toml")]);
    for (section, count, policy, expected) in [
        ("files deny", 16, &open(), Action::Deny),
        ("files allow", 14, &open(), Action::Allow),
        ("directories deny", 26, &directories, Action::Deny),
        ("directories ask", 28, &directories, Action::Ask),
        ("directories allow", 29, &directories, Action::Allow),
        // If nothing is protected, nothing is asked about.
        ("directories ask", 28, &Policy::allow_all(), Action::Allow),
    ] {
        let lines = lines.iter().filter(|(name, _)| name == section);
        assert_eq!(lines.clone().count(), count, "{section}");
        for (_, line) in lines {
            assert_eq!(judge(policy, line), expected, "{line}");
        }
    }
}

/// Unlike those of a shell, the wildcards of `find` match a leading dot, and a
/// backslash in its patterns escapes.
#[cfg(feature = "shell")]
#[test]
fn find_may_change_a_hidden_file_without_spelling_its_dot() {
    let policy = Policy::allow_all().protecting([path("/conf/.env")]);
    for pattern in [
        "?env", "*env", "[.]env", "?en?", "*", r"\.env", r".\e*", ".ENV",
    ] {
        let line = format!("find conf -name '{pattern}' -delete");
        assert_eq!(judge(&policy, &line), Action::Deny, "{line}");
    }
    for pattern in ["?nv", "env", "?.env", "x*", r"\?env"] {
        let line = format!("find conf -name '{pattern}' -delete");
        assert_eq!(judge(&policy, &line), Action::Allow, "{line}");
    }
}

#[test]
fn the_name_of_a_policy_tells_what_it_protects() {
    assert_ne!(open().id(), Policy::allow_all().id());
    assert_eq!(open().id(), open().id());
}

/// Rules are not passed as program arguments, so no number of them keeps commands from
/// starting.
#[tokio::test]
async fn ten_thousand_rules_still_start_a_command() {
    use backend_core::Sandbox as _;
    use backend_core::ops::Command;

    let rule = |n| format!(r#"{{"pattern": "**/kept-{n}/*.key", "action": "deny"}}"#);
    let rules: Vec<String> = (0..10_000).map(rule).collect();
    let text = format!(
        r#"{{"default": "allow", "read": {{"default": "allow", "rules": [{}]}}}}"#,
        rules.join(",")
    );
    let ruleset = permissions::Ruleset::from_json(&text).unwrap();
    let (_directory, files) = local();
    let policy = Policy::builder().ruleset(&ruleset, &VPath::root()).build();
    let guarded = Guarded::builder(files).policy(policy).build();
    let ran = guarded.execute(Command::new("echo started")).await.unwrap();
    assert_eq!(&*ran.stdout.head, b"started\n", "{ran:?}");
    let denied = guarded.execute(Command::new("cat kept-9999/a.key")).await;
    fails(ErrorKind::PermissionDenied, denied);
}
