//! Runtimes from code and from TOML, and replacements for images.
use backend_core::ErrorKind;
use sandbox_runtime::{PackageManager, Runtime, Runtimes};

const NAMES: &str = "bun coding deno go node-minimal node-react node-typescript polyglot \
    python-analytics python-datascience python-documents python-minimal python-scraping \
    python-web rust";

fn names() -> Vec<&'static str> {
    NAMES.split(' ').collect()
}

fn refused(text: &str) -> String {
    let error = Runtimes::from_toml(text).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    let message = error.message().to_owned();
    assert!(message.contains("; "), "no next step: {message}");
    message
}

#[test]
fn fifteen_are_built_in_and_valid() {
    assert!(Runtimes::builtin_names().eq(names()));
    assert_eq!(Runtimes::new().names(), names());
    for name in names() {
        let runtime = Runtime::builtin(name).unwrap();
        runtime.validate().unwrap();
        assert_eq!(runtime.name, name);
        assert!(!runtime.description.is_empty());
        assert!(runtime.env_vars.is_empty() && runtime.run_as_uid.is_none());
        assert!(runtime.cache_image);
        assert_eq!(Runtimes::new().get(name).unwrap(), runtime);
    }
}

#[test]
fn an_unknown_name_lists_the_known() {
    let error = Runtime::builtin("pyhton\n").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert_eq!(
        error.message(),
        format!(
            "no runtime is called 'pyhton\\n'; choose one of {}",
            names().join(", ")
        )
    );
    let own = Runtimes::new()
        .with(Runtime::on_base("chess", "python"))
        .unwrap();
    let error = own.get("go-fish").unwrap_err();
    assert!(error.message().contains("bun, chess, coding"), "{error}");
}

#[test]
fn every_field_can_be_written() {
    let runtimes = Runtimes::from_toml(
        r#"
        [runtimes.all]
        description = "everything"
        base_image = "python:3.12-slim"
        packages.pip = ["numpy>=1.26,<3"]
        packages.apt = ["jq"]
        packages.npm = ["tsx"]
        packages.cargo = ["just"]
        setup_commands = ["echo a", "echo b"]
        env_vars = { A = "b", C = "" }
        work_dir = "/srv/app"
        cache_image = false
        run_as_uid = 1234

        [runtimes.plain]
        image = "debian:12"

        [runtimes.list]
        base_image = "node:22"
        packages = ["tsx@4"]
        package_manager = "npm"

        [runtimes.pips]
        name = "pips"
        base_image = "python"
        packages = ["numpy"]
        "#,
    )
    .unwrap();
    let expected = Runtime::on_base("all", "python:3.12-slim")
        .with_description("everything")
        .with_package(PackageManager::Pip, "numpy>=1.26,<3")
        .with_package(PackageManager::Apt, "jq")
        .with_package(PackageManager::Npm, "tsx")
        .with_package(PackageManager::Cargo, "just")
        .with_setup_command("echo a")
        .with_setup_command("echo b")
        .with_env("A", "b")
        .with_env("C", "")
        .with_work_dir("/srv/app")
        .with_cache_image(false)
        .with_run_as_uid(1234);
    assert_eq!(runtimes.get("all").unwrap(), expected);
    let plain = Runtime::from_image("plain", "debian:12");
    assert_eq!(runtimes.get("plain").unwrap(), plain);
    assert_eq!(plain.work_dir, "/workspace");
    assert_eq!(runtimes.get("list").unwrap().packages.npm, ["tsx@4"]);
    assert_eq!(runtimes.get("pips").unwrap().packages.pip, ["numpy"]);
    assert_eq!(runtimes.names().len(), 19);
}

#[test]
fn errors_say_where() {
    let message = refused("[runtimes.a]\nbase_image = 'x'\nbase_imag = 'y'");
    assert!(
        message.starts_with("runtimes, line 3: runtimes.a.base_imag: unknown field `base_imag`"),
        "{message}"
    );
    let message = refused("[runtimes.a]\nbase_image = 'x'\npackages.pip = ['a', 3]");
    assert!(
        message.starts_with("runtimes, line 3: runtimes.a.packages.pip[1]: invalid type: integer"),
        "{message}"
    );
    let message = refused("[runtimes.a]\nbase_image = 'x'\npackages.gem = ['a']");
    assert!(message.contains("unknown field `gem`"), "{message}");
    let message = refused("[runtimes.a]\nbase_image = 'x'\nrun_as_uid = -1");
    assert!(message.contains("runtimes.a.run_as_uid: "), "{message}");
    let message = refused("[runtimes.a]\nbase_image = 'x'\npackage_manager = 'gem'");
    assert!(
        message.contains("runtimes.a.package_manager: "),
        "{message}"
    );
    let message = refused("[runtimes.a\n");
    assert!(message.starts_with("runtimes, line 1: "), "{message}");
    let message = refused("[runtime.a]\nimage = 'x'");
    assert!(message.contains("unknown field `runtime`"), "{message}");
    let message = refused("[runtimes.a]\nname = 'b'\nimage = 'x'");
    assert!(message.contains("runtime 'a': name: "), "{message}");
    let message =
        refused("[runtimes.a]\nbase_image = 'x'\npackage_manager = 'npm'\npackages.pip = ['a']");
    assert!(
        message.contains("runtime 'a': package_manager: "),
        "{message}"
    );
    assert!(refused(&" ".repeat((1 << 20) + 1)).contains("longer than"));
}

#[test]
fn what_is_written_is_checked() {
    for (text, expected) in [
        ("[runtimes.a]", "neither image nor base_image"),
        ("[runtimes.A]\nimage = 'x'", "that is not a valid name"),
        (
            "[runtimes.a]\nimage = 'X'",
            "image: 'X' is not a valid image name",
        ),
        (
            "[runtimes.a]\nbase_image = 'x'\npackages = [\"x\\nRUN y\"]",
            "packages.pip[0]: 'x\\nRUN y' is not a valid pip package",
        ),
        ("[images]\nx = 'Y'", "images: 'Y' is not a valid image name"),
        (
            "[images]\n'X y' = 'y'",
            "images: 'X y' is not a valid image name",
        ),
    ] {
        let message = refused(text);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn images_stand_in_for_others_by_their_exact_text() {
    let runtimes = Runtimes::new()
        .with_image("python:3.12-slim", "mirror.example/python:3.12")
        .unwrap()
        .with_image("rust:1-slim", "local/rust")
        .unwrap()
        .with(Runtime::on_base("own", "python:3.12-slim-bookworm"))
        .unwrap();
    let mapped = Some("mirror.example/python:3.12".to_owned());
    assert_eq!(runtimes.get("python-web").unwrap().base_image, mapped);
    assert_eq!(runtimes.get("python-minimal").unwrap().image, mapped);
    let rust = runtimes.get("rust").unwrap();
    assert_eq!(rust.image.as_deref(), Some("local/rust"));
    let own = runtimes.get("own").unwrap();
    assert_eq!(own.base_image.as_deref(), Some("python:3.12-slim-bookworm"));
    assert_eq!(runtimes.iter().count(), 16);
}

#[test]
fn a_custom_runtime_takes_the_place_of_a_builtin_one() {
    let own = Runtime::from_image("go", "golang:1.25");
    let runtimes = Runtimes::new().with(own.clone()).unwrap();
    assert_eq!(runtimes.get("go").unwrap(), own);
    assert_eq!(runtimes.names(), names());
}

#[test]
fn runtimes_are_parts_of_other_configurations() {
    #[derive(serde::Deserialize)]
    struct Outer {
        sandbox: Runtime,
        files: Runtimes,
    }
    let text = "[sandbox]\nname = 'a'\nimage = 'x'\n[files.images]\nx = 'y'";
    let outer: Outer = toml::from_str(text).unwrap();
    assert_eq!(outer.sandbox, Runtime::from_image("a", "x"));
    assert_eq!(outer.files, Runtimes::new().with_image("x", "y").unwrap());
    for bad in [
        "[sandbox]\nimage = 'x'\n[files]",
        "[sandbox]\nname = 'a'\nimage = 'X'\n[files]",
        "[sandbox]\nname = 'a'\nimage = 'x'\n[files]\nimages = { X = 'y' }",
    ] {
        assert!(toml::from_str::<Outer>(bad).is_err(), "{bad}");
    }
    let written = toml::to_string(&outer.sandbox).unwrap();
    assert_eq!(toml::from_str::<Runtime>(&written).unwrap(), outer.sandbox);
}

#[test]
fn the_guide_tells_the_truth() {
    let page = include_str!("../../../../docs/runtimes.md");
    for name in names() {
        let runtime = Runtime::builtin(name).unwrap();
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` |")))
            .unwrap_or_else(|| panic!("{name} is not in the table"));
        let start = match (&runtime.image, &runtime.base_image) {
            (Some(image), _) => format!("| image `{image}` |"),
            (_, base) => format!("| base `{}` |", base.as_deref().unwrap()),
        };
        assert!(row.contains(&start), "{row}");
        assert!(
            row.ends_with(&format!("| `{}` |", runtime.work_dir)),
            "{row}"
        );
        for manager in PackageManager::ALL {
            let packages = runtime.packages.of(manager);
            let list = format!("{manager}: {}", packages.join(", "));
            assert!(packages.is_empty() || row.contains(&list), "{row}");
        }
    }
    let blocks = page.split("```toml\n").skip(1);
    let blocks: Vec<_> = blocks
        .filter(|block| !block.starts_with("[dependencies]"))
        .collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let (text, _) = block.split_once("```").unwrap();
        Runtimes::from_toml(text).unwrap();
    }
}
