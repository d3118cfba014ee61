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
#[test]
fn commands_that_name_them_are_refused() {
    let here = VPath::root();
    let judge = |line: &str| {
        let command = permissions::command::CommandContext::new(line, &here);
        open().judge_command(command).verdict.action()
    };
    for line in [
        "echo 'default = \"allow\"' > config.toml",
        "rm config.toml",
        "mv conf elsewhere",
        "rm -r ./conf",
        "rm -rf *",
        "cd conf && sed -i s/deny/allow/ rules.toml",
        "cp evil conf/rules.toml",
        "mv config.toml x",
        "chmod 777 conf/*.toml",
        "strange-program config.toml",
        "true; (cd /conf; tee rules.toml < /evil)",
        "mv c*f elsewhere",
        "ln conf/rules.toml second",
        "ln -s ../config.toml conf/link",
        "cp -al config.toml second",
        "echo x > conf/rule*.toml",
    ] {
        assert_eq!(judge(line), Action::Deny, "{line}");
    }
    for line in [
        "cat config.toml",
        "grep -r deny conf",
        "cp a.txt .",
        "mv sub/a.txt .",
        "cp a.txt conf/other",
        "cp config.toml copy.toml",
        "ln a.txt b.txt",
        "cat *.toml",
        "touch conf/new",
        "rm *.o",
        "rm -r build",
        "ls conf",
        "make $TARGET",
        "python3 -c 'print(1)'",
    ] {
        assert_eq!(judge(line), Action::Allow, "{line}");
    }
}

/// Lines that name a directory above a protected file.
#[cfg(feature = "shell")]
const NAMED: &[&str] = &[
    "git clean -fd conf",
    "git -C conf clean -fdx",
    "cd conf && git clean -fdx",
    "git mv conf conf2",
    "git rm -rqf conf",
    "git checkout HEAD -- conf",
    "git checkout HEAD -- conf/rules.toml",
    "git checkout HEAD conf",
    "git restore conf",
    "git restore -s HEAD~1 conf/rules.toml",
    "git --work-tree=conf checkout -f HEAD",
    "git worktree remove conf",
    "find conf -type f -delete",
    "find . -name conf -exec rm -rf {} +",
    "find conf -name '*.toml' -exec cp e {} \\;",
    "tar cf x.tar --remove-files conf",
    "zip -qrm x.zip conf",
    "gzip -r conf",
    "gzip conf/rules.toml",
    "cp -rT d conf",
    "cp -r d/conf .",
    "cp d/rules.toml conf",
    "cp -t conf d/rules.toml",
    "tar xf a.tar -C conf",
    "x=conf; cp e $x/rules.toml",
    "for d in conf; do cp e $d/rules.toml; done",
];

/// Lines that name nothing, or only the directory they run in.
#[cfg(feature = "shell")]
const UNNAMED: &[&str] = &[
    "git clean -fd",
    "git clean -fdx .",
    "git stash -u",
    "git stash pop",
    "git add -A && git stash",
    "git reset --hard",
    "git checkout main",
    "git checkout -q main --",
    "git switch main",
    "git switch -c new origin/main",
    "git pull --rebase",
    "git merge main",
    "git rebase main",
    "git cherry-pick abc",
    "git apply x.diff",
    "git am x.mbox",
    "git read-tree -u --reset HEAD",
    "git submodule update",
    "find . -name rules.toml -delete",
    "find . -name 'rules*' -exec cp e {} \\;",
    "find . -type f -exec cp e {} \\;",
    "tar xf a.tar",
    "unzip -o a.zip",
    "patch -p1 < x.diff",
    "cp -r d/. .",
    "cp e $x/rules.toml",
    "cp e \"$x\"",
    "ls | xargs -I{} cp e {}",
];

/// Lines that change other files.
#[cfg(feature = "shell")]
const OTHERS: &[&str] = &[
    "git status",
    "git add -A && git commit -m x",
    "git checkout -b new",
    "git switch -c new",
    "git checkout -- src/a.rs",
    "git restore --staged .",
    "git restore src/a.rs",
    "git rm src/a.rs",
    "git rm -r --cached conf/old",
    "git mv a b",
    "git stash list",
    "git reset HEAD~1",
    "git clean -n",
    "git clean -fd build",
    "git -C sub clean -fd",
    "git apply --check x.diff",
    "git fetch && git push",
    "find . -name '*.pyc' -delete",
    "find . -name '*.rs' -exec grep -l x {} +",
    "find build -type f -delete",
    "tar cf x.tar conf",
    "tar xf a.tar -C out",
    "zip -r x.zip .",
    "cp -r src backup",
    "cp $x dist/",
    "cp e $x/other.toml",
    "mkdir -p \"$OUT\"",
    "gzip a.log",
    "rsync -a src/ out/",
];

#[cfg(feature = "shell")]
#[test]
fn commands_that_change_whole_directories_are_held_to_them() {
    let here = VPath::root();
    let judge = |policy: Policy, line: &str| {
        let command = permissions::command::CommandContext::new(line, &here);
        policy.judge_command(command).verdict.action()
    };
    let protecting = || Policy::allow_all().protecting([path("/conf/rules.toml")]);
    for (lines, expected) in [
        (NAMED, Action::Deny),
        (UNNAMED, Action::Ask),
        (OTHERS, Action::Allow),
    ] {
        for line in lines {
            assert_eq!(judge(protecting(), line), expected, "{line}");
        }
    }
    // If nothing is protected, nothing is asked about.
    for line in UNNAMED {
        assert_eq!(judge(Policy::allow_all(), line), Action::Allow, "{line}");
    }
}

/// Unlike those of a shell, the wildcards of `find` match a leading dot, and a
/// backslash in its patterns escapes.
#[cfg(feature = "shell")]
#[test]
fn find_may_change_a_hidden_file_without_spelling_its_dot() {
    let here = VPath::root();
    let judge = |line: &str| {
        let policy = Policy::allow_all().protecting([path("/conf/.env")]);
        let command = permissions::command::CommandContext::new(line, &here);
        policy.judge_command(command).verdict.action()
    };
    for pattern in [
        "?env", "*env", "[.]env", "?en?", "*", r"\.env", r".\e*", ".ENV",
    ] {
        let line = format!("find conf -name '{pattern}' -delete");
        assert_eq!(judge(&line), Action::Deny, "{line}");
    }
    for pattern in ["?nv", "env", "?.env", "x*", r"\?env"] {
        let line = format!("find conf -name '{pattern}' -delete");
        assert_eq!(judge(&line), Action::Allow, "{line}");
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
