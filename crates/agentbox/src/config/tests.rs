//! Tests of the layers and their precedence.

use std::path::Path;

use console_tools::{EditFormat, Profile};

use super::*;

fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    let own = |(name, value): &(&str, &str)| (OsString::from(name), OsString::from(value));
    pairs.iter().map(own).collect()
}

fn load(flags: &str, file: &str, pairs: &[(&str, &str)]) -> Result<Config, Failure> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.toml");
    std::fs::write(&path, file).unwrap();
    let flags = toml::from_str(flags).unwrap();
    Config::load(flags, Some(path), variables(pairs).into_iter())
}

/// `cargo run` passes the variables of the build script on to the program.
#[test]
fn the_build_script_sets_no_variable_that_is_taken_for_a_setting() {
    assert!(!include_str!("../../build.rs").contains("rustc-env=AGENTBOX_"));
}

#[test]
fn the_defaults_are_the_programs() {
    let config = Config::load(Table::new(), None, std::iter::empty()).unwrap();
    assert!(!config.options.require_execute_approval);
    assert!(config.options.include_file_operations);
    assert!(config.options.image_support && config.options.document_support);
    assert!(config.permissions.is_none() && config.backend.is_none());
}

#[test]
fn a_flag_beats_a_variable_beats_the_file_beats_the_default() {
    let all = |flags, file, pairs: &[(&str, &str)]| load(flags, file, pairs).unwrap().options;
    let file =
        "edit_format = 'hashline'\n[options]\nprofile = 'lean'\n[options.limits]\nread_lines = 7";
    let options = all("", file, &[]);
    assert_eq!(options.edit_format, EditFormat::Hashline);
    assert_eq!(options.profile, Profile::Lean);
    assert_eq!(options.limits.read_lines, 7);
    // Keys that the file does not set keep their defaults.
    assert_eq!(options.limits.ls_entries, 1_000);
    let pairs = &[
        ("AGENTBOX_PROFILE", "filesystem"),
        ("AGENTBOX_OPTIONS_LIMITS_READ_LINES", "9"),
    ];
    let options = all("", file, pairs);
    assert_eq!(options.profile, Profile::Filesystem);
    assert_eq!(options.edit_format, EditFormat::Hashline);
    assert_eq!(options.limits.read_lines, 9);
    let options = all("profile = 'coding'", file, pairs);
    assert_eq!(options.profile, Profile::Coding);
}

#[test]
fn what_is_not_known_is_an_error_with_the_nearest() {
    for (file, nearest) in [
        ("permission = 'readonly'", "permissions"),
        ("[options]\nprofil = 'lean'", "options.profile"),
        (
            "[options.limits]\nread_line = 3",
            "options.limits.read_lines",
        ),
        (
            "require_write_approval = true",
            "options.require_write_approval",
        ),
        ("[local]\nconfinment = 'landlock'", "local.confinement"),
        ("[run]\ntime_out = 3", "run.timeout"),
        ("[images]\n'a' = 'b'", "docker.base_images"),
        ("[docker.images]\n'a' = 'b'", "docker.base_images"),
    ] {
        let error = load("", file, &[]).unwrap_err();
        assert!(error.is_usage());
        let wanted = format!("did you mean {nearest}?");
        assert!(error.to_string().contains(&wanted), "{error}");
    }
    for (name, nearest) in [
        ("AGENTBOX_PERMISSION", "AGENTBOX_PERMISSIONS"),
        ("AGENTBOX_BACKENDS", "AGENTBOX_BACKEND"),
    ] {
        let error = load("", "", &[(name, "x")]).unwrap_err();
        let wanted = format!("did you mean {nearest}?");
        assert!(error.to_string().contains(&wanted), "{error}");
    }
    let error = load("", "", &[("AGENTBOX_FOO", "x")]).unwrap_err();
    assert!(!error.to_string().contains("did you mean"), "{error}");
    // The supervisor's variables are not settings.
    assert!(load("", "", &[("AGENTBOX_COMMAND", "x"), ("OTHER", "")]).is_ok());
    assert!(load("", "config = 'other.toml'", &[]).is_err());
}

#[test]
fn wrong_values_are_errors_that_say_whose() {
    for (file, pairs, whose) in [
        ("backend = 3", &[][..], "config.toml"),
        ("options = 3", &[], "config.toml"),
        ("local = 3", &[], "config.toml"),
        ("[options]\nprofile = 'fat'", &[], "config.toml"),
        ("x = [", &[], "config.toml:1"),
        (
            "",
            &[
                ("AGENTBOX_PROFILE", "lean"),
                ("AGENTBOX_OPTIONS_IMAGE_SUPPORT", "maybe"),
            ],
            "AGENTBOX_OPTIONS_IMAGE_SUPPORT is wrong",
        ),
        (
            "",
            &[("AGENTBOX_OPTIONS_LIMITS_READ_LINES", "abc")],
            "AGENTBOX_OPTIONS_LIMITS_READ_LINES is wrong: invalid type: string \"abc\", \
             expected a whole number",
        ),
        ("", &[("AGENTBOX_PERMISSIONS", "")], "AGENTBOX_PERMISSIONS"),
        (
            "profile = 'lean'\n[options]\nprofile = 'lean'",
            &[],
            "are the same option",
        ),
    ] {
        let error = load("", file, pairs).unwrap_err();
        assert!(
            error.is_usage() && error.to_string().contains(whose),
            "{error}"
        );
    }
}

#[test]
fn relative_paths_start_where_the_file_is() {
    let file = "backend = 'local:work'\npermissions = 'rules.toml'\n[mcp]\ntoken_file = 'token'";
    let config = load("", file, &[]).unwrap();
    let path = config.file.unwrap();
    let inside = |name: &str| path.with_file_name(name).to_string_lossy().into_owned();
    assert_eq!(config.backend.unwrap(), format!("local:{}", inside("work")));
    assert_eq!(
        config.permissions.unwrap().as_str().unwrap(),
        inside("rules.toml")
    );
    assert_eq!(config.mcp.token_file.unwrap(), Path::new(&inside("token")));
    let preset = load("", "permissions = 'readonly'", &[]).unwrap();
    assert_eq!(preset.permissions.unwrap().as_str(), Some("readonly"));
}

#[test]
fn variables_read_like_the_file() {
    let pairs = &[
        ("AGENTBOX_MCP_ORIGINS", "['https://a.example']"),
        ("AGENTBOX_RUN_TIMEOUT", "1.5"),
        ("AGENTBOX_MCP_HTTP", "127.0.0.1:0"),
        ("AGENTBOX_LOG", "2026-01-01"),
    ];
    let config = load("", "", pairs).unwrap();
    assert_eq!(config.mcp.origins, ["https://a.example"]);
    assert_eq!(config.run.timeout, Some(1.5));
    assert!(config.mcp.http.is_some());
    assert_eq!(config.log.as_deref(), Some("2026-01-01"));
}

#[test]
fn the_default_file_is_read_if_it_is_there() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".config/agentbox");
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("config.toml"), "log = 'info'").unwrap();
    let pairs = vec![("HOME".into(), home.path().into())];
    let config = Config::load(Table::new(), None, pairs.into_iter()).unwrap();
    assert_eq!(config.log.as_deref(), Some("info"));
    // A file that is named must exist.
    let missing = Some(home.path().join("missing.toml"));
    assert!(Config::load(Table::new(), missing, std::iter::empty()).is_err());
}

#[test]
fn the_example_of_the_readme_is_accepted() {
    let readme = include_str!("../../README.md");
    let (_, chapter) = readme.split_once("## Configuration").unwrap();
    let (_, example) = chapter.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let config = load("", example, &[]).unwrap();
    assert_eq!(config.options.limits.read_lines, 500);
    assert_eq!(config.backends.len(), 2);
}
