"""Fills a directory with crates that cargo has unpacked, and prints its size:

    tree.py REGISTRY DIRECTORY MIN_SOURCES
"""

import shutil
import sys
from pathlib import Path

registry, tree = map(Path, sys.argv[1:3])
n_files = 0
for krate in sorted(registry.glob("*/*/"), key=lambda krate: krate.name):
    # The crate that reaches this number is the last one.
    if n_files < 20_000:
        copy = shutil.copytree(krate, tree / krate.name, symlinks=True)
        n_files += sum(path.is_file() for path in copy.rglob("*"))
(tree / "rare.rs").write_text("// agentbox_rare_literal\n" * 3)
files = [path for path in tree.rglob("*") if path.is_file()]
n_sources = sum(path.suffix == ".rs" for path in files)
assert n_sources >= int(sys.argv[3]), f"only {n_sources} Rust sources; run `cargo fetch`"
megabytes = sum(path.stat().st_size for path in files) // 1_000_000
print(f"Tree: {len(files)} files of crates from cargo's registry, ", end="")
print(f"{n_sources} of them Rust, {megabytes} MB")
