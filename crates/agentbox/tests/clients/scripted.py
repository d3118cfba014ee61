"""The calls of a scripted model, and checks of the results it is shown.

`conversation` yields calls and is sent each result as the model was shown it by the
framework between it and the server. `servers` are the servers it runs against.
"""

import base64
import dataclasses
import json
import pathlib
import re
import tempfile

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SOURCE = "def add(a, b):\n    return a - b\n"


@dataclasses.dataclass
class Seen:
    """A result as a model was shown it."""

    text: str
    pictures: list


def servers(agentbox):
    """Command lines of servers that hold an image, and whether they run commands."""
    for structured in ([], ["--structured"]):
        with tempfile.TemporaryDirectory() as directory:
            pathlib.Path(directory, "pixel.png").write_bytes(PIXEL)
            yield command(agentbox, f"local:{directory}", structured), True
        with tempfile.TemporaryDirectory() as directory:
            picture = {"content": base64.b64encode(PIXEL).decode(), "encoding": "base64"}
            files = {"format": "agentbox-state", "version": 1, "files": {"/pixel.png": picture}}
            document = pathlib.Path(directory, "files.json")
            document.write_text(json.dumps(files))
            yield command(agentbox, f"state:{document}", structured), False


def command(agentbox, backend, flags):
    own = ["--edit-format", "hashline", "--permissions", "permissive"]
    return [agentbox, "mcp", "--backend", backend, *own, *flags]


def conversation(commands):
    """Yields (tool, arguments), and is sent the result as it was shown."""
    seen = yield "write_file", {"path": "add.py", "content": SOURCE}
    assert "add.py" in seen.text, seen

    # Lines, and the hashes that an edit needs.
    seen = yield "read_file", {"path": "add.py"}
    line = re.search(r"2:(\w+)\|    return a - b", seen.text)
    assert line and "def add(a, b):" in seen.text, seen

    # Two failures in a row, of a tool that then succeeds.
    for path in ("addd.py", "sub.py"):
        seen = yield "read_file", {"path": path}
        assert "Error: " in seen.text and path in seen.text, seen
    edit = {"path": "add.py", "start_line": 2, "new_content": "    return a + b"}
    for wrong in ("zz", "00"):
        seen = yield "hashline_edit", {**edit, "start_hash": wrong}
        assert "Error: " in seen.text, seen
    seen = yield "hashline_edit", {**edit, "start_hash": line[1]}
    assert "Error" not in seen.text and "add.py" in seen.text, seen
    # Two refusals.
    for _ in range(2):
        seen = yield "write_file", {"path": ".env", "content": "KEY=1"}
        assert "Permission denied" in seen.text, seen

    seen = yield "grep", {"pattern": "return", "output_mode": "content"}
    assert "return a + b" in seen.text and "add.py" in seen.text, seen
    seen = yield "ls", {}
    assert "add.py" in seen.text and "pixel.png" in seen.text, seen

    seen = yield "read_file", {"path": "pixel.png"}
    assert seen.pictures == [("image/png", PIXEL)], seen
    if commands:
        seen = yield "execute", {"command": "cat add.py; exit 3"}
        assert "return a + b" in seen.text and "3" in seen.text, seen
