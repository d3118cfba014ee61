//! Tests of the input language.

use std::sync::{Arc, OnceLock};

use backend_state::StateBackend;
use console_tools::{Options, Toolset};
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Returns every tool, whether or not the backend supports it.
pub(crate) fn tools() -> Definitions {
    static TOOLS: OnceLock<Definitions> = OnceLock::new();
    TOOLS.get_or_init(make).clone()
}

fn make() -> Definitions {
    #[derive(Debug)]
    struct Nowhere;
    #[async_trait::async_trait]
    impl console_tools::Resolver for Nowhere {
        async fn resolve(
            &self,
            _: &console_tools::Caller,
        ) -> backend_core::Result<Arc<dyn backend_core::Backend>> {
            Ok(Arc::new(StateBackend::new()))
        }
    }
    let mut options = Options::default();
    options.include_file_operations = true;
    let toolset = Toolset::resolving(Arc::new(Nowhere)).options(options);
    toolset.build().unwrap().definitions()
}

fn call(input: &str) -> (String, Value) {
    match parse(input, &tools()) {
        Ok((Request::Call { tool, arguments }, used)) => {
            assert_eq!(used, input.len(), "{input:?}");
            (tool, arguments)
        }
        other => panic!("{input:?}: {other:?}"),
    }
}

fn wrong(input: &str) -> String {
    match parse(input, &tools()) {
        Err(ParseError::Invalid(why)) => why,
        other => panic!("{input:?}: {other:?}"),
    }
}

#[track_caller]
fn is(input: &str, tool: &str, arguments: Value) {
    assert_eq!(call(input), (tool.to_owned(), arguments), "{input:?}");
}

/// Writes checks of lines: the line, the tool that it calls, and the arguments.
macro_rules! calls {
    ($($line:literal => $tool:ident $arguments:tt;)+) => {
        $(is($line, stringify!($tool), json!($arguments));)+
    };
}

#[test]
fn fields_in_order_and_by_name() {
    calls! {
        "read a.txt" => read_file {"path": "a.txt"};
        "read_file a.txt 3 5\n" => read_file {"path": "a.txt", "offset": 3, "limit": 5};
        "read --offset 10 a.txt" => read_file {"offset": 10, "path": "a.txt"};
        "read offset=10 path=a.txt 4" => read_file {"offset": 10, "path": "a.txt", "limit": 4};
        "read --path=a=b" => read_file {"path": "a=b"};
        "write a.txt 'content=x'" => write_file {"path": "a.txt", "content": "content=x"};
        "write a.txt b=c" => write_file {"path": "a.txt", "content": "b=c"};
        "write -- --a --b" => write_file {"path": "--a", "content": "--b"};
        "ls" => ls {};
        "shells" => list_shells {};
    }
}

#[test]
fn flags_choices_and_lists() {
    calls! {
        "edit f a b --replace-all" =>
            edit_file {"path": "f", "old_string": "a", "new_string": "b", "replace_all": true};
        "grep x --no-ignore-hidden --output-mode content --literal=false" =>
            grep {"pattern": "x", "ignore_hidden": false, "output_mode": "content", "literal": false};
        r#"edit f --edits '[{"old_string": "a", "new_string": "b"}]'"# =>
            edit_file {"path": "f", "edits": [{"old_string": "a", "new_string": "b"}]};
    }
}

#[test]
fn commands_are_the_rest_of_the_line() {
    calls! {
        "!ls -la 'a b' | wc" => execute {"command": "ls -la 'a b' | wc"};
        "run FOO=1 make --timeout 3" => execute {"command": "FOO=1 make --timeout 3"};
        "run --timeout 5 --directory src -- --x" =>
            execute {"timeout": 5, "directory": "src", "command": "--x"};
        "run --timeout null sleep 5" => execute {"timeout": null, "command": "sleep 5"};
        "run 'ls -la'" => execute {"command": "ls -la"};
        "run { ls; }" => execute {"command": "{ ls; }"};
        "run {\"command\": \"ls\"}" => execute {"command": "ls"};
        "bg sleep 5" => run_in_background {"command": "sleep 5"};
        "!cat <<X\n'\nX\n" => execute {"command": "cat <<X\n'\nX"};
        "run --command 'ls -l'" => execute {"command": "ls -l"};
    }
}

#[test]
fn the_users_terminal_is_asked_for() {
    let terminal = |input: &str| match parse(input, &tools()) {
        Ok((Request::Terminal(request), _)) => request,
        other => panic!("{other:?}"),
    };
    assert_eq!(terminal("shell"), TerminalRequest::Run(None));
    assert_eq!(terminal("shell\nls"), TerminalRequest::Run(None));
    let line = "vim 'a b' | x".to_owned();
    assert_eq!(
        terminal("shell vim 'a b' | x\nls"),
        TerminalRequest::Run(Some(line))
    );
    let id = "bg_1".to_owned();
    assert_eq!(terminal("attach bg_1"), TerminalRequest::Attach(id));
    for invalid in ["attach", "attach a b"] {
        assert!(wrong(invalid).starts_with("attach needs"), "{invalid}");
    }
}

#[test]
fn text_on_lines() {
    calls! {
        "write a <<EOF\none\ntwo\nEOF\n" => write_file {"path": "a", "content": "one\ntwo\n"};
        "edit a <<A <<B\nx\nA\ny\nB" =>
            edit_file {"path": "a", "old_string": "x\n", "new_string": "y\n"};
    }
    let open = |input: &str| match parse(input, &tools()) {
        Err(ParseError::Incomplete(until)) => until,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        open("write a <<EOF\none\n"),
        MissingInput::Line("EOF".into())
    );
    assert_eq!(open("write a 'one\n"), MissingInput::Char('\''));
    assert_eq!(open("write {\"path\": \"a\",\n"), MissingInput::Char('}'));
}

#[test]
fn errors_name_the_field() {
    assert_eq!(
        wrong("read a --offset ten"),
        "offset must be a whole number, not 'ten'"
    );
    assert_eq!(
        wrong("read a --ofset 1"),
        "read_file has no field 'ofset'; its fields are path, offset, limit"
    );
    assert_eq!(
        wrong("read a --limit"),
        "--limit has no value; write --limit VALUE"
    );
    assert_eq!(wrong("read a path=b"), "path is given twice; give it once");
    assert!(wrong("write a hello world").contains("no field left for world"));
    assert_eq!(
        wrong("glob x --hidden=maybe"),
        "hidden must be true or false, not 'maybe'"
    );
    assert!(wrong("glob {\"pattern\": }").contains("not valid JSON"));
    assert!(wrong("glob {} x").contains("'x' follows"));
    assert!(wrong("run --timeout 5 --directory").contains("--directory has no value"));
    for nothing in ["!", "! ", "run", "bg", "run --timeout 5"] {
        let why = "there is no command; write one, such as !ls";
        assert_eq!(wrong(nothing), why, "{nothing:?}");
    }
    assert_eq!(
        wrong("run --command ls ls"),
        "command is given twice; give it once"
    );
}

#[test]
fn what_the_console_does_itself() {
    let request = |input: &str| parse(input, &tools()).unwrap().0;
    assert_eq!(request(""), Request::Nothing);
    assert_eq!(request(" \n # a word\n"), Request::Nothing);
    assert_eq!(request("help"), Request::Help(None));
    assert_eq!(request("help grep"), Request::Help(Some("grep".into())));
    assert_eq!(request("tools"), Request::Tools);
    assert_eq!(request("exit"), Request::Quit);
}

#[test]
fn several_lines_at_once() {
    let input = "write a <<X\n1\nX\n# then\nls\n";
    let (first, used) = parse(input, &tools()).unwrap();
    assert!(matches!(first, Request::Call { tool, .. } if tool == "write_file"));
    let (second, more) = parse(&input[used..], &tools()).unwrap();
    assert_eq!(second, Request::Nothing);
    assert_eq!(&input[used + more..], "ls\n");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_line_is_read_or_refused(line in "(read|write|edit|run|bg|!|grep|glob|help|x)?[ a-z='\"\\\\<\n{}\\[\\]:0-9-]{0,40}|.{0,30}") {
        if let Ok((_, used)) = parse(&line, &tools()) {
            prop_assert!(used <= line.len() && line.is_char_boundary(used));
            prop_assert!(used > 0 || line.is_empty());
        }
    }

    #[test]
    fn json_stays_what_it_is(
        fields in prop::collection::btree_map(any::<String>(), any_json(), 0..4),
        pretty in any::<bool>(),
    ) {
        let arguments = Value::Object(fields.into_iter().collect());
        let text = if pretty {
            serde_json::to_string_pretty(&arguments).unwrap()
        } else {
            arguments.to_string()
        };
        is(&format!("grep {text}"), "grep", arguments);
    }

    #[test]
    fn any_text_can_be_given(path in any::<String>(), content in any::<String>()) {
        let line = format!("write {} --content {}", words::quote(&path), words::quote(&content));
        is(&line, "write_file", json!({"path": path, "content": content}));
    }
}

#[test]
fn options_of_programs_are_not_taken_for_paths() {
    for (typed, told) in [
        ("ls -la", "ls has no option -la; type help ls"),
        ("grep hello -i", "grep has no option -i; type help grep"),
    ] {
        let why = wrong(typed);
        assert!(why.starts_with(told), "{why}");
        assert!(why.ends_with("put ! before the line to run it as a command"));
    }
    calls! {
        "ls '-la'" => ls {"path": "-la"};
        "ls -- -la" => ls {"path": "-la"};
        "grep -5" => grep {"pattern": "-5"};
    }
}

#[test]
fn what_is_no_tool_may_be_a_command() {
    for (typed, told) in [
        (
            "git status",
            "there is no tool 'git'; to run a command: !git status",
        ),
        ("pwd\n", "there is no tool 'pwd'; to run a command: !pwd"),
        (
            "cd x",
            "there is no tool 'cd'; to run a command: !cd x && COMMAND",
        ),
        (
            "python3 a.py <<EOF\nx\nEOF\n",
            "there is no tool 'python3'; to run a command: !python3 a.py <<EOF",
        ),
        (
            "raed a",
            "there is no tool 'raed' (did you mean read?); to run a command: !raed a",
        ),
        (
            "cta a",
            "there is no tool 'cta' (did you mean cat?); to run a command: !cta a",
        ),
        (
            "shels",
            "there is no tool 'shels' (did you mean shells?); to run a command: !shels",
        ),
        (
            "hlep",
            "there is no tool 'hlep' (did you mean help?); to run a command: !hlep",
        ),
    ] {
        assert_eq!(wrong(typed), told);
    }
    let long = wrong(&format!("make {}", "x".repeat(1_000)));
    assert!(long.ends_with("x…") && long.len() < 300, "{long}");
    let none = Toolset::builder(Arc::new(StateBackend::new()))
        .build()
        .unwrap()
        .definitions();
    let wrong = |typed| match parse(typed, &none) {
        Err(ParseError::Invalid(why)) => why,
        other => panic!("{typed}: {other:?}"),
    };
    assert_eq!(
        wrong("git status"),
        "there is no tool 'git'; type tools to see those there are"
    );
    for typed in ["run ls", "!ls", "execute ls", "bg ls"] {
        let told = wrong(typed);
        assert!(told.starts_with("no commands run here"), "{told}");
        assert!(told.contains("--backend local:DIR"), "{told}");
    }
}
