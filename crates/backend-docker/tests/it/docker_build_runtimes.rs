use backend_docker::image::{self, BuildEvent};
use backend_docker::{PackageManager, Runtime, Runtimes};

use crate::support::build as support;
use crate::support::build::{fresh, online, remove_images, run, watch};
use crate::support::docker::{daemon, variable};

/// The built-in runtimes on a Python image that is already present.
fn runtimes() -> Runtimes {
    Runtimes::new()
        .with_image("python:3.12-slim", &variable("TEST_IMAGE_PYTHON"))
        .unwrap()
}

/// Debian with Python, to which packages can be added.
fn debian(name: &str) -> Runtime {
    Runtime::on_base(name, variable("TEST_IMAGE_PYTHON"))
}

/// Ensures that the image exists, and that a second start builds nothing.
async fn ready(runtime: &Runtime) -> String {
    let name = image::ensure(&daemon(), runtime, &online()).await.unwrap();
    let (events, found) = watch(runtime, &online()).await;
    assert_eq!(found.unwrap(), name);
    let done = BuildEvent::Done {
        image: name.clone(),
        built: false,
    };
    assert_eq!(events, [done]);
    name
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn python_for_data_science_can_be_imported() {
    let runtime = runtimes().get("python-datascience").unwrap();
    let name = ready(&runtime).await;
    let printed = run(
        &name,
        "cd / && python3 -c 'import pandas, numpy, matplotlib, sklearn, seaborn; \
         print(int(numpy.arange(5).sum()), pandas.DataFrame({\"a\": [1, 2]}).a.sum())'",
    )
    .await;
    assert_eq!(printed, "10 3\n");
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn packages_of_npm_are_in_the_work_directory() {
    let runtime = debian("test-npm")
        .with_package(PackageManager::Apt, "nodejs")
        .with_package(PackageManager::Apt, "npm")
        .with_package(PackageManager::Npm, "is-number@>=7.0.0 <8")
        .with_package(PackageManager::Npm, "@sindresorhus/is@4.6.0")
        .with_work_dir("/app")
        .with_run_as_uid(1000);
    let name = ready(&runtime).await;
    let printed = run(
        &name,
        "id -u; node -e 'console.log(require(\"is-number\")(\"5\"), \
         require(\"is-number/package.json\").version, \
         require(\"@sindresorhus/is/package.json\").version)'; touch package.json node_modules/x",
    )
    .await;
    assert_eq!(printed, "1000\ntrue 7.0.0 4.6.0\n");
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn packages_of_apt_and_cargo_are_programs() {
    // Debian's own Cargo is too old for the registry's present index.
    let runtime = debian("test-cargo")
        .with_package(PackageManager::Apt, "cargo-web")
        .with_package(PackageManager::Apt, "jq=1.6*")
        .with_package(PackageManager::Cargo, "hello_cargo@0.1.0");
    let name = ready(&runtime).await;
    let printed = run(
        &name,
        "jq --version; echo '{\"a\": 2}' | jq .a; hello_cargo",
    )
    .await;
    assert_eq!(printed, "jq-1.6\n2\nHello, world!\n");
}

/// Installed from scratch each time: one small wheel.
#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn an_unprivileged_user_has_a_virtual_environment() {
    let runtime = debian(&fresh("venv"))
        .with_package(PackageManager::Pip, "six>=1.16,<2")
        .with_setup_command(format!("echo {:x} > /fresh", fastrand::u64(..)))
        .with_run_as_uid(1234);
    let name = ready(&runtime).await;
    let printed = run(
        &name,
        "set -e; id -u; id -un; pwd; touch file; command -v pip; \
         [ ! -f /ca.pem ] || export PIP_CERT=/ca.pem; \
         pip install -q --disable-pip-version-check idna==3.10; \
         python -c 'import six, idna; print(idna.__file__)'; \
         touch /usr/x 2>/dev/null || echo confined",
    )
    .await;
    let version = printed
        .split("python3.")
        .nth(1)
        .and_then(|it| it.split('/').next());
    assert_eq!(
        printed,
        format!(
            "1234\nagent\n/workspace\n/opt/venv/bin/pip\n\
             /opt/venv/lib/python3.{}/site-packages/idna/__init__.py\nconfined\n",
            version.unwrap()
        )
    );
    remove_images(&runtime.name).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_user_is_made_where_there_is_no_python_and_where_the_uid_is_taken() {
    for (uid, user) in [(1000, "agent"), (777, "node")] {
        let line = "echo 'node:x:777:777::/home/node:/bin/sh' >> /etc/passwd";
        let runtime = support::small(&fresh("user"))
            .with_setup_command(line)
            .with_run_as_uid(uid);
        let name = image::ensure(&daemon(), &runtime, &online()).await.unwrap();
        let printed = run(
            &name,
            "id -u; id -g; id -un; touch file ~/file; test ! -e /opt/venv && pwd",
        )
        .await;
        assert_eq!(printed, format!("{uid}\n{uid}\n{user}\n/workspace\n"));
        remove_images(&runtime.name).await;
    }
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_wrong_package_fails_with_the_installers_words() {
    let runtime = debian(&fresh("wrong")).with_package(PackageManager::Pip, "six==99999");
    let built = image::ensure(&daemon(), &runtime, &online()).await;
    let text = built.unwrap_err().to_string();
    assert!(
        text.contains("No matching distribution found for six==99999"),
        "{text}"
    );
}
