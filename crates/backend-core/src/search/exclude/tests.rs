//! Tests of the paths that a policy hides.

use proptest::prelude::*;

use super::*;

fn path(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

fn hides(exclude: &Exclude, text: &str) -> bool {
    exclude.hides(&path(text))
}

#[test]
fn none_hides_nothing() {
    for none in [
        Exclude::none(),
        Exclude::default(),
        Exclude::hide(Vec::<String>::new()).unwrap(),
        Exclude::from_layers(vec![vec![], vec![]]).unwrap(),
    ] {
        assert!(none.is_none() && none.layers().is_empty());
        assert!(!hides(&none, "/a"));
        let state = none.state_for(&path("/a"));
        assert_eq!(none.enter(&state, &path("/a/b")), ExcludeState::default());
        assert!(!none.prunes(&state, &path("/a")));
        assert_eq!(none, Exclude::none());
    }
}

#[test]
fn hides_what_matches_and_what_lies_beneath() {
    let exclude = Exclude::hide(["*.pem", "/secrets", "conf/keys", "/logs/**"]).unwrap();
    let inside = "/a.pem /x/y/a.pem /x.pem/inside /secrets /secrets/a/b /conf/keys /conf/keys/a \
        /logs/today";
    for hidden in inside.split(' ') {
        assert!(hides(&exclude, hidden), "{hidden}");
    }
    for kept in "/ /a /x/secrets /x/conf/keys /conf /logs /secrets2".split(' ') {
        assert!(!hides(&exclude, kept), "{kept}");
    }
}

#[test]
fn the_first_rule_that_matches_decides() {
    let exclude = Exclude::from_layers(vec![vec![
        ExcludeRule::keep("/project/.env.example"),
        ExcludeRule::hide(".env*"),
        ExcludeRule::keep(".env.late"),
        ExcludeRule::keep("/vendor/mine"),
        ExcludeRule::hide("/vendor"),
    ]])
    .unwrap();
    for (text, hidden) in [
        ("/project/.env.example", false),
        ("/other/.env.example", true),
        ("/.env.late", true),
        ("/vendor/x", true),
        ("/vendor/mine", false),
        ("/vendor/mine/deep/down", false),
        ("/vendor/mine/.env", true),
    ] {
        assert_eq!(hides(&exclude, text), hidden, "{text}");
    }
}

#[test]
fn any_layer_can_hide_and_none_can_show() {
    let one = Exclude::from_layers(vec![vec![
        ExcludeRule::keep("*.pub"),
        ExcludeRule::hide("keys"),
    ]])
    .unwrap();
    let two = Exclude::hide(["*.tmp"]).unwrap();
    let both = one.and(&two);
    assert_eq!(both.layers().len(), 2);
    assert!(hides(&both, "/keys/a") && hides(&both, "/a.tmp"));
    assert!(!hides(&both, "/keys/a.pub") && hides(&both, "/a.tmp/a.pub"));
    assert_eq!(one.and(&Exclude::none()), one);
    assert_eq!(Exclude::none().and(&two), two);
    assert!(Exclude::none().and(&Exclude::none()).is_none());
}

#[test]
fn is_plain_data() {
    let exclude = Exclude::from_layers(vec![
        vec![ExcludeRule::new("a", ExcludeAction::Hide)],
        vec![],
        vec![ExcludeRule::keep("b"), ExcludeRule::hide("/c")],
    ])
    .unwrap();
    assert_eq!(exclude.layers().len(), 2);
    let again = Exclude::from_layers(exclude.layers().to_vec()).unwrap();
    assert_eq!(again, exclude);
    assert_ne!(again, Exclude::none());
    assert!(format!("{exclude:?}").contains("Keep"));
    assert_eq!(
        Exclude::hide(["ok", "a/"]),
        Err(GlobError::TrailingSlash(crate::path::Quoted::new("a/"),))
    );
}

#[test]
fn prunes_only_where_nothing_can_be_kept() {
    let exclude = Exclude::from_layers(vec![vec![
        ExcludeRule::keep("/project/**"),
        ExcludeRule::keep("/project"),
        ExcludeRule::hide("/**"),
    ]])
    .unwrap();
    let prunes = |text: &str| exclude.prunes(&exclude.state_for(&path(text)), &path(text));
    assert!(prunes("/etc") && prunes("/etc/x"));
    assert!(!prunes("/") && !prunes("/project") && !prunes("/project/a"));

    let anywhere = Exclude::from_layers(vec![vec![
        ExcludeRule::keep("*.md"),
        ExcludeRule::hide("/docs"),
    ]])
    .unwrap();
    let docs = anywhere.state_for(&path("/docs"));
    assert!(docs.is_hidden() && !anywhere.prunes(&docs, &path("/docs")));
    let both = anywhere.and(&Exclude::hide(["docs"]).unwrap());
    assert!(both.prunes(&both.state_for(&path("/docs")), &path("/docs")));
}

#[test]
fn prunes_what_an_earlier_rule_hides_whole() {
    let exclude = Exclude::from_layers(vec![vec![
        ExcludeRule::keep("/a/secrets/public/*"),
        ExcludeRule::hide("secrets"),
        ExcludeRule::hide("**/secrets/**"),
        ExcludeRule::keep("/**"),
    ]])
    .unwrap();
    let prunes = |text: &str| exclude.prunes(&exclude.state_for(&path(text)), &path(text));
    assert!(prunes("/b/secrets") && prunes("/a/secrets/private"));
    assert!(!prunes("/a/secrets") && !prunes("/a/secrets/public") && !prunes("/a"));
}

#[test]
fn states_are_shared_where_nothing_changes() {
    let exclude = Exclude::hide(["/a"]).unwrap();
    let hidden = exclude.state_for(&path("/a"));
    let beneath = exclude.enter(&hidden, &path("/a/b"));
    let (Some(one), Some(two)) = (&hidden.layers, &beneath.layers) else {
        panic!("both are hidden");
    };
    assert!(Arc::ptr_eq(one, two));
}

fn rules() -> impl Strategy<Value = Vec<ExcludeRule>> {
    let pattern = prop::sample::select(vec![
        "a", "b", "/a", "/a/b", "/a/**", "a/*/c", "**/b/c", "*", "{a,b}c", "/**",
    ]);
    let action = prop::sample::select(vec![ExcludeAction::Hide, ExcludeAction::Keep]);
    let rule = (pattern, action).prop_map(|(pattern, action)| ExcludeRule::new(pattern, action));
    prop::collection::vec(rule, 0..4)
}

/// A literal implementation of the definition.
fn hides_by_definition(layers: &[Vec<ExcludeRule>], path: &VPath) -> bool {
    layers.iter().any(|layer| layer_hides(layer, path))
}

fn layer_hides(layer: &[ExcludeRule], path: &VPath) -> bool {
    let Some(parent) = path.parent() else {
        return false;
    };
    let first = layer.iter().find(|rule| {
        Glob::new(&rule.pattern)
            .unwrap()
            .matches(&VPath::root(), path)
    });
    match first {
        Some(rule) => rule.action == ExcludeAction::Hide,
        None => layer_hides(layer, &parent),
    }
}

proptest! {
    #[test]
    fn follows_the_definition(
        layers in prop::collection::vec(rules(), 0..3),
        texts in prop::collection::vec("(/[abc]{1,2}){1,4}", 16),
    ) {
        let exclude = Exclude::from_layers(layers.clone()).unwrap();
        let glob = |rule: &ExcludeRule| (Glob::new(&rule.pattern).unwrap(), rule.action);
        let globs = layers.iter().map(|layer| layer.iter().map(glob).collect());
        let compiled = Exclude::from_globs(globs.collect());
        prop_assert_eq!(&compiled, &exclude);
        for text in &texts {
            let path = path(text);
            let expected = hides_by_definition(&layers, &path);
            prop_assert_eq!(exclude.hides(&path), expected, "{}", text);
            prop_assert_eq!(exclude.state_for(&path).is_hidden(), expected, "{}", text);
            prop_assert_eq!(compiled.hides(&path), expected, "{}", text);
            for above in path.ancestors() {
                let state = exclude.state_for(&above);
                prop_assert!(expected || !exclude.prunes(&state, &above), "{} in {}", text, above);
            }
        }
    }
}
