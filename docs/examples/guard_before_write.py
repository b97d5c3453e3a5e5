#!/usr/bin/env python3
"""Asks `provost guard` before a coding agent writes to a file, as a hook of that agent.

Made for agents that run a command before each use of a tool, with JSON on its standard input, and that take exit code 2
for a no, with the reason on standard error (Claude Code's PreToolUse hook is one):

    {"session_id": "…", "tool_input": {"file_path": "src/auth.ts", "content": "the whole new file, if known"}}

Without PROVOST_AGENT, WIT_SESSION or CLAUDE_SESSION_ID in the environment, `session_id` is who asks. With --strict a
question that could not be answered is a no, too.
"""

import json
import os
import subprocess
import sys

FREE, HELD = 0, 5
NAMES = ("PROVOST_AGENT", "WIT_SESSION", "CLAUDE_SESSION_ID")


def main():
    strict = "--strict" in sys.argv[1:]
    request = json.load(sys.stdin)
    tool = request.get("tool_input") or {}
    path = tool.get("file_path") or tool.get("notebook_path")
    if not path:
        return 0
    command = ["provost", "guard", "--json"]
    if not any(os.environ.get(name) for name in NAMES) and request.get("session_id"):
        command += ["--agent", request["session_id"]]
    content = tool.get("content")
    if content is not None:
        command.append("--stdin-content")
    command += ["--", path]
    asked = subprocess.run(command, input=content or "", text=True, capture_output=True)
    if asked.returncode == FREE:
        return 0
    if asked.returncode == HELD:
        for blocked in json.loads(asked.stdout)["blocked"]:
            lock = blocked["lock"]
            reason = f": {lock['reason']}" if lock["reason"] else ""
            print(f"{lock['symbol']} is locked by {lock['holder']} until {lock['until']}{reason}", file=sys.stderr)
        print("work on something else, or wait: provost lock SYMBOL --wait 2m", file=sys.stderr)
        return 2
    print(f"not checked: {asked.stderr.strip()}", file=sys.stderr)
    return 2 if strict else 0


if __name__ == "__main__":
    sys.exit(main())
