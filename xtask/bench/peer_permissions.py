"""Times the permission checks of pydantic-ai-backend for `cargo xtask bench`.

Workloads, which crates/permissions/benches/permissions.rs repeats:

- Rule number i, counted from 0, denies by i modulo 5: `/data/d{i}/**`,
  `**/name{i}`, `**/*.ext{i}`, `/srv/lit{i}/file.txt`, `**/*word{i}*`. The path
  `/home/user/project/src/module/file_name.rs` matches none of them, so that
  every rule counts, and reading it is allowed by default.
- The command line is `cargo test --all 2>&1 | tail -50 > /tmp/out.txt` under the
  permissive preset. The peer matches its patterns against the whole line and
  looks for denied paths among its words; ours is parsed.
- What a guard adds to a read has no peer: the difference between a guarded
  backend and the same one without a guard.
"""

from pathlib import Path

import timing
from pydantic_ai_backends.backends._guard import PermissionGuard
from pydantic_ai_backends.permissions.checker import PermissionChecker
from pydantic_ai_backends.permissions.presets import PERMISSIVE_RULESET
from pydantic_ai_backends.permissions.types import (
    OperationPermissions,
    PermissionRule,
    PermissionRuleset,
)

PATH = "/home/user/project/src/module/file_name.rs"
COMMAND = "cargo test --all 2>&1 | tail -50 > /tmp/out.txt"


def pattern(i):
    return [
        f"/data/d{i}/**",
        f"**/name{i}",
        f"**/*.ext{i}",
        f"/srv/lit{i}/file.txt",
        f"**/*word{i}*",
    ][i % 5]


def checker(n_rules):
    rules = [PermissionRule(pattern=pattern(i), action="deny") for i in range(n_rules)]
    read = OperationPermissions(default="allow", rules=rules)
    return PermissionChecker(PermissionRuleset(default="ask", read=read))


def rules(n_rules):
    check = checker(n_rules).check_sync
    assert check("read", PATH) == "allow"
    return lambda: check("read", PATH)


def command():
    guard = PermissionGuard(PERMISSIVE_RULESET, Path("/"))
    assert guard.execute_denial_reason(COMMAND) is None
    return lambda: guard.execute_denial_reason(COMMAND)


WORKLOADS = {
    "permissions_rules_20": lambda: rules(20),
    "permissions_rules_200": lambda: rules(200),
    "permissions_command": command,
}

if __name__ == "__main__":
    timing.main(WORKLOADS)
