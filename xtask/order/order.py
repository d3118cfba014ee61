"""Writes crates/agentbox/data/order.ld: which functions of the program the linker puts together.

    cargo rustc -p agentbox-cli --release --bin agentbox --config profile.release.strip=false
    python3 xtask/order/order.py target/release/agentbox

Runs a server in valgrind, which counts the functions that run until it has listed its
tools and answered a call of each kind. Their names, without the hashes that the compiler
adds, become patterns. Names with a common beginning become one pattern where that takes
few other functions along, so that the list stays short and most of it holds for another
version of the compiler and of the packages.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

# Bytes of functions that the patterns may take together.
BUDGET = 6_500_000
# What a pattern costs, in bytes of functions that need not be there.
PATTERN = 200

CALLS = [
    ("write_file", {"path": "a.txt", "content": "one\ntwo\n"}),
    ("read_file", {"path": "a.txt"}),
    ("edit_file", {"path": "a.txt", "old_string": "two", "new_string": "2"}),
    ("ls", {"path": "."}),
    ("glob", {"pattern": "*.txt"}),
    ("grep", {"pattern": "one"}),
]

HEAD = """\
/* Functions that run before a server answers, and in calls of its tools: they are put
   together, so that few pages of the program are in memory. Made by xtask/order/order.py.
   A name that is missing does no harm. */
SECTIONS
{
  .text.first :
  {
    *(.text._R*)
    *(.text.unlikely.*)
"""


def functions_that_run(program):
    with tempfile.TemporaryDirectory() as scratch:
        counts = Path(scratch) / "counts"
        files = Path(scratch) / "files"
        files.mkdir()
        valgrind = ["valgrind", "--quiet", "--tool=callgrind", "--demangle=no"]
        valgrind.append(f"--callgrind-out-file={counts}")
        server = [program, "mcp", "--backend", f"local:{files}"]
        process = subprocess.Popen(
            valgrind + server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

        def send(message):
            process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
            process.stdin.flush()

        def ask(method, params):
            send({"id": 1, "method": method, "params": params})
            while "id" not in (answer := json.loads(process.stdout.readline())):
                pass
            assert "result" in answer, answer

        client = {"name": "order", "version": "1"}
        version = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        ask("initialize", version)
        send({"method": "notifications/initialized"})
        ask("tools/list", {})
        for name, arguments in CALLS:
            ask("tools/call", {"name": name, "arguments": arguments})
        process.stdin.close()
        assert process.wait() == 0
        # A file for each thread and dump.
        text = "".join(path.read_text() for path in Path(scratch).glob("counts*"))
    return set(re.findall(r"^c?fn=\(\d+\) ([^'\n]+)", text, re.MULTILINE))


def parts(symbol):
    """Splits `_ZN4core3ptr5write17h0123456789abcdefE` into `4core`, `3ptr` and `5write`."""
    found, at = [], len("_ZN")
    while number := re.match(r"\d+", symbol[at:]):
        end = at + number.end() + int(number.group())
        found.append(symbol[at:end])
        at = end
    return tuple(part for part in found if not re.fullmatch(r"17h[0-9a-f]{16}", part))


def patterns(program):
    run = functions_that_run(program)
    size = defaultdict(int)  # of all functions whose name begins with these parts
    exact = defaultdict(int)  # of those whose name it is
    chosen = {}
    symbols = subprocess.run(["nm", "-S", "--defined-only", program], capture_output=True, text=True)
    for line in symbols.stdout.splitlines():
        fields = line.split()
        if len(fields) != 4 or fields[2] not in "tT" or not fields[3].startswith("_ZN"):
            continue
        name = parts(fields[3])
        for length in range(1, len(name) + 1):
            size[name[:length]] += int(fields[1], 16)
        exact[name] += int(fields[1], 16)
        if fields[3] in run:
            chosen[name, "17h*"] = 0
    for name, end in chosen:
        chosen[name, end] = exact[name]
    beneath = defaultdict(set)
    for name, end in chosen:
        for length in range(1, len(name) + 1):
            beneath[name[:length]].add((name, end))
    total = sum(chosen.values())
    while True:
        best = None
        for prefix, ones in beneath.items():
            added = size[prefix] - sum(chosen[one] for one in ones)
            if len(ones) < 2 or total + added > BUDGET:
                continue
            worth = (len(ones) - 1) / (added + PATTERN)
            best = max(best or (0, prefix, 0), (worth, prefix, added))
        if best is None:
            return ["_ZN" + "".join(name) + end for name, end in sorted(chosen)]
        _, prefix, added = best
        total += added
        for one in list(beneath[prefix]):
            del chosen[one]
            for length in range(1, len(one[0]) + 1):
                beneath[one[0][:length]].discard(one)
        chosen[prefix, "*"] = size[prefix]
        for length in range(1, len(prefix) + 1):
            beneath[prefix[:length]].add((prefix, "*"))


def main():
    lines = [f"    *(.text.{pattern})\n" for pattern in patterns(sys.argv[1])]
    tail = "  }\n}\nINSERT BEFORE .text;\n"
    path = Path(__file__).parents[2] / "crates/agentbox/data/order.ld"
    path.parent.mkdir(exist_ok=True)
    path.write_text(HEAD + "".join(lines) + tail)
    print(f"{len(lines)} patterns in {path}")


main()
