"""Times the line hashes of pydantic-ai-backend for `cargo xtask bench`.

Workloads, which crates/hashline/benches/hashline.rs repeats:

- `hashline_render` renders every `crates/*/src/**/*.rs` of this workspace, in the
  order of their paths, joined to one text.
- `hashline_edit` replaces line 1,000 of the first 2,000 lines of that text.
"""

from pathlib import Path

import timing
from pydantic_ai_backends.hashline import (
    apply_hashline_edit,
    format_hashline_output,
    line_hash,
)

ROOT = Path(__file__).resolve().parents[2]


def sources():
    files = sorted(ROOT.glob("crates/*/src/**/*.rs"), key=str)
    return "".join(file.read_text(encoding="utf-8") for file in files)


def render():
    text = sources()
    return lambda: format_hashline_output(text, 0, len(text))


def edit():
    lines = sources().split("\n")[:2_000]
    text, tag = "\n".join(lines), line_hash(lines[999])
    assert apply_hashline_edit(text, 1_000, tag, "replaced")[1] is None
    return lambda: apply_hashline_edit(text, 1_000, tag, "replaced")


WORKLOADS = {"hashline_render": render, "hashline_edit": edit}

if __name__ == "__main__":
    timing.main(WORKLOADS)
