//! Tests of mount configuration: forms, defaults, and errors that name the line.
use std::path::Path;

use backend_mounts::{Mode, Mount, MountConfig, MountError, Mounts};

fn read(text: &str) -> Result<MountConfig, MountError> {
    MountConfig::from_toml(text)
}

fn error(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn a_mount_has_its_defaults_in_every_language() {
    let from_code = MountConfig::new(vec![Mount::new("/srv/docs", "/docs").unwrap()]);
    let from_toml = read("[[mounts]]\nhost_path = '/srv/docs'\nmount_point = '/docs'").unwrap();
    let from_json = MountConfig::from_json(
        r#"{"mounts": [{"host_path": "/srv/docs", "mount_point": " \\docs/ ", "suffixes": null}]}"#,
    )
    .unwrap();
    assert_eq!(from_code, from_toml);
    assert_eq!(from_code, from_json);
    let mount = &from_code.mounts[0];
    assert_eq!(mount.mode, Mode::Ro);
    assert_eq!((&mount.suffixes, mount.max_file_bytes), (&None, None));
    assert!(mount.write_approval && !mount.read_approval);
}

#[test]
fn every_field_is_read_and_written_out_again() {
    let config = read(
        "[[mounts]]\nhost_path = '~/x'\nmount_point = '/a'\nmode = 'rw'\nsuffixes = []\n\
         max_file_bytes = 0\nwrite_approval = false\nread_approval = true\n\
         [[mounts]]\nhost_path = 'y'\nmount_point = '/b'\nsuffixes = ['.md', '']",
    )
    .unwrap();
    let [first, second] = &config.mounts[..] else {
        panic!("two mounts");
    };
    assert_eq!(first.host_path, Path::new("~/x"), "nothing is expanded");
    assert_eq!((first.mode, first.max_file_bytes), (Mode::Rw, Some(0)));
    assert_eq!(first.suffixes.as_deref(), Some(&[][..]));
    assert!(!first.write_approval && first.read_approval);
    assert_eq!(second.suffixes.as_deref().map(<[_]>::len), Some(2));
    let json = serde_json::to_string(&config).unwrap();
    assert_eq!(MountConfig::from_json(&json).unwrap(), config);
}

#[test]
fn a_single_root_becomes_the_root_mount() {
    let mount = |text: &str| {
        let mut mounts = read(text).unwrap().mounts;
        assert_eq!(mounts.len(), 1);
        mounts.remove(0)
    };
    let root = mount("root = '/srv'");
    assert_eq!(root, MountConfig::single_root("/srv").mounts[0]);
    assert!(root.mount_point.is_root() && root.mode == Mode::Rw);
    assert!(root.write_approval && !root.read_approval);
    let root = mount("root = '/srv'\nreadonly = true\nsuffixes = ['.md']\nmax_file_bytes = 5");
    assert_eq!(root.mode, Mode::Ro);
    assert_eq!(root.max_file_bytes, Some(5));
    assert_eq!(root.suffixes, Some(vec![".md".to_owned()]));
    let root = mount("root = '/srv'\nwrite_approval = false\nread_approval = true");
    assert!(!root.write_approval && root.read_approval);
}

#[test]
fn named_paths_become_mounts_of_their_names() {
    let config = read(
        "[paths.notes]\nroot = '/srv/notes'\nmode = 'rw'\nsuffixes = ['.md']\n\
         max_file_bytes = 9\nwrite_approval = false\nread_approval = true\n\
         [paths.data]\nroot = '/srv/data'",
    )
    .unwrap();
    let find = |point: &str| {
        let mut mounts = config.mounts.iter();
        mounts.find(|m| m.mount_point.as_str() == point).unwrap()
    };
    assert_eq!(find("/data"), &Mount::new("/srv/data", "/data").unwrap());
    let notes = Mount::new("/srv/notes", "/notes").unwrap();
    let notes = notes.mode(Mode::Rw).suffixes([".md"]).max_file_bytes(9);
    let notes = notes.write_approval(false).read_approval(true);
    assert_eq!(find("/notes"), &notes);
}

#[test]
fn exactly_one_form_is_written() {
    for text in [
        "",
        "root = 'a'\n[paths.b]\nroot = 'b'",
        "root = 'a'\n[[mounts]]\nhost_path = 'b'\nmount_point = '/b'",
        "readonly = true\n[[mounts]]\nhost_path = 'b'\nmount_point = '/b'",
        "max_file_bytes = 3",
    ] {
        let error = error(text);
        assert!(
            error.ends_with("write exactly one of 'mounts', 'root' and 'paths'"),
            "{text}: {error}"
        );
    }
    for text in ["mounts = []", "paths = {}"] {
        assert_eq!(read(text), Err(MountError::Empty), "{text}");
    }
}

#[test]
fn errors_name_the_line_and_the_field() {
    let with = |field: &str| format!("[[mounts]]\nhost_path = 'a'\nmount_point = '/a'\n{field}");
    let at = |point: &str| format!("[[mounts]]\nhost_path = 'a'\nmount_point = '{point}'");
    for (text, line, hint) in [
        (at("a"), 3, "write '/a'"),
        (at("/.."), 3, "above the root"),
        (with("mode = 'wr'"), 4, "wr"),
        (with("name = 1"), 4, "name"),
        (with("max_file_bytes = -1"), 4, "-1"),
        (with("read_approval = 'no'"), 4, "no"),
        (with("suffixes = '.md'"), 4, ".md"),
        ("[[mounts]]\nmount_point = '/a'".to_owned(), 1, "host_path"),
        ("\nroot = ".to_owned(), 2, ""),
        (
            "[paths.'a/b']\nroot = 'x'".to_owned(),
            1,
            "'a/b' is not a single name",
        ),
        (
            "[paths.a]\nroot = 'x'\nreadonly = true".to_owned(),
            3,
            "readonly",
        ),
    ] {
        let error = read(&text).unwrap_err();
        let MountError::Syntax { line: found, .. } = &error else {
            panic!("{text}: {error}");
        };
        assert_eq!(*found, line, "{text}: {error}");
        assert!(error.to_string().contains(hint), "{text}: {error}");
    }
    let json = "{\"mounts\": [\n{\"host_path\": \"a\",\n\"mount_point\": \"/a\", \"mod\": 1}]}";
    let error = MountConfig::from_json(json).unwrap_err().to_string();
    assert!(
        error.contains("JSON") && error.contains("line 3"),
        "{error}"
    );
    assert!(
        error.contains("`mod`") && error.matches("line").count() == 1,
        "{error}"
    );
    let twice = r#"{"paths": {"a": {"root": "x"}, "a": {"root": "y"}}}"#;
    let error = MountConfig::from_json(twice).unwrap_err();
    assert!(matches!(error, MountError::Duplicate { .. }), "{error}");
}

#[test]
fn mounts_that_collide_are_refused_when_they_are_read() {
    let two = |one: (&str, &str), two: (&str, &str)| {
        error(&format!(
            "[[mounts]]\nhost_path = '{}'\nmount_point = '{}'\n\
             [[mounts]]\nhost_path = '{}'\nmount_point = '{}'",
            one.0, one.1, two.0, two.1
        ))
    };
    let text = two(("/h/a", "/x"), ("/h/b", "//x/"));
    assert!(text.contains("'/x', for '/h/a' and for '/h/b'"), "{text}");
    let text = two(("/h", "/x"), ("/h/b/../c", "/y"));
    assert!(
        text.contains("'/x' maps to '/h' and '/y' maps to '/h/b/../c'"),
        "{text}"
    );
    let nested = MountConfig::new(vec![
        Mount::new("/h/a", "/data").unwrap(),
        Mount::new("/h/b", "/data/special").unwrap(),
        Mount::new("/h/c", "/").unwrap(),
    ]);
    assert!(nested.build().is_ok(), "mount points may nest");
}

#[test]
fn a_configuration_within_another_names_its_line() {
    #[derive(Debug, serde::Deserialize)]
    struct Outer {
        files: MountConfig,
    }
    let outer: Outer = toml::from_str("[files]\nroot = '/srv'").unwrap();
    assert_eq!(outer.files.mounts.len(), 1);
    let error = toml::from_str::<Outer>("[files]\nroot = '/srv'\nmodes = 1").unwrap_err();
    assert!(error.to_string().contains("line 3"), "{error}");
}

#[test]
fn mounts_that_were_built_do_not_change() {
    let mut mount = Mount::new("/h", "/a").unwrap();
    let mounts = Mounts::new(vec![mount.clone()]).unwrap();
    mount.mode = Mode::Rw;
    assert_eq!(mount.mode, Mode::Rw);
    assert_eq!(mounts.iter().next().map(|m| m.mode), Some(Mode::Ro));
}
