//! Fields that pass validation and fields that do not.

use backend_core::ErrorKind;

use super::*;

fn base() -> Runtime {
    Runtime::on_base("test", "python:3.12-slim")
}

fn is_valid(runtime: Runtime) -> bool {
    runtime.validate().is_ok()
}

fn refused(runtime: &Runtime) -> String {
    let error = runtime.validate().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

#[test]
fn packages_keep_their_pins_and_ranges() {
    let good = [
        (
            PackageManager::Pip,
            "numpy; numpy==2.1.0; numpy>=1.26,<3; uvicorn[standard]>=0.30, <1; a; foo.bar_baz-1; \
             foo ~= 1.4.2; foo!=1.*; foo===1.0+local; foo==1!2.0; requests[security,socks]",
        ),
        (
            PackageManager::Npm,
            "tsx; @types/react; @types/react@^18; vite@>=5 <6; a@1 || 2; x@latest; x@~1.2",
        ),
        (
            PackageManager::Apt,
            "jq; g++; libc6:arm64; jq=1.6-2.1; jq=1.6*; jq/bookworm-backports; \
             a1=2:1.0~rc1+dfsg-1",
        ),
        (
            PackageManager::Cargo,
            "just; cargo-edit; just@1.40.0; just@^1.4; just@>=1, <2; a_b@=1.0.0-rc.1",
        ),
    ];
    for (manager, packages) in good {
        for package in packages.split("; ") {
            let runtime = base().with_package(manager, package);
            assert!(runtime.validate().is_ok(), "{manager}: {package}");
        }
    }
}

#[test]
fn packages_are_nothing_else() {
    for manager in PackageManager::ALL {
        for bad in [
            "",
            " ",
            "-r",
            "--index-url=http://x",
            "x\n",
            "\nx",
            "x\nRUN y",
            "x\r",
            "x\0",
            "x y",
            "x;y",
            "x&&y",
            "x|y",
            "$(x)",
            "`x`",
            "x'",
            "x\"",
            "x\\",
            "../x",
            "./x",
            "/x",
            "x#y",
            "https://x.example/y",
            "git+https://x",
            "file:/x",
            "x @ https://y",
            "x<<EOF",
            "é",
            "x>",
            "x\u{2028}",
            "{x}",
            "*",
            "x\t",
        ] {
            let runtime = base().with_package(manager, bad);
            assert!(runtime.validate().is_err(), "{manager}: {bad:?}");
        }
    }
    for (manager, bad) in [
        // apt would remove the package.
        (PackageManager::Apt, "bash-"),
        (PackageManager::Apt, "JQ"),
        // A local file.
        (PackageManager::Pip, "x.whl"),
        (PackageManager::Pip, "x.tar.gz"),
        (PackageManager::Npm, "x.tgz"),
        // A repository.
        (PackageManager::Npm, "user/repo"),
        (PackageManager::Npm, "x@user/repo"),
        (PackageManager::Npm, "x@npm:y"),
        (PackageManager::Cargo, "x@latest"),
        (PackageManager::Cargo, "x=1"),
        (PackageManager::Pip, "x>=1,"),
        (PackageManager::Pip, "x[]"),
        (PackageManager::Pip, "x==1; python_version<'3'"),
    ] {
        let runtime = base().with_package(manager, bad);
        let text = refused(&runtime);
        let place = format!("packages.{manager}[0]: {}", Quoted::new(bad));
        assert!(text.contains(&place), "{text}");
    }
}

#[test]
fn images_follow_the_reference_grammar() {
    let digest = format!("python@sha256:{}", "0".repeat(64));
    for good in [
        "python",
        "python:3.12-slim",
        "library/python",
        "registry.example/team/a_b:V1.2",
        "localhost:5000/x",
        "[::1]:5000/x:1",
        "Mirror.example:443/a/b__c/d.e-f",
        &digest,
        &format!("registry.example/x:1@sha256:{}", "a".repeat(64)),
    ] {
        assert!(reference(good).is_ok(), "{good}");
        let runtime = Runtime::from_image("t", good);
        assert!(runtime.validate().is_ok(), "{good}");
    }
    for bad in [
        "",
        "Python",
        "python:",
        "python ",
        " python",
        "python\n",
        "python\nRUN x",
        "a b",
        "python:3.12 AS x",
        "--platform=x",
        "a//b",
        "/a",
        "a/",
        "a:b:c",
        "a@b",
        "$A",
        "${A}",
        "a:\u{e9}",
        "http://a/b",
        "a\t",
        "-a",
        "a___b",
        "scratch",
        "a@sha256:12",
    ] {
        assert!(reference(bad).is_err(), "{bad:?}");
        assert!(Runtime::on_base("t", bad).validate().is_err(), "{bad:?}");
        assert!(Runtime::from_image("t", bad).validate().is_err(), "{bad:?}");
    }
    assert!(reference(&format!("a:{}", "b".repeat(129))).is_err());
    assert!(reference(&"a/".repeat(400)).is_err());
}

#[test]
fn commands_and_values_are_one_line() {
    for bad in ["a\nb", "a\r", "a\0b", "a\u{1b}[0m", "a\u{85}b"] {
        assert!(!is_valid(base().with_setup_command(bad)), "{bad:?}");
        assert!(!is_valid(base().with_env("A", bad)), "{bad:?}");
    }
    assert!(refused(&base().with_setup_command(" ")).contains("setup_commands[0]: it is empty"));
    assert!(base().with_env("A", "").validate().is_ok());
    assert!(base().with_setup_command("a\tb").validate().is_ok());
    let long = "a".repeat(LONGEST + 1);
    assert!(refused(&base().with_setup_command(&long)).contains("longer than"));
    assert!(refused(&base().with_env("A", &long)).contains("env_vars.A: it is longer"));
    for bad in ["", "1A", "A-B", "A\n", "A=B", "A B", "é"] {
        assert!(base().with_env(bad, "x").validate().is_err(), "{bad:?}");
    }
}

#[test]
fn work_directories_are_plain_paths() {
    for good in ["/", "/workspace", "/a/b.c/d_e-f+@g", "/devel"] {
        assert!(base().with_work_dir(good).validate().is_ok(), "{good}");
    }
    for bad in [
        "",
        "a",
        "./a",
        "/a/",
        "//",
        "/a//b",
        "/a/../b",
        "/..",
        "/a/.",
        "/a b",
        "/a\n",
        "/$A",
        "/a;b",
        "/é",
        "/dev",
        "/proc/self",
        "/sys/x",
        "/a\"",
        "/a\\",
    ] {
        assert!(base().with_work_dir(bad).validate().is_err(), "{bad:?}");
    }
    let unprivileged = base().with_run_as_uid(1);
    let told = refused(&unprivileged.clone().with_work_dir("/usr"));
    assert!(told.contains("belongs to the system"), "{told}");
    assert!(is_valid(unprivileged.with_work_dir("/usr/src")));
}

#[test]
fn users_are_unprivileged() {
    for (uid, good) in [
        (0, false),
        (1, true),
        (LARGEST_UID, true),
        (LARGEST_UID + 1, false),
        (u32::MAX, false),
    ] {
        assert_eq!(is_valid(base().with_run_as_uid(uid)), good, "{uid}");
    }
}

#[test]
fn an_image_as_it_is_gets_nothing_added() {
    let image = Runtime::from_image("t", "python");
    assert!(is_valid(
        image.clone().with_env("A", "b").with_run_as_uid(7)
    ));
    for built in [
        image.clone().with_setup_command("x"),
        image.clone().with_package(PackageManager::Npm, "x"),
    ] {
        assert!(refused(&built).contains("write base_image"));
    }
    let mut both = image;
    both.base_image = Some("python".to_owned());
    assert!(refused(&both).contains("both given"));
    let mut neither = base();
    neither.base_image = None;
    assert!(refused(&neither).contains("neither image nor base_image"));
}

#[test]
fn names_are_short_and_lists_bounded() {
    let long = "a".repeat(64);
    for bad in ["", "A", "a b", "a\n", "-a", ".a", "é", "a/b", "a:b", &long] {
        assert!(!is_valid(Runtime::on_base(bad, "python")), "{bad:?}");
    }
    assert!(is_valid(Runtime::on_base("a".repeat(63), "python")));
    let mut packages = base();
    packages.packages.pip = vec!["x".to_owned(); MOST_PACKAGES + 1];
    assert!(refused(&packages).contains("packages.pip: 257"));
    let mut commands = base();
    commands.setup_commands = vec!["x".to_owned(); MOST_COMMANDS + 1];
    assert!(refused(&commands).contains("setup_commands: 65"));
}

#[test]
fn every_grammar_compiles() {
    for grammar in [
        &NAME, &ENV_NAME, &WORK_DIR, &PIP, &NPM, &APT, &CARGO, &REFERENCE,
    ] {
        assert!(grammar.is_some());
    }
}
