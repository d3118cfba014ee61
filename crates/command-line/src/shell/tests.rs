//! Parser tests. They print commands and their parts in brackets.

use super::ast::{
    AndOr, Command, Compound, Definition, Item, Join, Kind, List, Pipeline, Redirect, Target, Value,
};
use super::*;

fn parse(text: &str) -> Result<Program, ParseError> {
    read(text, &StepBudget::new(None))
}

fn shown(text: &str) -> String {
    match parse(text) {
        Ok(program) => list(&program.list),
        Err(error) => format!("refused: {}", error.0),
    }
}

fn is_refused(text: &str) -> bool {
    parse(text).is_err()
}

fn list(items: &List) -> String {
    let items: Vec<String> = items.iter().map(and_or).collect();
    items.join("; ")
}

fn and_or(and_or: &AndOr) -> String {
    let mut text = pipeline(&and_or.first);
    for (join, next) in &and_or.rest {
        text += match join {
            Join::And => " && ",
            Join::Or => " || ",
        };
        text += &pipeline(next);
    }
    text + if and_or.background { " &" } else { "" }
}

fn pipeline(pipeline: &Pipeline) -> String {
    let stages: Vec<String> = pipeline.stages.iter().map(command).collect();
    let timed = if pipeline.timed { "time " } else { "" };
    format!("{timed}{}", stages.join(" | "))
}

fn command(command: &Command) -> String {
    match command {
        Command::Simple(items) => {
            let items: Vec<String> = items.iter().map(item).collect();
            format!("[{}]", items.join(" "))
        }
        Command::Compound(inner, to) => compound(inner) + &redirects(to),
        Command::Function { name, definition } => {
            let Definition {
                body,
                redirects: to,
            } = &**definition;
            format!("{name}() {}{}", compound(body), redirects(to))
        }
        Command::Test(words, to) => format!("test[{}]{}", words.join(" "), redirects(to)),
    }
}

fn item(item: &Item) -> String {
    match item {
        Item::Word(word) => word.clone(),
        Item::Redirect(to) => redirect(to),
        Item::Substitution(inner) => format!("<({})", list(inner)),
        Item::Assignment(assignment) => {
            let index = assignment.index.as_ref();
            let index = index.map_or(String::new(), |index| format!("[{index}]"));
            let value = match &assignment.value {
                Value::Scalar(value) => value.clone(),
                Value::Array(members) => format!("{members:?}"),
            };
            let append = if assignment.append { "+" } else { "" };
            format!("{}{index}{append}:={value}", assignment.name)
        }
    }
}

fn redirects(redirects: &[Redirect]) -> String {
    let all = redirects.iter().map(|to| format!(" {}", redirect(to)));
    all.collect()
}

fn redirect(redirect: &Redirect) -> String {
    let number = |fd: &Option<u32>| fd.map_or(String::new(), |fd| fd.to_string());
    match redirect {
        Redirect::File { fd, kind, target } => {
            let kind = match kind {
                Kind::Read => "<",
                Kind::Write => ">",
                Kind::ReadWrite => "<>",
                Kind::CopyInput => "<&",
                Kind::CopyOutput => ">&",
            };
            let target = match target {
                Target::Word(word) => word.clone(),
                Target::Substitution(inner) => format!("({})", list(inner)),
            };
            format!("{}{kind}{target}", number(fd))
        }
        Redirect::Document { fd, expands, body } => {
            let quote = if *expands { "" } else { "'" };
            format!("{}<<{quote}{:?}", number(fd), body.get().unwrap())
        }
        Redirect::Both(word) => format!("&>{word}"),
    }
}

fn compound(compound: &Compound) -> String {
    match compound {
        Compound::Group(inner) => format!("{{{}}}", list(inner)),
        Compound::Subshell(inner) => format!("({})", list(inner)),
        Compound::For { name, words, body } => {
            format!("for {name} in {} do {}", words.join(","), list(body))
        }
        Compound::Case { word, arms } => {
            let arms = arms
                .iter()
                .map(|arm| format!(" {}) {}", arm.patterns.join("|"), list(&arm.body)));
            format!("case {word}{}", arms.collect::<String>())
        }
        Compound::Branches(lists) => {
            let lists: Vec<String> = lists.iter().map(list).collect();
            format!("branches({})", lists.join(" / "))
        }
        Compound::Loop { condition, body } => {
            format!("while {} do {}", list(condition), list(body))
        }
    }
}

#[test]
fn lists_and_pipelines() {
    for (text, expected) in [
        ("", ""),
        (" # a; b\n\n", ""),
        ("a b; c & d\ne", "[a b]; [c] &; [d]; [e]"),
        ("a && b || c &", "[a] && [b] || [c] &"),
        ("a &&\n# x\n\nb |\n c", "[a] && [b] | [c]"),
        ("! a | b |& c", "[a] | [b] | [c]"),
        ("time -p a | time b", "time [-p a] | [time b]"),
        ("time ! { a; }", "time {[a]}"),
        ("a;#b\nc#d #e", "[a]; [c#d]"),
        ("a \\\n#b", "[a]"),
        ("a\\\n#b \\\n c", "[a#b c]"),
        ("(a)#b", "([a])"),
    ] {
        assert_eq!(shown(text), expected, "{text:?}");
    }
    for text in [
        ";", "&", "a;;b", "a & ; b", "a |", "| a", "a && ; b", "a |\n| b", "! ! a", "a | ! b",
        "a\n;b", "!", "time", "&& a", ")", "a )", "(a) b", "{ a; } b",
    ] {
        assert!(is_refused(text), "{text:?}");
    }
}

#[test]
fn compound_commands() {
    for (text, expected) in [
        ("( a; b )>c", "([a]; [b]) >c"),
        ("( { (a) } )", "({([a])})"),
        ("{ a;}>c 2>&1", "{[a]} >c 2>&1"),
        ("{(a)}", "{([a])}"),
        ("{ { a; } }", "{{[a]}}"),
        ("if(a)then b;fi", "branches(([a]) / [b])"),
        (
            "if a; then b; elif c\nthen d\nelse e; fi",
            "branches([a] / [b] / [c] / [d] / [e])",
        ),
        ("while a; do b; done <c", "while [a] do [b] <c"),
        ("until a\ndo b\ndone", "while [a] do [b]"),
        (
            "for x in a do done; do b; done",
            "for x in a,do,done do [b]",
        ),
        ("for x do b; done", "for x in  do [b]"),
        ("for x; do b; done", "for x in  do [b]"),
        ("for in\nin in\ndo b; done", "for in in in do [b]"),
        (
            "case x in a|if) b;; (c) ;& *) d\nesac",
            "case x a|if) [b] c)  *) [d]",
        ),
        ("case in in in) esac", "case in in) "),
        ("f() { a; } >b", "f() {[a]} >b"),
        ("f ( )\n(a)", "f() ([a])"),
        (":(){ :|:& };:", ":() {[:] | [:] &}; [:]"),
        ("[[ ! -f $x ]] && a", "test[! -f $x] && [a]"),
        ("echo if then { } ! [[ done", "[echo if then { } ! [[ done]"),
        ("x=1 if a", "[x:=1 if a]"),
        (">x { a", "[>x { a]"),
        ("'if' a; \\{ b; \"}\"", "['if' a]; [\\{ b]; [\"}\"]"),
        ("i\\\nf a; then b; fi", "branches([a] / [b])"),
    ] {
        assert_eq!(shown(text), expected, "{text:?}");
    }
}

#[test]
fn what_is_no_compound_command_is_refused() {
    for text in [
        "()",
        "{ }",
        "{ a }",
        "{a; }",
        "( a",
        "((a))",
        "( (a) )",
        "if a; fi",
        "if a; then fi",
        "if ; then a; fi",
        "while a; do done",
        "do a; done",
        "a; then",
        "fi",
        "esac",
        "}",
        "for 1 in a; do b; done",
        "for x in a & do b; done",
        "for x in a; { b; }",
        "for x\n; do b; done",
        "for ((;;)); do a; done",
        "case x in a b) c;; esac",
        "case x in (esac) a;; esac",
        "case x a) b;; esac",
        "case x in a) b;",
        "f() a",
        "f(a) { b; }",
        "f() [[ a ]]",
        "function f { a; }",
        "select x in a; do b; done",
        "coproc a",
        "[[ a && b ]]",
        "[[ a\nb ]]",
        "[[ a < b ]]",
        "[[ a",
        "[[ ]]",
        "[[ a ]] b",
        "[[ ! ! ! a ]]",
        ">x (a)",
        "a (b)",
        "a b() { c; }",
        "x=1 f() { a; }",
        "(\\\n(a))",
    ] {
        assert!(is_refused(text), "{text:?}");
    }
}

#[test]
fn words() {
    for (text, expected) in [
        ("a'b c'\"d \\\" e\"\\ f", "[a'b c'\"d \\\" e\"\\ f]"),
        ("a\\\nb 'c\\\nd' \"e\\\nf\"", "[ab 'c\\\nd' \"ef\"]"),
        (
            "a\u{a0}b\u{3000}c\rd\x0ce\x0bf",
            "[a\u{a0}b\u{3000}c\rd\x0ce\x0bf]",
        ),
        ("a $(b; c) d", "[a $(b; c) d]"),
        ("a \"$(b \")\" # )\n)\" d", "[a \"$(b \")\" # )\n)\" d]"),
        ("a $( (b)#c )\n) d", "[a $( (b)#c )\n) d]"),
        (
            "a $(case x in y) b;; esac) d",
            "[a $(case x in y) b;; esac) d]",
        ),
        ("a $(b <<E\n)'\nE\n) d", "[a $(b <<E\n)'\nE\n) d]"),
        (
            "a $((1 << (2))) ${x:-$(b c)} d",
            "[a $((1 << (2))) ${x:-$(b c)} d]",
        ),
        ("a ${x:-'b }'} \"${x:-}'\"", "[a ${x:-'b }'} \"${x:-}'\"]"),
        (
            "a `b \"c\" \\` d` \"`e \"f g\"`\"",
            "[a `b \"c\" \\` d` \"`e \"f g\"`\"]",
        ),
        ("a $'b c' $\"d e\" $ \"$\"", "[a $'b c' $\"d e\" $ \"$\"]"),
        ("a $'b\\' c' \"$$\" $$'d e'", "[a $'b\\' c' \"$$\" $$'d e']"),
        ("a $()", "[a $()]"),
        ("a {b,c} }{", "[a {b,c} }{]"),
        ("a\\", "[a\\]"),
    ] {
        assert_eq!(shown(text), expected, "{text:?}");
    }
    for text in [
        "'a",
        "\"a",
        "`a",
        "$(a",
        "${a",
        "$((a)",
        "a $(b",
        "a \"$(b\"",
        "$(a;;)",
        "$(a))",
        "$(}",
        // Continuations that shells join and older ones do not.
        "a $\\\n(b)",
        "a \"$\\\n(b)\"",
        "a $(\\\n(b))",
        "a &\\\n& b",
        "a >\\\n> b",
        "a <\\\n<E\nE\n",
        "a \"$$(b)\"",
        "a $(b <<E)\nE\n",
    ] {
        assert!(is_refused(text), "{text:?}");
    }
}

#[test]
fn assignments_and_redirects() {
    for (text, expected) in [
        ("a=b c+=d e=f", "[a:=b c+:=d e:=f]"),
        ("a=b c d=e", "[a:=b c d=e]"),
        ("a[$(b ])]=c a[`d`]=e", "[a[$(b ])]:=c a[`d`]:=e]"),
        ("a[1]=b a['x y']=c", "[a[1]:=b a['x y']:=c]"),
        (
            "a=(b 'c d'\n[2]=e # f\n) g",
            "[a:=[(None, \"b\"), (None, \"'c d'\"), (Some(\"2\"), \"e\")] g]",
        ),
        ("declare -a a=(b)", "[declare -a a:=[(None, \"b\")]]"),
        ("1=a \\b=c 'd'=e", "[1=a \\b=c 'd'=e]"),
        ("a >b 2>c <d >>e >|f <>g", "[a >b 2>c <d >e >f <>g]"),
        ("a>b2>c 2 >d", "[a >b2 >c 2 >d]"),
        ("a 2>&1 >&2 <&- >&f 3<&4-", "[a 2>&1 >&2 <&- >&f 3<&4-]"),
        ("a 2\\\n>b", "[a 2>b]"),
        (">a b=c d", "[>a b:=c d]"),
        ("a &>b c &>>d", "[a &>b c &>d]"),
        ("a& >b", "[a] &; [>b]"),
        ("a <(b; c) >(d) < <(e)", "[a <([b]; [c]) <([d]) <([e])]"),
    ] {
        assert_eq!(shown(text), expected, "{text:?}");
    }
    for text in [
        "a >",
        "a > ;",
        "a >2>b",
        "a >&2>b",
        "a <<<b",
        "a > > b",
        "a=b(c)",
        "a= (b)",
        "b a=(c)",
        "a[b c]=d",
        "a[b",
        "a=(b;c)",
        "a=(b",
        "a[1]=(b)",
        "a <((b))",
        "a >& <(b)",
    ] {
        assert!(is_refused(text), "{text:?}");
    }
    assert!(parse("a {b} >c 12 >d 1>e").unwrap().doubts.is_empty());
}

#[test]
fn documents() {
    for (text, expected) in [
        ("a <<E\nb 'c\nE", "[a <<\"b 'c\\n\"]"),
        ("a <<E; d\nb\nE\nc", "[a <<\"b\\n\"]; [d]; [c]"),
        ("a <<'E'\nb\n E\nE\r\nE\n", "[a <<'\"b\\n E\\nE\\r\\n\"]"),
        ("a <<-E\n\tb\n\t\tE\n", "[a <<\"b\\n\"]"),
        (
            "a <<A 3<<\"B C\" <<-\\D\nA\nb\nB C\n\tD\n",
            "[a <<\"\" 3<<'\"b\\n\" <<'\"\"]",
        ),
        ("(a <<E) | b\nc\nE\n", "([a <<\"c\\n\"]) | [b]"),
        ("(a <<E\nc\nE\n)", "([a <<\"c\\n\"])"),
        ("a <<E \\\n b\nc\nE", "[a <<\"c\\n\" b]"),
        (
            "if a <<E\nb\nE\nthen c; fi",
            "branches([a <<\"b\\n\"] / [c])",
        ),
        ("a <<E # b <<F\nE", "[a <<\"\"]"),
        ("a <<-E-\nE-", "[a <<\"\"]"),
    ] {
        assert_eq!(shown(text), expected, "{text:?}");
    }
    for text in [
        "a <<E",
        "a <<E\n",
        "a <<E\nb",
        "a <<E\n E\n",
        "a <<E <<F\nF\nE\n",
        "a <<",
        "a << \nb",
        "a <<`E`\n",
        "a <<\"E\\\"\"\n",
        "a <<'E\nF'\nE\nF\n",
        "a <<2>b\n2\n",
    ] {
        assert!(is_refused(text), "{text:?}");
    }
}

/// Text that shells read differently is parsed as bash does, and the doubt is noted.
#[test]
fn doubts() {
    for (text, expected) in [
        ("a 12>b", "[a 12>b]"),
        ("{ a; } 10>b", "{[a]} 10>b"),
        ("a 99999999999>b", "[a 4294967295>b]"),
        ("a {fd}>b", "[a 4294967295>b]"),
        ("a<(b)", "[a <([b])]"),
        ("a <(b)c", "[a <([b]) c]"),
        ("a <<''\nb\n\nc", "[a <<'\"b\\n\"]; [c]"),
        ("a <<$E\nb\n$E\nc", "[a <<\"b\\n\"]; [c]"),
        ("a <<E 'b\nE\n'\nE\n", "[a <<\"\" 'b\nE\n']"),
        ("a <<E $(b\n)\nE\n", "[a <<\"\" $(b\n)]"),
        ("a <<E <(b\n)\nE\n", "[a <<\"\" <([b])]"),
    ] {
        assert_eq!(shown(text), expected, "{text:?}");
        assert!(!parse(text).unwrap().doubts.is_empty(), "{text:?}");
    }
}

#[test]
fn what_is_too_long_or_too_deep_is_refused() {
    for (open, close) in [
        ("( { ", "; })"),
        ("{ ", "; }"),
        ("a $(", ")"),
        ("a \"${x:-$(", ")}\""),
        ("a ${x:-", "}"),
        ("a $((", "))"),
        ("a <(", ")"),
        ("f() { ", "; }"),
        ("case x in x) ", "\nesac"),
    ] {
        let nested = |depth: usize| format!("{}b{}", open.repeat(depth), close.repeat(depth));
        assert!(!is_refused(&nested(10)), "{open}");
        assert!(is_refused(&nested(100)), "{open}");
        assert!(is_refused(&open.repeat(10_000)), "{open}");
    }
    assert!(is_refused("a\0b"));
    assert!(is_refused(&"a".repeat(64 * 1024 + 1)));
    let budget = StepBudget::new(None);
    assert!(read(&"a ".repeat(30_000), &budget).is_err());
    assert!(budget.is_spent());
}
