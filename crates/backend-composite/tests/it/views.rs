//! The paths that are kept from a command are those of the child that runs it.

use std::sync::Arc;

use backend_composite::{Composite, Route};
use backend_core::limits::GLOB_ALTERNATIVES;
use backend_core::ops::{Command, HardLinks, View};
use backend_core::search::{Exclude, ExcludeRule};
use backend_core::{Backend, Enforcement, ErrorKind, Sandbox as _};
use backend_state::StateBackend;
use backend_testkit::fake::{FakeSandbox, PausedClock};
use backend_testkit::{fails, path};

type Fake = FakeSandbox<StateBackend>;

fn fake(level: Enforcement) -> Fake {
    let fake = FakeSandbox::new("fake", StateBackend::new(), PausedClock::new());
    fake.enforcing(level, Some("the kernel is too old; use another"))
}

/// Routes a sandbox, with a store elsewhere.
fn routed(route: impl FnOnce(Arc<dyn Backend>) -> Route, fake: &Fake) -> Composite {
    let route = route(Arc::new(fake.clone()));
    let working_dir = route.prefix().clone();
    Composite::builder()
        .default_backend(Arc::new(StateBackend::new()))
        .route(route)
        .working_dir(working_dir)
        .build()
        .unwrap()
}

fn view() -> View {
    let layer = vec![
        ExcludeRule::keep("/work/vault/public/**"),
        ExcludeRule::hide("/work/vault/**"),
        ExcludeRule::hide("/other/**"),
        ExcludeRule::hide("**/*.pem"),
    ];
    let read = Exclude::from_layers(vec![layer]).unwrap();
    View::new(read, Exclude::hide(["/work/conf/rules.toml"]).unwrap())
        .required(Enforcement::View)
        .hard_links(HardLinks::Accept)
}

/// Checks which paths of the child are kept from the command that arrived.
fn assert_kept(fake: &Fake, base: &str) {
    let view = fake.commands().pop().unwrap().view;
    let at = |below: &str| path(&format!("{base}/{below}"));
    for (below, kept) in [
        ("vault/key", true),
        ("vault/public/a", false),
        ("src/a.pem", true),
        ("src/a", false),
        ("conf/rules.toml", false),
        // A directory that only the composite has.
        ("other/a", false),
    ] {
        assert_eq!(view.deny_read.hides(&at(below)), kept, "{base}: {below}");
    }
    assert!(view.deny_write.hides(&at("conf/rules.toml")), "{view:?}");
    assert!(!view.deny_write.hides(&at("conf/other")), "{view:?}");
    assert_eq!(view.required, Enforcement::View);
    assert_eq!(view.hard_links, HardLinks::Accept);
}

#[tokio::test]
async fn what_is_kept_from_a_command_is_told_in_the_childs_paths() {
    let prefix = || path("/work");
    let fake = fake(Enforcement::View);
    let command = || Command::new("true").view(view());
    let at_root = routed(|child| Route::new(prefix(), child), &fake);
    at_root.execute(command()).await.unwrap();
    assert_kept(&fake, "");
    at_root.shell_start(command()).await.unwrap();
    assert_kept(&fake, "");
    assert!(
        at_root.stream(command()).await.is_err(),
        "a fake streams nothing"
    );
    assert_kept(&fake, "");
    let whole = routed(|child| Route::new(prefix(), child).full_paths(), &fake);
    whole.execute(command()).await.unwrap();
    assert_kept(&fake, "/work");
    let below = |child| Route::new(prefix(), child).to_directory(path("/srv/a,b"));
    routed(below, &fake).execute(command()).await.unwrap();
    assert_kept(&fake, "/srv/a,b");
}

/// If the directory that a route shows is denied as a whole, so is all that it shows.
#[tokio::test]
async fn a_denied_route_denies_everything_in_it() {
    let fake = fake(Enforcement::View);
    let composite = routed(|child| Route::new(path("/work"), child), &fake);
    for (rules, kept) in [
        (vec![ExcludeRule::hide("/work")], true),
        (
            vec![ExcludeRule::keep("/work"), ExcludeRule::hide("/*")],
            false,
        ),
        (vec![ExcludeRule::hide("/*")], true),
    ] {
        let read = Exclude::from_layers(vec![rules]).unwrap();
        let command = Command::new("true").view(View::new(read, Exclude::none()));
        composite.execute(command).await.unwrap();
        let view = fake.commands().pop().unwrap().view;
        assert_eq!(view.deny_read.hides(&path("/a/b")), kept, "{view:?}");
    }
}

#[tokio::test]
async fn the_level_is_that_of_the_children_that_run_commands() {
    let strong = fake(Enforcement::View);
    let weak = fake(Enforcement::Words);
    let one = routed(|child| Route::new(path("/work"), child), &strong);
    assert_eq!(one.info().enforcement, Enforcement::View);
    let both = Composite::builder()
        .route(Route::new(path("/work"), Arc::new(strong.clone())))
        .route(Route::new(path("/weak"), Arc::new(weak.clone())))
        .working_dir(path("/work"))
        .build()
        .unwrap();
    // No command has less than what is said.
    let info = both.info();
    assert_eq!(info.enforcement, Enforcement::Words);
    let limit = info.enforcement_limit.unwrap();
    assert!(
        limit.contains("'/weak'") && limit.contains("too old"),
        "{limit}"
    );
    let command = || Command::new("true").view(view());
    both.execute(command()).await.unwrap();
    let there = command().directory(path("/weak"));
    let error = fails(ErrorKind::PermissionDenied, both.execute(there).await);
    assert!(error.message().contains("'words'"), "{error}");
    assert!(weak.commands().is_empty());
    let files = Composite::builder()
        .default_backend(Arc::new(StateBackend::new()))
        .build()
        .unwrap();
    assert_eq!(files.info().enforcement, Enforcement::Words);
}

/// Rules that cannot be written for the child are dropped only if it would not keep them.
#[tokio::test]
async fn what_cannot_be_translated_is_refused_where_it_would_be_kept() {
    // Beneath `/a` each name is meant in two ways, and so there are too many.
    let names: Vec<String> = (0..GLOB_ALTERNATIVES)
        .map(|name| name.to_string())
        .collect();
    let pattern = format!("/**/a/{{{}}}", names.join(","));
    let read = Exclude::hide([pattern]).unwrap();
    let command = || Command::new("true").view(View::new(read.clone(), Exclude::none()));
    for (level, runs) in [
        (Enforcement::View, false),
        (Enforcement::Landlock, true),
        (Enforcement::Words, true),
    ] {
        let fake = fake(level);
        let composite = routed(|child| Route::new(path("/a"), child), &fake);
        let ran = composite.execute(command()).await;
        assert_eq!(ran.is_ok(), runs, "{level}: {ran:?}");
        if runs {
            assert!(fake.commands().pop().unwrap().view.is_empty());
        } else {
            let error = fails(ErrorKind::PermissionDenied, ran);
            assert!(error.message().contains("use fewer"), "{error}");
        }
    }
}
