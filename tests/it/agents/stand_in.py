#!/usr/bin/python3
"""Stands in for a coding agent and the language model behind it. It understands nothing: it does, in order, what the
lines of its prompt that begin with DO say, and so the same each time."""

import json
import os
import sys

MODE = sys.argv[1] if len(sys.argv) > 1 else "lines"


def say(text):
    if MODE == "claude":
        message = {"model": "a-model-2", "content": [{"type": "text", "text": text}]}
        print(json.dumps({"type": "assistant", "message": message}), flush=True)
    elif MODE == "codex":
        item = {"id": "item_0", "type": "agent_message", "text": text}
        print(json.dumps({"type": "item.completed", "item": item}), flush=True)
    else:
        print(text, flush=True)


def folder_of(path):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    return path


def do(verb, rest):
    path, _, text = rest.partition(" ")
    if verb == "write":
        with open(folder_of(path), "w", encoding="utf-8") as file:
            file.write(text.encode().decode("unicode_escape"))
    elif verb == "bytes":
        with open(folder_of(path), "wb") as file:
            file.write(bytes(range(256)) * int(text or 1))
    elif verb == "touch":
        os.utime(path)
    elif verb == "remove":
        os.remove(path)
    elif verb == "link":
        os.symlink(text, path)
    elif verb == "pipe":
        os.mkfifo(path)
    elif verb == "program":
        os.chmod(path, 0o700)
    elif verb == "mode":
        os.chmod(path, int(text, 8))
    elif verb == "rmdir":
        os.rmdir(path)
    elif verb == "many":
        for number in range(int(text)):
            do("write", f"{path}/{number:04} x")
    elif verb == "say":
        say(rest)
    elif verb == "environment":
        say(f"{rest}={os.environ.get(rest)}")
    elif verb == "contents":
        with open(os.environ[rest], encoding="utf-8") as file:
            say(file.read())
    elif verb == "list":
        say(" ".join(sorted(os.listdir(rest or "."))))
    elif verb == "length":
        say(f"the prompt has {len(PROMPT)} letters")
    elif verb == "flood":
        for _ in range(int(rest)):
            sys.stdout.buffer.write(b"x" * (1 << 20))
    elif verb == "garbage":
        sys.stdout.buffer.write(b"\xff\xfe{\"type\":\n\x1b]0;title\x07\x1b[31m[[[{{{\x00\n")
        sys.stdout.buffer.flush()
    elif verb == "fork":
        for _ in range(int(rest)):
            if os.fork() == 0:
                os.setsid()
                while True:
                    os.read(os.pipe()[0], 1)
    elif verb == "wait":
        os.read(os.pipe()[0], 1)
    elif verb == "git":
        say(os.popen(f"git {rest} 2>&1").read().strip())
    elif verb == "complain":
        end = {"type": "result", "subtype": "success", "is_error": True, "result": rest}
        turn = {"type": "turn.failed", "error": {"message": 'stream error: {"error": {"message": "' + rest + '"}}'}}
        print(rest if MODE == "lines" else json.dumps(end if MODE in ("claude", "json") else turn), flush=True)
        sys.exit(1)
    elif verb == "give-up":
        print(json.dumps({"type": "result", "subtype": "error_max_turns", "is_error": True}), flush=True)
        sys.exit(1)
    elif verb == "exit":
        sys.exit(int(rest))
    else:
        say(f"what is {verb}?")


PROMPT = "" if MODE == "deaf" else sys.argv[2] if MODE == "argument" else sys.stdin.read()
if MODE == "deaf":
    say("not listening")
for line in PROMPT.splitlines():
    if line.startswith("DO "):
        do(*(line[3:].split(" ", 1) + [""])[:2])
if MODE == "claude":
    usage = {"input_tokens": 11, "output_tokens": 22, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3}
    end = {"type": "result", "subtype": "success", "is_error": False, "result": "the end", "usage": usage, "total_cost_usd": 0.25}
    print(json.dumps(end))
elif MODE == "codex":
    print(json.dumps({"type": "turn.completed", "usage": {"input_tokens": 33, "cached_input_tokens": 5, "output_tokens": 44}}))
