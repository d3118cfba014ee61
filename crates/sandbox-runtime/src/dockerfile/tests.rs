//! The exact text for every built-in runtime, and a parser that must find exactly the
//! intended instructions in any generated file.

use proptest::prelude::*;

use super::*;
use crate::registry::Runtimes;

const CLASSIC: Style = Style {
    cache_mounts: false,
    tools: false,
};
const BUILDKIT: Style = Style {
    cache_mounts: true,
    tools: false,
};

fn text(runtime: &Runtime, style: Style) -> String {
    runtime.dockerfile(style).unwrap().unwrap()
}

/// `FROM`, the packages in BuildKit's form, and the work directory.
fn python(name: &str, packages: &str) -> String {
    format!(
        "FROM python:3.12-slim\n\
         LABEL agentbox.runtime=\"{name}\"\n\
         RUN --mount=type=cache,id=agentbox-pip,target=/root/.cache/pip,sharing=locked \
         [\"env\", \"PIP_BREAK_SYSTEM_PACKAGES=1\", \"PIP_DISABLE_PIP_VERSION_CHECK=1\", \
         \"PIP_ROOT_USER_ACTION=ignore\", \"pip\", \"install\", \"--\", {packages}]\n\
         WORKDIR /workspace\n"
    )
}

fn node(name: &str, packages: &str) -> String {
    format!(
        "FROM node:24-slim\n\
         LABEL agentbox.runtime=\"{name}\"\n\
         WORKDIR /app\n\
         RUN --mount=type=cache,id=agentbox-npm,target=/root/.npm,sharing=locked \
         [\"/bin/sh\", \"-c\", \"npm install --no-audit --no-fund -- \\\"$@\\\"\", \"npm\", {packages}]\n\
         WORKDIR /app\n"
    )
}

#[test]
fn builtins_with_a_list_of_packages() {
    let write: [fn(&str, &str) -> String; 2] = [python, node];
    for (name, packages) in [
        ("python-analytics", "duckdb polars pyarrow"),
        (
            "python-datascience",
            "pandas numpy matplotlib scikit-learn seaborn",
        ),
        ("python-documents", "pypdf python-docx openpyxl pillow"),
        ("python-scraping", "httpx beautifulsoup4 lxml markdownify"),
        ("python-web", "fastapi uvicorn sqlalchemy httpx"),
        ("node-typescript", "typescript tsx vitest"),
        ("node-react", "typescript vite react react-dom @types/react"),
    ] {
        let runtime = Runtime::builtin(name).unwrap();
        let packages = format!("\"{}\"", packages.replace(' ', "\", \""));
        let expected = write[usize::from(name.starts_with("node"))](name, &packages);
        assert_eq!(text(&runtime, BUILDKIT), expected, "{name}");
    }
}

#[test]
fn builtins_with_setup_commands() {
    let coding = Runtime::builtin("coding").unwrap();
    assert_eq!(
        text(&coding, CLASSIC),
        r#"FROM python:3.12-slim
LABEL agentbox.runtime="coding"
RUN ["/bin/sh", "-c", "apt-get update && apt-get install -y --no-install-recommends git curl ca-certificates ripgrep fd-find jq less procps && ln -s /usr/bin/fdfind /usr/local/bin/fd && rm -rf /var/lib/apt/lists/*"]
RUN ["env", "PIP_BREAK_SYSTEM_PACKAGES=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_ROOT_USER_ACTION=ignore", "pip", "install", "--no-cache-dir", "--", "uv"]
WORKDIR /workspace
"#
    );
    let polyglot = Runtime::builtin("polyglot").unwrap();
    assert_eq!(
        text(&polyglot, CLASSIC),
        r#"FROM python:3.12-slim
LABEL agentbox.runtime="polyglot"
RUN ["/bin/sh", "-c", "apt-get update && apt-get install -y --no-install-recommends curl ca-certificates git nodejs npm && rm -rf /var/lib/apt/lists/*"]
RUN ["/bin/sh", "-c", "npm install -g npm@10 && npm cache clean --force"]
RUN ["env", "PIP_BREAK_SYSTEM_PACKAGES=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_ROOT_USER_ACTION=ignore", "pip", "install", "--no-cache-dir", "--", "numpy", "duckdb", "polars", "httpx"]
WORKDIR /workspace
"#
    );
}

#[test]
fn builtins_that_are_images_have_no_dockerfile() {
    let images: Vec<_> = Runtimes::new()
        .iter()
        .filter(|runtime| runtime.dockerfile(BUILDKIT).unwrap().is_none())
        .map(|runtime| (runtime.name, runtime.image.unwrap(), runtime.work_dir))
        .collect();
    let expected = [
        ("bun", "oven/bun:1-slim", "/app"),
        ("deno", "denoland/deno:alpine", "/app"),
        ("go", "golang:1-alpine", "/src"),
        ("node-minimal", "node:24-slim", "/app"),
        ("python-minimal", "python:3.12-slim", "/workspace"),
        ("rust", "rust:1-slim", "/src"),
    ]
    .map(|(name, image, dir)| (name.to_owned(), image.to_owned(), dir.to_owned()));
    assert_eq!(images, expected);
}

/// A runtime with all package managers, a user and variables.
fn everything() -> Runtime {
    Runtime::on_base("all", "registry.example/base:1")
        .with_setup_command("echo \"a b\" > /x")
        .with_package(PackageManager::Cargo, "just@^1.4")
        .with_package(PackageManager::Npm, "vite@>=5 <6")
        .with_package(PackageManager::Pip, "numpy>=1.26,<3")
        .with_package(PackageManager::Apt, "jq=1.6*")
        .with_env("A", r#"$HOME "q" \ 'x'"#)
        .with_work_dir("/srv/app")
        .with_run_as_uid(1000)
}

const USER_LINE: &str = r#"RUN ["/bin/sh", "-c", "set -e; cut -d: -f3 /etc/passwd 2>/dev/null | grep -qx \"$1\" || echo \"agent:x:$1:$1::/home/agent:/bin/sh\" >>/etc/passwd; cut -d: -f3 /etc/group 2>/dev/null | grep -qx \"$1\" || echo \"agent:x:$1:\" >>/etc/group; mkdir -p /home/agent \"$2\"; chown \"$1:$1\" /home/agent; chown $3 \"$1:$1\" \"$2\"; if python3 -c 'import venv, ensurepip' 2>/dev/null; then python3 -m venv --system-site-packages /opt/venv; elif python3 -c 'import venv' 2>/dev/null; then python3 -m venv --system-site-packages --without-pip /opt/venv; fi; if [ -d /opt/venv ]; then chown -R \"$1:$1\" /opt/venv; fi", "user", "1000", "/srv/app", "-R"]
"#;

const ENDING: &str = r#"ENV HOME="/home/agent"
ENV UV_SYSTEM_PYTHON="0"
ENV VIRTUAL_ENV="/opt/venv"
ENV PATH="/opt/venv/bin:$PATH"
ENV A="\$HOME \"q\" \\ 'x'"
WORKDIR /srv/app
USER 1000:1000
"#;

#[test]
fn everything_for_the_classic_builder() {
    let start = r#"FROM registry.example/base:1
LABEL agentbox.runtime="all"
RUN ["/bin/sh", "-c", "echo \"a b\" > /x"]
RUN ["/bin/sh", "-c", "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -- \"$@\" && apt-get clean && rm -rf /var/lib/apt/lists/*", "apt", "jq=1.6*"]
RUN ["env", "PIP_BREAK_SYSTEM_PACKAGES=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_ROOT_USER_ACTION=ignore", "pip", "install", "--no-cache-dir", "--", "numpy>=1.26,<3"]
WORKDIR /srv/app
RUN ["/bin/sh", "-c", "npm install --no-audit --no-fund -- \"$@\" && npm cache clean --force", "npm", "vite@>=5 <6"]
RUN ["/bin/sh", "-c", "cargo install --locked --root /usr/local -- \"$@\" && rm -rf \"${CARGO_HOME:-$HOME/.cargo}/registry\"", "cargo", "just@^1.4"]
"#;
    let expected = [start, USER_LINE, ENDING].concat();
    assert_eq!(text(&everything(), CLASSIC), expected);
}

#[test]
fn everything_for_buildkit_with_the_builds_own_files() {
    let tools = "--mount=type=bind,source=agentbox,target=/dev/agentbox";
    let written = text(
        &everything(),
        Style {
            cache_mounts: true,
            tools: true,
        },
    );
    let runs: Vec<_> = written
        .lines()
        .filter(|it| it.starts_with("RUN "))
        .collect();
    assert_eq!(runs.len(), 6);
    for run in &runs {
        assert!(run.starts_with(&format!("RUN {tools} ")), "{run}");
        assert!(run.contains(r#"["/dev/agentbox/run", ""#), "{run}");
    }
    let cache = |id: &str, target: &str| {
        format!("--mount=type=cache,id=agentbox-{id},target={target},sharing=locked ")
    };
    assert_eq!(
        runs[1],
        format!(
            "RUN {tools} {}{}{}",
            cache("apt", "/var/cache/apt"),
            cache("apt-lists", "/var/lib/apt/lists"),
            r#"["/dev/agentbox/run", "/bin/sh", "-c", "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -- \"$@\"", "apt", "jq=1.6*"]"#
        )
    );
    assert!(runs[4].contains(&cache("cargo", "/usr/local/cargo/registry")));
    assert!(!runs[5].contains("type=cache"));
    assert!(written.ends_with(ENDING));
}

#[test]
fn steps_are_counted_as_buildkit_does() {
    assert_eq!(buildkit_steps(&text(&everything(), BUILDKIT)), 9);
}

#[test]
fn nothing_is_fetched_to_be_run() {
    for runtime in Runtimes::new().iter() {
        for style in [CLASSIC, BUILDKIT] {
            let Some(text) = runtime.dockerfile(style).unwrap() else {
                continue;
            };
            assert!(text.starts_with("FROM "), "{text}");
            assert!(!text.contains('#'), "{text}");
            assert!(!text.contains("| sh") && !text.contains("| env"), "{text}");
            assert!(!text.contains("://"), "{text}");
        }
    }
}

#[test]
fn a_line_too_long_for_a_daemon_is_refused() {
    let mut runtime = Runtime::on_base("t", "python");
    let packages = (0..256).map(|n| format!("{}{n}", "x".repeat(300)));
    runtime.packages.pip = packages.collect();
    let error = runtime.dockerfile(CLASSIC).unwrap_err();
    assert!(
        error.to_string().contains("one instruction would take"),
        "{error}"
    );
}

/// Reads a Dockerfile as daemons do: lines joined by a backslash, comments and
/// directives, here-documents, flags, JSON or shell form, quoted words with escapes and
/// variables. Returns `None` for anything the generator does not write.
fn read_back(text: &str) -> Option<Vec<Instruction>> {
    let mut all = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.ends_with('\\') {
            return None;
        }
        let (keyword, rest) = line.split_once(char::is_whitespace)?;
        all.push(match keyword {
            "FROM" => Instruction::From(one_word(rest)?),
            "WORKDIR" => Instruction::WorkDir(one_word(rest)?),
            "USER" => {
                let (uid, gid) = rest.split_once(':')?;
                (uid == gid).then_some(())?;
                Instruction::User(uid.parse().ok()?)
            }
            "LABEL" => {
                let name = rest.strip_prefix("agentbox.runtime=\"")?;
                Instruction::Label(one_word(name.strip_suffix('"')?)?)
            }
            "ENV" => read_env(rest)?,
            "RUN" => read_run(rest)?,
            _ => return None,
        });
    }
    Some(all)
}

fn one_word(rest: &str) -> Option<String> {
    let odd = |c: char| c.is_whitespace() || "$\"'\\[]{}".contains(c);
    (!rest.contains(odd)).then(|| rest.to_owned())
}

fn read_env(rest: &str) -> Option<Instruction> {
    let (name, quoted) = rest.split_once('=')?;
    let mut value = String::new();
    let mut path = false;
    let mut chars = quoted.strip_prefix('"')?.chars();
    loop {
        match chars.next()? {
            '"' => break,
            '\\' => match chars.next()? {
                c @ ('"' | '$' | '\\') => value.push(c),
                other => value.extend(['\\', other]),
            },
            '$' => {
                path = chars.as_str() == "PATH\"";
                if !path {
                    return None;
                }
                value.push('$');
            }
            c => value.push(c),
        }
    }
    if chars.next().is_some() {
        return None;
    }
    Some(if path {
        Instruction::Path(value.strip_suffix(":$PATH")?.to_owned())
    } else {
        Instruction::Env {
            name: one_word(name)?,
            value,
        }
    })
}

fn read_run(mut rest: &str) -> Option<Instruction> {
    let mut mounts = Vec::new();
    while let Some(flag) = rest.strip_prefix("--") {
        let (flag, after) = flag.split_once(' ')?;
        mounts.push(flag.strip_prefix("mount=")?.to_owned());
        rest = after;
    }
    // Anything but a list of strings would be passed to a shell.
    let argv = serde_json::from_str(rest).ok()?;
    Some(Instruction::Run { mounts, argv })
}

/// Text that tries to break out: fragments of Dockerfiles and shells, and arbitrary
/// text.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = [
        "\n", "\r\n", "\\\n", "\\", "RUN x", "<<EOF", "\"", "'", "\"]", "]", "$", "${A}", "`",
        "$(x)", " ", "\0", "numpy", ">=1,<2", "@types/x", "/a", "python", ":1", "\u{2028}",
        "\u{feff}", "é", "\t", "&& x", "=",
    ];
    let long = ["\nRUN x\n", "# escape=`", "--mount=type=bind"];
    let piece = prop::sample::select([&pieces[..], &long].concat()).prop_map(str::to_owned);
    prop::collection::vec(prop_oneof![4 => piece, 1 => any::<String>()], 0..6)
        .prop_map(|pieces| pieces.concat())
}

/// A field value. It is often valid, so that the checks of other fields are reached.
fn field(good: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![3 => Just(good.to_owned()), 1 => hostile()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn a_file_has_just_the_instructions_that_were_meant(
        name in field("test"), base in field("python:3.12"), pip in field("numpy>=1,<2"),
        npm in field("@types/react@^18"), apt in field("jq=1.6*"), cargo in field("just@1"),
        setup in hostile(), variable in field("NAME"), value in hostile(),
        dir in field("/work"), uid in prop::option::of(any::<u32>()),
        style in (any::<bool>(), any::<bool>()),
    ) {
        let mut runtime = Runtime::on_base(name, base)
            .with_package(PackageManager::Pip, pip)
            .with_package(PackageManager::Npm, npm)
            .with_package(PackageManager::Apt, apt)
            .with_package(PackageManager::Cargo, cargo)
            .with_setup_command(setup)
            .with_env(variable, value)
            .with_work_dir(dir);
        runtime.run_as_uid = uid;
        let style = Style { cache_mounts: style.0, tools: style.1 };
        if let Ok(Some(text)) = runtime.dockerfile(style) {
            let meant = instructions(&runtime, style).unwrap().unwrap();
            prop_assert_eq!(text.lines().count(), meant.len());
            prop_assert_eq!(read_back(&text), Some(meant));
        }
    }
}
