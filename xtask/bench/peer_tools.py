"""Times the console tools of pydantic-ai-backend for `cargo xtask bench`.

A call is what an agent of pydantic-ai makes of one that its model asked for: the
arguments are validated from JSON, and the toolset is called. No model takes part.

Workloads, which crates/console-tools/benches/dispatch.rs repeats:

- The files are in memory, under the 20 rules of `peer_permissions.py` for reading
  and for editing, of which none matches.
- The directory has a file of 1 KiB, one of 2,000 lines of 50 bytes, and 18 others.
- `tools_read` and `tools_read_2000` read these two, `tools_ls` lists them,
  `tools_edit` replaces text in line 1,001 of the large one, and back again.
- `tools_definitions` makes a toolset and lists its tools; `tools_definitions_again`
  lists those of one that is there.
- What a call adds to a read, and what a terminal would show, have no peer.
"""

import asyncio
import itertools
import json
import sys

import timing
from peer_permissions import pattern
from pydantic_ai import RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage
from pydantic_ai_backends import StateBackend, create_console_toolset
from pydantic_ai_backends.permissions.types import (
    OperationPermissions,
    PermissionRule,
    PermissionRuleset,
)

DIRECTORY = "/home/user/project/src/module"
SMALL = f"{DIRECTORY}/small.rs"
LARGE = f"{DIRECTORY}/large.rs"
CONTEXT = RunContext(deps=None, model=TestModel(), usage=RunUsage())


def ruleset():
    rules = [PermissionRule(pattern=pattern(i), action="deny") for i in range(20)]
    section = OperationPermissions(default="allow", rules=rules)
    return PermissionRuleset(default="allow", read=section, edit=section)


def files():
    backend = StateBackend()
    backend.write(SMALL, ("x" * 63 + "\n") * 16)
    lines = (f"let value_{line} = compute();".ljust(49) + "\n" for line in range(2_000))
    backend.write(LARGE, "".join(lines))
    for number in range(18):
        backend.write(f"{DIRECTORY}/f{number:02}.rs", "x\n")
    return backend


def toolset():
    return create_console_toolset(backend=files(), permissions=ruleset())


async def calls(name):
    """A function that calls one tool with JSON."""
    tools = toolset()
    tool = (await tools.get_tools(CONTEXT))[name]

    async def call(arguments):
        arguments = tool.args_validator.validate_json(arguments)
        return await tools.call_tool(name, arguments, CONTEXT, tool)

    return call


async def call_of(name, expected, **arguments):
    """The same call again and again, tried once: a wrong answer is not worth timing."""
    call, arguments = await calls(name), json.dumps(arguments)
    answer = await call(arguments)
    # After a whole page comes a note on the lines that are left.
    assert answer.count("\n") >= expected, answer[-200:]
    return lambda: call(arguments)


async def edits():
    call = await calls("edit_file")

    def edit(old, new):
        old, new = f"{old}_1000 = compute();", f"{new}_1000 = compute();"
        return json.dumps({"path": LARGE, "old_string": old, "new_string": new})

    # Each edit undoes the one before.
    arguments = itertools.cycle([edit("value", "other"), edit("other", "value")])
    answer = await call(next(arguments))
    assert answer.startswith("Edited"), answer
    return lambda: call(next(arguments))


async def definitions():
    backend, rules = files(), ruleset()

    async def build():
        tools = create_console_toolset(backend=backend, permissions=rules)
        return await tools.get_tools(CONTEXT)

    assert "grep" in await build()
    return build


async def definitions_again():
    tools = toolset()
    return lambda: tools.get_tools(CONTEXT)


WORKLOADS = {
    "tools_read": lambda: call_of("read_file", 16, path=SMALL),
    "tools_read_2000": lambda: call_of("read_file", 2_000, path=LARGE),
    "tools_ls": lambda: call_of("ls", 20, path=DIRECTORY),
    "tools_edit": edits,
    "tools_definitions": definitions,
    "tools_definitions_again": definitions_again,
}


async def main():
    wanted = sys.argv[1:] or WORKLOADS
    medians = {row: await timing.measure_async(await WORKLOADS[row]()) for row in wanted}
    print(json.dumps(medians))


if __name__ == "__main__":
    asyncio.run(main())
