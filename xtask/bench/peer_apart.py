"""The rows that are measured after ours: files in memory, rules, line hashes and tools."""

import asyncio
import functools
import itertools
import json
import tempfile
from pathlib import Path

import timing
from pydantic_ai import RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage
from pydantic_ai_backends import LocalBackend, StateBackend, create_console_toolset, hashline
from pydantic_ai_backends.backends._guard import PermissionGuard
from pydantic_ai_backends.permissions import checker, presets, types

KIB = ("x" * 63 + "\n") * 16
NOW = "2026-01-01T00:00:00+00:00"
WINDOW = {"offset": 1_000_000, "limit": 50}
# Removed at the end.
DISK = tempfile.TemporaryDirectory()


def checked(call, check):
    """The call, tried once: a time for a wrong answer is worth nothing."""
    answer = call()
    assert check(answer), str(answer)[:200]
    return call, 1


# Files.


def stored(lines):
    return {"content": lines, "created_at": NOW, "modified_at": NOW}


def store(n_dirs, content):
    """A backend over `n_dirs` directories; `content` makes the lines of a file."""
    files = {}
    for d in range(n_dirs):
        for f in range(200):
            extension = "txt" if f % 2 else "py"
            files[f"/d{d:04}/f{f:03}.{extension}"] = stored(content(d, f))
    return StateBackend(files=files)


def small():
    return store(100, lambda d, f: [f"value_{line:02} = compute({d}, {f})" for line in range(20)])


def large():
    # All files share one list: a million of them would not fit into memory.
    line = ["value = 1"]
    return store(5_000, lambda _d, _f: line)


def big_lines():
    return [*(f"{number:08} ".ljust(49, "x") for number in range(2_000_000)), ""]


def in_memory():
    return StateBackend(files={"/big.txt": stored(big_lines())})


def on_disk():
    Path(DISK.name, "big.txt").write_text("\n".join(big_lines()))
    return LocalBackend(root_dir=DISK.name)


STORE = {}


def built(build):
    """A store, which is built once and dropped before the next is built."""
    if build not in STORE:
        STORE.clear()
        STORE[build] = build()
    return STORE[build]


def on(build, check, call):
    return lambda: checked(functools.partial(call, built(build)), check)


def succeeded(result):
    return result.error is None


def count(n_results):
    return lambda found: len(found) == n_results


# Rules.

PATH = "/home/user/project/src/module/file_name.rs"
COMMAND = "cargo test --all 2>&1 | tail -50 > /tmp/out.txt"
PATTERNS = ["/data/d{}/**", "**/name{}", "**/*.ext{}", "/srv/lit{}/file.txt", "**/*word{}*"]


def section(n_rules):
    patterns = [PATTERNS[i % 5].format(i) for i in range(n_rules)]
    rules = [types.PermissionRule(pattern=pattern, action="deny") for pattern in patterns]
    return types.OperationPermissions(default="allow", rules=rules)


def rules(n_rules):
    ruleset = types.PermissionRuleset(default="ask", read=section(n_rules))
    check = checker.PermissionChecker(ruleset).check_sync
    return checked(lambda: check("read", PATH), lambda answer: answer == "allow")


def command():
    guard = PermissionGuard(presets.PERMISSIVE_RULESET, Path("/"))
    return checked(lambda: guard.execute_denial_reason(COMMAND), lambda reason: reason is None)


# Line hashes.


def sources():
    crates = Path(__file__).resolve().parents[2] / "crates"
    files = sorted(crates.glob("*/src/**/*.rs"), key=str)
    return "".join(file.read_text(encoding="utf-8") for file in files)


def render():
    text = sources()
    return lambda: hashline.format_hashline_output(text, 0, len(text)), 1


def replace():
    lines = sources().split("\n")[:2_000]
    text, tag = "\n".join(lines), hashline.line_hash(lines[999])
    edit = functools.partial(hashline.apply_hashline_edit, text, 1_000, tag, "replaced")
    return checked(edit, lambda edited: edited[1] is None)


# Tools. A call is what an agent makes of one that its model asked for: the arguments are
# validated from JSON, and the toolset is called. No model takes part.

DIRECTORY = "/home/user/project/src/module"
SMALL, LARGE = f"{DIRECTORY}/small.rs", f"{DIRECTORY}/large.rs"
CONTEXT = RunContext(deps=None, model=TestModel(), usage=RunUsage())
LOOP = asyncio.new_event_loop()
# So many calls are awaited at a time: to enter the event loop is not what is measured.
BATCH = 100


def toolset():
    backend = StateBackend()
    backend.write(SMALL, KIB)
    lines = (f"let value_{line} = compute();".ljust(49) + "\n" for line in range(2_000))
    backend.write(LARGE, "".join(lines))
    for number in range(18):
        backend.write(f"{DIRECTORY}/f{number:02}.rs", "x\n")
    rules = types.PermissionRuleset(default="allow", read=section(20), edit=section(20))
    return functools.partial(create_console_toolset, backend=backend, permissions=rules)


def batch(call, check):
    async def calls():
        for _ in range(BATCH):
            await call()

    checked(lambda: LOOP.run_until_complete(call()), check)
    return lambda: LOOP.run_until_complete(calls()), BATCH


def tool(name, check, *arguments):
    """Calls one tool with the JSON of each of `arguments` in turn."""
    tools = toolset()()
    found = LOOP.run_until_complete(tools.get_tools(CONTEXT))[name]
    texts = itertools.cycle([json.dumps(each) for each in arguments])

    def call():
        parsed = found.args_validator.validate_json(next(texts))
        return tools.call_tool(name, parsed, CONTEXT, found)

    return batch(call, check)


def lines(least):
    # After a whole page comes a note on the lines that are left.
    return lambda text: text.count("\n") >= least


def edits():
    words = ["value_1000 = compute();", "other_1000 = compute();"]
    # Each edit undoes the one before.
    there, back = (
        {"path": LARGE, "old_string": old, "new_string": new} for old, new in [words, words[::-1]]
    )
    return tool("edit_file", lambda text: text.startswith("Edited"), there, back)


def definitions(build):
    return batch(lambda: build().get_tools(CONTEXT), lambda tools: "grep" in tools)


WORKLOADS = {
    "state_ls_20k": on(small, count(200), lambda store: store.ls_info("/d0050")),
    "state_glob_20k": on(small, count(10_000), lambda store: store.glob_info("**/*.py", "/")),
    "state_grep_20k": on(small, count(400_000), lambda store: store.grep_raw("value", "/")),
    # It changes a file that the search counts.
    "state_write": on(small, succeeded, lambda store: store.write("/d0050/f100.py", KIB)),
    "state_ls_1m": on(large, count(200), lambda store: store.ls_info("/d0050")),
    "state_snapshot_1m": on(large, count(1_000_000), lambda store: dict(store.files)),
    "state_window_100mb": on(in_memory, lines(51), lambda store: store.read("/big.txt", **WINDOW)),
    "text_window_100mb": on(on_disk, lines(51), lambda store: store.read("big.txt", **WINDOW)),
    "permissions_rules_20": lambda: rules(20),
    "permissions_rules_200": lambda: rules(200),
    "permissions_command": command,
    "hashline_render": render,
    "hashline_edit": replace,
    "tools_read": lambda: tool("read_file", lines(16), {"path": SMALL}),
    "tools_read_2000": lambda: tool("read_file", lines(2_000), {"path": LARGE}),
    "tools_ls": lambda: tool("ls", lines(20), {"path": DIRECTORY}),
    "tools_edit": edits,
    "tools_definitions": lambda: definitions(toolset()),
    "tools_definitions_again": lambda: definitions(lambda made=toolset()(): made),
}

if __name__ == "__main__":
    timing.main(WORKLOADS)
