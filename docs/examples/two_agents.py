#!/usr/bin/env python3
"""Two coding agents that never heard of locks edit one function, and Provost keeps them apart.

Run it in a git repository with a running daemon, after `provost hook install claude` and `provost hook install codex`. The agents
stand in for Claude Code and Codex: each is a process of its own that runs the installed hooks before it writes, with the input that
its host would give them, and does what they say. They use nothing else of Provost.
"""

import json
import re
import subprocess
import sys
import time
import uuid
from pathlib import Path

FILE = Path("src/sums.py")
ADD, SUB = "    return a + b", "    return a - b"
WAIT_MAX_S = 30
SETTINGS = {"claude": ".claude/settings.local.json", "codex": ".codex/hooks.json"}


def hooks(host, event, tool):
    """The commands that the host's settings name for a tool."""
    settings = json.loads(Path(SETTINGS[host]).read_text())
    for group in settings["hooks"].get(event, []):
        if re.fullmatch(group.get("matcher", ".*"), tool):
            yield from (hook["command"] for hook in group["hooks"])


def call(host, session, old, new, file):
    """A tool call as the host tells its hooks about it."""
    told = {"session_id": session, "cwd": str(Path.cwd()), "hook_event_name": "PreToolUse"}
    told |= {"permission_mode": "default", "tool_use_id": uuid.uuid4().hex}
    if host == "claude":
        edit = {"file_path": str(file.resolve()), "old_string": old, "new_string": new, "replace_all": False}
        return told | {"tool_name": "Edit", "tool_input": edit}
    patch = f"*** Begin Patch\n*** Update File: {file}\n@@\n-{old}\n+{new}\n*** End Patch"
    return told | {"tool_name": "apply_patch", "tool_input": {"command": patch}}


def write(host, session, old, new, file=FILE):
    """Writes unless a hook says no; the reason of the no, which a model would read."""
    file = Path(file)
    told = call(host, session, old, new, file)
    for command in hooks(host, "PreToolUse", told["tool_name"]):
        said = subprocess.run(command, shell=True, input=json.dumps(told), text=True, capture_output=True)
        answer = json.loads(said.stdout or "{}").get("hookSpecificOutput", {})
        if said.returncode == 2 or answer.get("permissionDecision") == "deny":
            return answer.get("permissionDecisionReason") or said.stderr
    file.write_text(file.read_text().replace(old, new))
    return None


def be_agent(host, session):
    """The process of an agent: what it is to write comes line by line."""
    for line in sys.stdin:
        print(json.dumps(write(host, session, *json.loads(line))), flush=True)


class Agent:
    """An agent, as the one who gives it work sees it."""

    def __init__(self, host, session=None):
        self.host = host
        command = [sys.executable, __file__, host, session or str(uuid.uuid4())]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def writes(self, old, new, file=str(FILE)):
        """Has it replace a line; why it was stopped, or nothing."""
        self.process.stdin.write(json.dumps([old, new, file]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def leave(self):
        self.process.stdin.close()
        self.process.wait()


def tell(host, what, why):
    print(f"{host}: {what}: {'stopped' if why else 'written'}")
    for line in (why or "").splitlines():
        print(f"    | {line}")


def show():
    """Whether everything went as it should."""
    claude, codex = Agent("claude"), Agent("codex")
    first = claude.writes(ADD, "    return sum((a, b))")
    tell("claude", "changes add()", first)
    second = codex.writes("    return sum((a, b))", "    return b + a")
    tell("codex", "changes add(), too", second)
    beside = codex.writes(SUB, "    return -b + a")
    tell("codex", "changes sub() beside it", beside)
    if first or not second or beside:
        return False
    subprocess.run("git commit --quiet --message 'add by sum' -- src/sums.py", shell=True, check=True)
    print("claude: commits, and codex tries again until it may")
    until = time.monotonic() + WAIT_MAX_S
    while (again := codex.writes("    return sum((a, b))", "    return b + a")) and time.monotonic() < until:
        time.sleep(0.5)
    tell("codex", "changes add()", again)
    claude.leave()
    codex.leave()
    return again is None


if __name__ == "__main__":
    if len(sys.argv) > 1:
        be_agent(*sys.argv[1:])
    else:
        sys.exit(0 if show() else 1)
