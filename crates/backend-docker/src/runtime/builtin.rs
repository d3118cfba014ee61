//! The built-in runtimes. Their names are part of the public interface and do not
//! change.

use super::{PackageManager, Runtime};

// Versions with long-term support that has not ended, else the major version, which
// moves by itself: Python 3.12 is supported until October 2028, Node 24 until April
// 2028.
const PYTHON: &str = "python:3.12-slim";
const NODE: &str = "node:24-slim";

/// Everyday tools for work on code. Debian installs `fd` as `fdfind`.
const CODING_TOOLS: &str = "apt-get update && apt-get install -y --no-install-recommends \
    git curl ca-certificates ripgrep fd-find jq less procps \
    && ln -s /usr/bin/fdfind /usr/local/bin/fd && rm -rf /var/lib/apt/lists/*";

/// Node next to Python. It is Debian's package, which Debian supports longer than
/// Node's makers do.
const NODE_TOOLS: &str = "apt-get update && apt-get install -y --no-install-recommends \
    curl ca-certificates git nodejs npm && rm -rf /var/lib/apt/lists/*";

/// Debian's npm is older than what current packages expect.
const CURRENT_NPM: &str = "npm install -g npm@10 && npm cache clean --force";

/// The image that a built-in runtime starts from.
enum ImageSource {
    Image(&'static str),
    Base(&'static str),
}
use ImageSource::{Base, Image};

struct Builtin {
    name: &'static str,
    description: &'static str,
    start: ImageSource,
    packages: &'static [(PackageManager, &'static [&'static str])],
    setup: &'static [&'static str],
    work_dir: &'static str,
}

/// A Python runtime with a list of packages.
const fn python(
    name: &'static str,
    description: &'static str,
    packages: &'static [(PackageManager, &'static [&'static str])],
) -> Builtin {
    Builtin {
        name,
        description,
        start: Base(PYTHON),
        packages,
        setup: &[],
        work_dir: "/workspace",
    }
}

/// A Node runtime with a list of packages.
const fn node(
    name: &'static str,
    description: &'static str,
    packages: &'static [(PackageManager, &'static [&'static str])],
) -> Builtin {
    Builtin {
        name,
        description,
        start: Base(NODE),
        packages,
        setup: &[],
        work_dir: "/app",
    }
}

/// A runtime that uses an image as it is.
const fn plain(
    name: &'static str,
    description: &'static str,
    image: &'static str,
    work_dir: &'static str,
) -> Builtin {
    Builtin {
        name,
        description,
        start: Image(image),
        packages: &[],
        setup: &[],
        work_dir,
    }
}

/// Sorted by name.
const BUILTINS: [Builtin; 15] = [
    plain("bun", "Bun", "oven/bun:1-slim", "/app"),
    Builtin {
        name: "coding",
        description: "Python, uv, git and the usual search tools",
        start: Base(PYTHON),
        // uv comes from PyPI, so no installer is piped into a shell.
        packages: &[(PackageManager::Pip, &["uv"])],
        setup: &[CODING_TOOLS],
        work_dir: "/workspace",
    },
    plain("deno", "Deno", "denoland/deno:alpine", "/app"),
    plain("go", "Go", "golang:1-alpine", "/src"),
    plain("node-minimal", "Node", NODE, "/app"),
    node(
        "node-react",
        "Node with React, Vite and TypeScript",
        &[(
            PackageManager::Npm,
            &["typescript", "vite", "react", "react-dom", "@types/react"],
        )],
    ),
    node(
        "node-typescript",
        "Node with TypeScript, tsx and Vitest",
        &[(PackageManager::Npm, &["typescript", "tsx", "vitest"])],
    ),
    Builtin {
        name: "polyglot",
        description: "Python with data tools, and Node",
        start: Base(PYTHON),
        packages: &[(PackageManager::Pip, &["numpy", "duckdb", "polars", "httpx"])],
        setup: &[NODE_TOOLS, CURRENT_NPM],
        work_dir: "/workspace",
    },
    python(
        "python-analytics",
        "Python with DuckDB, Polars and Arrow",
        &[(PackageManager::Pip, &["duckdb", "polars", "pyarrow"])],
    ),
    python(
        "python-datascience",
        "Python with pandas, NumPy, Matplotlib, scikit-learn and seaborn",
        &[(
            PackageManager::Pip,
            &["pandas", "numpy", "matplotlib", "scikit-learn", "seaborn"],
        )],
    ),
    python(
        "python-documents",
        "Python for PDF, Word, Excel and images",
        &[(
            PackageManager::Pip,
            &["pypdf", "python-docx", "openpyxl", "pillow"],
        )],
    ),
    plain("python-minimal", "Python", PYTHON, "/workspace"),
    python(
        "python-scraping",
        "Python with HTTPX, Beautiful Soup, lxml and markdownify",
        &[(
            PackageManager::Pip,
            &["httpx", "beautifulsoup4", "lxml", "markdownify"],
        )],
    ),
    python(
        "python-web",
        "Python with FastAPI, Uvicorn, SQLAlchemy and HTTPX",
        &[(
            PackageManager::Pip,
            &["fastapi", "uvicorn", "sqlalchemy", "httpx"],
        )],
    ),
    plain("rust", "Rust", "rust:1-slim", "/src"),
];

/// Returns the names, sorted.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    BUILTINS.iter().map(|builtin| builtin.name)
}

/// Returns the runtime of this name.
pub(super) fn get(name: &str) -> Option<Runtime> {
    let found = BUILTINS.iter().find(|builtin| builtin.name == name)?;
    let mut runtime = match found.start {
        Image(image) => Runtime::from_image(found.name, image),
        Base(base) => Runtime::on_base(found.name, base),
    }
    .with_description(found.description)
    .with_work_dir(found.work_dir);
    for (manager, packages) in found.packages {
        runtime = runtime.with_packages(*manager, packages.iter().copied());
    }
    runtime.setup_commands = found.setup.iter().map(|&it| it.to_owned()).collect();
    Some(runtime)
}
