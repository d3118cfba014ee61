//! The client's roots: host directories that narrow access and never widen it.

use std::path::{Component, Path, PathBuf};

use backend_core::VPath;
use backend_mounts::{Derive, Mode, Mount, MountConfig, Scope};
use permissions::tool::{Tool, ToolSetting};
use permissions::{Action, Policy};

use crate::uri;

/// Maximum number of roots considered.
const MAX_ROOTS: usize = 256;

/// The tools that roots remove: a command cannot be confined to a part.
const REMOVED_TOOLS: [Tool; 3] = [Tool::Execute, Tool::RunInBackground, Tool::WriteInput];

/// The reply to a model that calls one of them.
pub(crate) const NO_COMMANDS: &str = "Error: Permission denied: the client's roots are a part of \
    the directory that this server was started on, and commands cannot be confined to a part; use \
    the file tools, or start the server on the client's directory";

/// Returns `true` if narrowing removes the tool of this name.
pub(crate) fn removes_tool(name: &str) -> bool {
    REMOVED_TOOLS.iter().any(|tool| tool.name() == name)
}

/// The part of a backend that the client's roots leave accessible.
#[derive(Debug)]
pub(crate) enum RootAccess {
    /// Everything.
    All,
    /// Only these directories and everything beneath them.
    Part(Vec<VPath>),
    /// Nothing. Holds the reply to the model.
    Nothing(String),
}

/// Returns the backend's path for `host_root`: the same path if the backend shows host
/// paths, `/` otherwise. `working_dir` is the backend's working directory.
pub(crate) fn top_of(working_dir: &VPath, host_root: &Path) -> VPath {
    match Path::new(working_dir.as_str()) {
        here if here == host_root || here == real(host_root) => working_dir.clone(),
        _ => VPath::root(),
    }
}

/// Computes the part that `roots` leave of a backend whose path `top` is the host
/// directory `host_root`. Accesses the host's file system.
pub(crate) fn root_access(roots: &[String], host_root: &Path, top: &VPath) -> RootAccess {
    // A client without an open folder restricts nothing.
    if roots.is_empty() {
        return RootAccess::All;
    }
    let host_root = real(host_root);
    let mut inside = Vec::new();
    for root in roots.iter().take(MAX_ROOTS) {
        let Some(path) = uri::path(root) else {
            tracing::warn!(
                root,
                "a root of the client is not a valid file: URI of this machine; ignored"
            );
            continue;
        };
        let path = real(Path::new(&path));
        if host_root.starts_with(&path) {
            return RootAccess::All;
        }
        let below = path.strip_prefix(&host_root).ok();
        match below.and_then(|below| within(top, below)) {
            Some(path) => inside.push(path),
            None => tracing::warn!(
                root,
                "a root of the client lies outside the backend; ignored"
            ),
        }
    }
    inside.sort_unstable();
    // A root beneath another root adds nothing.
    inside.dedup_by(|later, earlier| later.starts_with(earlier));
    if inside.is_empty() {
        return RootAccess::Nothing(
            "Error: Permission denied: none of the client's roots lies in the directory that \
             this server was started on, so nothing may be used; open that directory in the \
             client, or start the server on the client's directory"
                .to_owned(),
        );
    }
    RootAccess::Part(inside)
}

/// Resolves symbolic links in the part of the path that exists.
fn real(path: &Path) -> PathBuf {
    for top in path.ancestors() {
        if let Ok(found) = std::fs::canonicalize(top) {
            let rest = path.strip_prefix(top).unwrap_or(Path::new(""));
            return normalized(&found.join(rest));
        }
    }
    normalized(path)
}

/// Removes `.` and `..` from a path, without looking at the file system.
fn normalized(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normalized.pop();
            }
            Component::CurDir => {}
            part => normalized.push(part),
        }
    }
    normalized
}

fn within(top: &VPath, below: &Path) -> Option<VPath> {
    let mut names = below.components().map(|part| part.as_os_str().to_str());
    names.try_fold(top.clone(), |path, name| path.child(name?).ok())
}

/// Returns the policy narrowed to `roots`, without commands.
pub(crate) fn narrowed(policy: &Policy, roots: &[VPath]) -> Option<Policy> {
    let whole = match policy.layer::<Scope>() {
        Some(scope) => scope.clone(),
        None => {
            let everything = Mount::new("/", "/")
                .ok()?
                .mode(Mode::Rw)
                .write_approval(false);
            Scope::new(MountConfig::new(vec![everything]).build().ok()?)
        }
    };
    let names = |can: &dyn Fn(&VPath) -> bool| {
        let open = roots.iter().filter(|root| can(root));
        open.map(|root| root.as_str().to_owned())
            .collect::<Vec<_>>()
    };
    let derive = Derive::new()
        .read(names(&|root| whole.can_read(root)))
        .write(names(&|root| whole.can_write(root)))
        .span_nested();
    let scope = whole.derive(derive).ok()?;
    let mut tools = policy.tools().clone();
    for tool in REMOVED_TOOLS {
        let setting = tools.tools.entry(tool).or_default();
        *setting = ToolSetting::action(Action::Deny);
    }
    Some(policy.with_layer(scope).with_tools(tools))
}

#[cfg(test)]
mod tests {
    use permissions::{Kind, Op};

    use super::*;

    fn uris(paths: &[&Path]) -> Vec<String> {
        paths
            .iter()
            .map(|path| format!("file://{}", path.display()))
            .collect()
    }

    #[test]
    fn roots_are_mapped_and_never_widen() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::os::unix::fs::symlink(root.join("a"), root.join("link")).unwrap();
        let part = |roots: &[&Path]| match root_access(&uris(roots), root, &VPath::root()) {
            RootAccess::All => vec!["all".to_owned()],
            RootAccess::Part(paths) => paths.iter().map(|path| path.as_str().to_owned()).collect(),
            RootAccess::Nothing(_) => Vec::new(),
        };
        assert_eq!(part(&[]), ["all"]);
        assert_eq!(part(&[root]), ["all"]);
        assert_eq!(part(&[Path::new("/")]), ["all"]);
        assert_eq!(part(&[&root.join("a")]), ["/a"]);
        assert_eq!(part(&[&root.join("link")]), ["/a"]);
        assert_eq!(
            part(&[&root.join("a/b"), &root.join("a"), &root.join("c")]),
            ["/a", "/c"]
        );
        assert_eq!(part(&[&root.join("a/../c")]), ["/c"]);
        assert_eq!(part(&[&root.join("../elsewhere")]), [""; 0]);
        assert_eq!(part(&[Path::new("/nowhere"), &root.join("a")]), ["/a"]);
        let strange = ["https://example.com/".to_owned(), "nonsense".to_owned()];
        assert!(matches!(
            root_access(&strange, root, &VPath::root()),
            RootAccess::Nothing(_)
        ));
        let top = VPath::parse("/host/dir").unwrap();
        let RootAccess::Part(paths) = root_access(&uris(&[&root.join("a")]), root, &top) else {
            panic!("not a part");
        };
        assert_eq!(paths[0].as_str(), "/host/dir/a");
    }

    #[test]
    fn the_top_is_what_the_backend_calls_its_directory() {
        let directory = tempfile::tempdir().unwrap();
        let host = directory.path().canonicalize().unwrap();
        let shown = VPath::parse(host.to_str().unwrap()).unwrap();
        // The working directory of a backend that shows host paths is its host
        // directory.
        assert_eq!(top_of(&shown, directory.path()), shown);
        assert_eq!(top_of(&VPath::root(), directory.path()), VPath::root());
        assert_eq!(top_of(&VPath::root(), Path::new("/")), VPath::root());
    }

    #[test]
    fn narrowing_takes_away_and_asks_nobody() {
        let path = |text| VPath::parse(text).unwrap();
        let policy = narrowed(&Policy::allow_all(), &[path("/a")]).unwrap();
        let judge = |op, at| policy.judge(op, &path(at), Kind::File, None).action();
        for op in [Op::Read, Op::Write, Op::Edit, Op::Delete] {
            assert_eq!(judge(op, "/a/x"), Action::Allow, "{op}");
            assert_eq!(judge(op, "/b"), Action::Deny, "{op}");
            assert_eq!(judge(op, "/ab"), Action::Deny, "{op}");
        }
        assert_eq!(policy.tools().get("execute").action, Some(Action::Deny));
        // Operations that the policy denies stay denied.
        let rules = permissions::Preset::Readonly.ruleset();
        let readonly = Policy::builder().ruleset(&rules, &VPath::root()).build();
        let policy = narrowed(&readonly, &[path("/a")]).unwrap();
        let verdict = policy.judge(Op::Write, &path("/a/x"), Kind::File, None);
        assert_eq!(verdict.action(), Action::Deny);
    }
}
