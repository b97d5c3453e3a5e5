#!/usr/bin/python3
"""Stands in for Claude Code, in its stream of JSON. It understands nothing: it replaces lines in files, as its prompt says.

    Round the total to cents.
    CHANGE src/cart.py
    - return vat(discount(net))
    + return round(vat(discount(net)), 2)

WAIT and a number is a rest of so many seconds, and a message for each of them.
"""

import json
import sys
import time

MODEL = "claude-opus-5-5"


def say(content):
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": [content]}
    print(json.dumps({"type": "assistant", "message": message, "session_id": "s"}), flush=True)


def edits(prompt):
    """The changes that a prompt asks for: a file, the lines that go, and the lines that come."""
    path, old, new = "", [], []
    for line in [*prompt.splitlines(), ""]:
        word, _, rest = line.partition(" ")
        if word == "-" and path:
            old.append(rest)
        elif word == "+" and path:
            new.append(rest)
        else:
            if new:
                yield path, "\n".join(old), "\n".join(new)
                old, new = [], []
            path = rest if word == "CHANGE" else path


def change(path, old, new):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    tool = {"file_path": path, "old_string": old, "new_string": new}
    say({"type": "tool_use", "id": "toolu_1", "name": "Edit", "input": tool})
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new) if old else text + new + "\n")


def main():
    print(json.dumps({"type": "system", "subtype": "init", "model": MODEL, "session_id": "s"}), flush=True)
    prompt, changed = sys.stdin.read(), 0
    for path, old, new in edits(prompt):
        change(path, old, new)
        changed += 1
    for line in prompt.splitlines():
        word, _, rest = line.partition(" ")
        if word == "WAIT":
            for second in range(int(rest)):
                say({"type": "text", "text": f"Read {second + 1} of {rest} files."})
                time.sleep(1)
    say({"type": "text", "text": f"Changed {changed} places, and ran the tests."})
    usage = {"input_tokens": 41200 + 900 * changed, "output_tokens": 2350 + 410 * changed, "cache_read_input_tokens": 128000}
    end = {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "session_id": "s"}
    print(json.dumps(end | {"total_cost_usd": 0.31 + 0.04 * changed, "usage": usage}), flush=True)


if __name__ == "__main__":
    main()
