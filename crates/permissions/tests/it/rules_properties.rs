//! Properties of every ruleset and every path.
use backend_core::VPath;
use backend_core::search::Glob;
use backend_testkit::path;
use permissions::rules::{PathRule, PathRules, Rules, Ruleset};
use permissions::{Action, Op, Policy, Reason};
use proptest::prelude::*;

use Action::{Allow, Ask, Deny};

const WORK: &str = "/a/b";

fn compile(ruleset: &Ruleset) -> Rules {
    ruleset.compile(&path(WORK))
}

/// A reference implementation, written for clarity: no glob set, no derived globs.
mod reference {
    use super::*;

    /// Expands the braces of a pattern. The patterns here use them only as `{x,y}`.
    fn alternatives(pattern: &str) -> Vec<String> {
        let Some((head, rest)) = pattern.split_once('{') else {
            return vec![pattern.to_owned()];
        };
        let (inner, tail) = rest.split_once('}').unwrap();
        let one = |inner| format!("{head}{inner}{tail}");
        inner.split(',').map(one).collect()
    }

    fn from_root(alternative: &str) -> String {
        if alternative.starts_with('/') {
            alternative.to_owned()
        } else if alternative.starts_with("**") {
            format!("/{alternative}")
        } else if alternative.contains('/') {
            format!("{WORK}/{alternative}")
        } else {
            format!("/**/{alternative}")
        }
    }

    fn matches(pattern: &str, path: &VPath) -> bool {
        Glob::new(pattern).unwrap().matches(&VPath::root(), path)
    }

    fn covers(pattern: &str, path: &VPath) -> bool {
        alternatives(pattern).iter().any(|alternative| {
            let mut pattern = from_root(alternative);
            while pattern.contains("/**/**") {
                pattern = pattern.replace("/**/**", "/**");
            }
            let mut covered = vec![pattern.as_str()];
            while let Some(pattern) = covered.last()
                && let Some(directory) = pattern
                    .strip_suffix("/**/*")
                    .or_else(|| pattern.strip_suffix("/**"))
            {
                covered.push(directory);
            }
            let mut covered = covered.into_iter();
            covered.any(|pattern| pattern.is_empty() || matches(pattern, path))
        })
    }

    /// Returns the decision, and the index of the rule it comes from.
    pub(super) fn judge(section: &PathRules, path: &VPath) -> (Action, Option<usize>) {
        let mut question = None;
        let mut answer = (section.default, None);
        for (place, rule) in section.rules.iter().enumerate() {
            let pattern = rule.pattern.as_str();
            let inside = path.ancestors().any(|above| covers(pattern, &above));
            if covers(pattern, path) || (inside && rule.action == Deny) {
                answer = (rule.action, Some(place));
                break;
            }
            if inside && rule.action == Ask {
                question = question.or(Some(place));
            }
        }
        match question {
            Some(place) if answer.0 < Deny => (Ask, Some(place)),
            _ => answer,
        }
    }
}

fn actions() -> impl Strategy<Value = Action> {
    prop::sample::select(vec![Allow, Ask, Deny])
}

fn path_rules() -> impl Strategy<Value = PathRule> {
    let component = prop::sample::select(vec![
        "a", "b", "c", "a", "b", "c", "*", "**", "a*", "*b", "?", "[!a]", "[a-b]c", "{a,b}",
    ]);
    let pattern = (
        prop::sample::select(vec!["", "", "/", "/", "**/"]),
        prop::collection::vec(component, 1..4),
        prop::sample::select(vec!["", "", "/**", "/**/*"]),
    );
    let pattern = pattern.prop_filter_map("braces once, and a pattern", |(head, names, tail)| {
        let pattern = format!("{head}{}{tail}", names.join("/"));
        let once = pattern.matches('{').count() < 2;
        once.then(|| PathRule::new(&pattern, Allow).ok()).flatten()
    });
    (pattern, actions(), any::<bool>()).prop_map(|(mut rule, action, hide)| {
        rule.action = action;
        rule.hide(hide && action == Deny)
    })
}

fn sections() -> impl Strategy<Value = PathRules> {
    // Covers both modes of the glob set: with few globs it tries each, with more it
    // searches for their literal texts first.
    (actions(), prop::collection::vec(path_rules(), 0..12)).prop_map(|(default, rules)| {
        let mut section = PathRules::default();
        section.default = default;
        section.rules = rules;
        section
    })
}

fn without_hiding(mut section: PathRules) -> PathRules {
    section.rules.iter_mut().for_each(|rule| rule.hide = false);
    section
}

fn rulesets() -> impl Strategy<Value = Ruleset> {
    let section = || prop::option::weighted(0.8, sections());
    (
        actions(),
        section(),
        section(),
        section(),
        section(),
        section(),
    )
        .prop_map(|(default, read, write, ls, glob, grep)| {
            let mut ruleset = Ruleset::default();
            ruleset.default = default;
            ruleset.read = read;
            ruleset.write = write.map(without_hiding);
            ruleset.ls = ls.map(without_hiding);
            ruleset.glob = glob.map(without_hiding);
            ruleset.grep = grep.map(without_hiding);
            ruleset
        })
}

fn paths() -> impl Strategy<Value = VPath> {
    let name = prop::sample::select(vec!["a", "b", "c", "ac", "bc", "x"]);
    prop::collection::vec(name, 0..6).prop_map(|names| path(&names.join("/")))
}

/// Spells a path with the given `detours`.
fn spelling(path: &VPath, detours: &[u8]) -> String {
    let from_work = path.strip_prefix(&self::path(WORK));
    let relative = from_work.filter(|_| detours.first().is_some_and(|detour| detour % 2 == 0));
    let (mut text, names) = match relative {
        Some(relative) => (String::new(), relative),
        None if detours.len().is_multiple_of(3) => ("../../".to_owned(), &path.as_str()[1..]),
        None => ("/".to_owned(), &path.as_str()[1..]),
    };
    let mut detours = detours.iter().chain(std::iter::repeat(&0));
    for name in names.split('/').filter(|name| !name.is_empty()) {
        match detours.next().unwrap() % 5 {
            1 => text.push_str("./"),
            2 => text.push_str("zz/../"),
            3 if !text.is_empty() => text.push('/'),
            4 => text.push_str("a/b/../../"),
            _ => {}
        }
        text.push_str(name);
        text.push('/');
    }
    text
}

fn at(section: &PathRules) -> Rules {
    let mut ruleset = Ruleset::default();
    ruleset.read = Some(section.clone());
    compile(&ruleset)
}

fn read(rules: &Rules, path: &VPath) -> Action {
    rules.judge(Op::Read, path).action
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn answers_follow_the_definition(
        section in sections(),
        paths in prop::collection::vec(paths(), 16),
    ) {
        let rules = at(&section);
        for path in &paths {
            let vote = rules.judge(Op::Read, path);
            let by = match &vote.reason {
                Reason::Rule(rule) => Some(rule.index),
                _ => None,
            };
            prop_assert_eq!((vote.action, by), reference::judge(&section, path), "{}", path);
        }
    }

    #[test]
    fn no_spelling_gets_another_answer(
        ruleset in rulesets(),
        path in paths(),
        detours in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        let rules = compile(&ruleset);
        let typed = spelling(&path, &detours);
        for op in Op::ALL {
            prop_assert_eq!(
                rules.judge_text(op, &typed).unwrap(),
                rules.judge(op, &path),
                "{} is {}", typed, path
            );
        }
    }

    #[test]
    fn one_more_denial_never_allows_more(
        section in sections(),
        place in any::<prop::sample::Index>(),
        mut rule in path_rules(),
        paths in prop::collection::vec(paths(), 16),
    ) {
        // This does not hold for `Ask`: such a rule before a denial overrides it.
        rule.action = Deny;
        let mut more = section.clone();
        more.rules.insert(place.index(section.rules.len() + 1), rule);
        let (before, after) = (at(&section), at(&more));
        for path in &paths {
            prop_assert!(read(&after, path) >= read(&before, path), "{}", path);
        }
        prop_assert!(after.most_lenient(Op::Read) >= before.most_lenient(Op::Read));
    }

    #[test]
    fn one_permission_less_never_allows_more(
        mut section in sections(),
        place in any::<prop::sample::Index>(),
        paths in prop::collection::vec(paths(), 16),
    ) {
        let before = at(&section);
        if section.rules.is_empty() {
            return Ok(());
        }
        let removed = section.rules.remove(place.index(section.rules.len()));
        if removed.action != Allow {
            return Ok(());
        }
        let after = at(&section);
        for path in &paths {
            prop_assert!(read(&after, path) >= read(&before, path), "{}", path);
        }
    }

    #[test]
    fn a_denial_holds_for_all_that_lies_beneath(
        section in sections(),
        directory in paths(),
        below in paths(),
    ) {
        let rules = at(&section);
        let path = path(&format!("{directory}/{below}"));
        let Reason::Rule(rule) = rules.judge(Op::Read, &directory).reason else {
            return Ok(());
        };
        // Only an earlier rule can make an exception, and only one that covers the path
        // itself.
        let mut without = section.clone();
        without.rules.drain(..rule.index);
        prop_assert!(rule.action == Allow || read(&at(&without), &path) >= rule.action, "{}", path);
        if rule.action == Deny && read(&rules, &path) < Deny {
            let (_, by) = reference::judge(&section, &path);
            prop_assert!(by.is_some_and(|by| by < rule.index), "{}", path);
        }
    }

    #[test]
    fn what_is_kept_from_commands_is_what_is_denied(
        mut ruleset in rulesets(),
        delete in prop::option::of(sections()),
        moves in prop::option::of(sections()),
        paths in prop::collection::vec(paths(), 16),
    ) {
        ruleset.delete = delete.map(without_hiding);
        ruleset.moves = moves.map(without_hiding);
        let rules = compile(&ruleset);
        let policy = Policy::builder().rules(rules.clone()).build();
        let denied = |op: Op, path: &VPath| rules.judge(op, path).action == Deny;
        // A view has no root.
        for path in paths.iter().filter(|path| !path.is_root()) {
            let view = policy.view();
            prop_assert_eq!(view.deny_read.hides(path), denied(Op::Read, path), "{}", path);
            let changes = [Op::Write, Op::Edit, Op::Delete, Op::Move];
            let unchangeable = changes.into_iter().any(|op| denied(op, path));
            prop_assert_eq!(view.deny_write.hides(path), unchangeable, "{}", path);
        }
    }

    #[test]
    fn best_and_strongest_are_bounds(
        ruleset in rulesets(),
        directory in paths(),
        below in prop::collection::vec(paths(), 16),
    ) {
        let rules = compile(&ruleset);
        for op in Op::ALL.into_iter().filter(|op| *op != Op::Execute) {
            let strongest = rules.strongest_beneath(op, &directory);
            for below in &below {
                let path = path(&format!("{directory}/{below}"));
                let action = rules.judge(op, &path).action;
                prop_assert!(rules.most_lenient(op) <= action, "{} {}", op, path);
                if path != directory {
                    prop_assert!(strongest >= action, "{} {} in {}", op, path, directory);
                }
            }
        }
    }

    #[test]
    fn what_is_left_out_is_what_the_rules_say(
        ruleset in rulesets(),
        paths in prop::collection::vec(paths(), 16),
    ) {
        let rules = compile(&ruleset);
        for path in paths.iter().filter(|path| !path.is_root()) {
            let read = rules.judge(Op::Read, path);
            let denied = |op| rules.judge(op, path).action == Deny;
            let unshown = matches!((read.action, &read.reason), (Deny, _) | (Ask, Reason::Rule(_)));
            let unnamed = hides_the_name(&ruleset, path);
            for (op, hidden) in [
                (Op::Ls, denied(Op::Ls) || unnamed),
                (Op::Glob, denied(Op::Glob) || unnamed),
                (Op::Grep, denied(Op::Grep) || unshown),
            ] {
                let exclude = rules.exclude(op);
                prop_assert_eq!(exclude.hides(path), hidden, "{} {}: {:?}", op, path, exclude);
                prop_assert_eq!(exclude.state_for(path).is_hidden(), hidden);
                for above in path.ancestors() {
                    let state = exclude.state_for(&above);
                    prop_assert!(hidden || !exclude.prunes(&state, &above), "{} {} in {}", op, path, above);
                }
            }
        }
    }

    #[test]
    fn text_keeps_everything(ruleset in rulesets()) {
        let toml = Ruleset::from_toml(&ruleset.to_toml().unwrap()).unwrap();
        let json = Ruleset::from_json(&ruleset.to_json().unwrap()).unwrap();
        prop_assert_eq!(&toml, &ruleset);
        prop_assert_eq!(&json, &ruleset);
        prop_assert_eq!(toml.id(), json.id());
    }

    #[test]
    fn any_text_is_a_ruleset_or_an_error(text in any::<String>(), cut in any::<prop::sample::Index>()) {
        let written = permissions::Preset::Permissive.ruleset();
        let noise = |whole: String| {
            let at = whole.floor_char_boundary(cut.index(whole.len()));
            format!("{}{text}{}", &whole[..at], &whole[at..])
        };
        for result in [
            Ruleset::from_toml(&text),
            Ruleset::from_json(&text),
            Ruleset::from_toml(&noise(written.to_toml().unwrap())),
            Ruleset::from_json(&noise(written.to_json().unwrap())),
        ] {
            if let Err(error) = result {
                prop_assert!(error.line > 0 && error.column > 0 && !error.message.is_empty());
            }
        }
    }
}

/// Whether a read rule denies and hides the path, and no earlier one allows or asks.
/// Denials that do not hide are ignored.
fn hides_the_name(ruleset: &Ruleset, path: &VPath) -> bool {
    let Some(mut section) = ruleset.read.clone() else {
        return false;
    };
    section
        .rules
        .retain(|rule| rule.action != Deny || rule.hide);
    // A question about a parent directory decides nothing.
    section.default = Allow;
    let (action, by) = reference::judge(&section, path);
    action == Deny && by.is_some()
}

/// Even the longest patterns and the longest working directory make globs that can be
/// serialized as text.
#[test]
fn what_is_left_out_can_be_rebuilt_from_text() {
    let rules = [
        format!("{}/*", "\\[".repeat(1_990)),
        format!("{}/?", "[*?]".repeat(990)),
        format!("{{{},b}}/c/**", "\\{".repeat(1_900)),
    ];
    let name = "*".repeat(250);
    let working_dir = path(&[name.as_str(); 16].join("/"));
    let mut section = PathRules::default();
    section.rules = rules.map(|rule| PathRule::new(&rule, Deny).unwrap()).into();
    let mut ruleset = Ruleset::default();
    ruleset.ls = Some(section.clone());
    ruleset.read = Some(section);
    for op in [Op::Ls, Op::Grep] {
        let exclude = ruleset.compile(&working_dir).exclude(op);
        let again = backend_core::search::Exclude::from_layers(exclude.layers().to_vec());
        assert_eq!(again.unwrap(), exclude);
    }
}

#[test]
fn a_directory_on_the_way_to_what_is_allowed_is_walked() {
    let mut section = PathRules::default();
    section.default = Deny;
    section.rules = vec![
        PathRule::new("/w/src/**", Allow).unwrap(),
        PathRule::new("*.md", Allow).unwrap(),
    ];
    let mut ruleset = Ruleset::default();
    ruleset.glob = Some(section.clone());
    ruleset.grep = Some(section);
    ruleset.read = Some(PathRules::default());
    let rules = compile(&ruleset);
    for op in [Op::Glob, Op::Grep] {
        let exclude = rules.exclude(op);
        let hides = |text| exclude.hides(&path(text));
        let prunes = |text| exclude.prunes(&exclude.state_for(&path(text)), &path(text));
        assert!(hides("/w") && hides("/w/x.rs") && !hides("/w/src/x.rs") && !hides("/o/x.md"));
        assert!(
            !prunes("/w") && !prunes("/w/src") && !prunes("/o"),
            "a note can be anywhere"
        );
    }
}
