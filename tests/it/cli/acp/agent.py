#!/usr/bin/python3
"""An agent for an editor. It does, in order, what the lines of its prompt say, and keeps each line that it gets in a file."""

import json
import os
import subprocess
import sys
import time

LOG = open(os.environ["AGENT_LOG"], "ab", buffering=0)
HOW = sys.argv[1] if len(sys.argv) > 1 else ""
state = {"sessions": 0}
OPTIONS = [("for-good", "allow_always"), ("no-1", "reject_once"), ("never", "reject_always"), ("yes-1", "allow_once")]


def raw(line):
    sys.stdout.buffer.write(line if isinstance(line, bytes) else line.encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()


def send(message):
    raw(json.dumps({"jsonrpc": "2.0", **message}))


def read():
    line = sys.stdin.buffer.readline()
    if not line:
        LOG.write(b"END\n")
        if HOW == "stays":
            while True:
                time.sleep(60)
        sys.exit(0)
    LOG.write(line)
    try:
        return json.loads(line)
    except ValueError:
        return {}


def say(session, text):
    send({"method": "session/update", "params": {"sessionId": session, "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}})


def answer_of(id):
    while True:
        message = read()
        if message.get("id") == id and "method" not in message:
            return message
        handle(message)


def do(session, line):
    verb, _, rest = line.partition(" ")
    if verb == "ask":
        # ask ID CALL
        id, _, call = rest.partition(" ")
        id = json.loads(id)
        options = [{"optionId": o, "name": o, "kind": k} for o, k in OPTIONS]
        send({"id": id, "method": "session/request_permission",
              "params": {"sessionId": session, "toolCall": json.loads(call), "options": options}})
    elif verb == "await":
        say(session, "heard " + json.dumps(answer_of(json.loads(rest)), sort_keys=True))
    elif verb == "fs":
        path, _, text = rest.partition(" ")
        send({"id": "fs", "method": "fs/write_text_file", "params": {"sessionId": session, "path": path, "content": text}})
        say(session, "after the write")
        say(session, "heard " + json.dumps(answer_of("fs"), sort_keys=True))
    elif verb == "update":
        send({"method": "session/update", "params": {"sessionId": session, "update": json.loads(rest)}})
    elif verb == "swap":
        # swap PATH OLD NEW, the texts as JSON
        path, _, texts = rest.partition(" ")
        old, at = json.JSONDecoder().raw_decode(texts)
        new = json.loads(texts[at:])
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new, 1))
    elif verb == "raw":
        raw(rest)
    elif verb == "bytes":
        raw(bytes.fromhex(rest))
    elif verb == "long":
        raw('{"jsonrpc":"2.0","method":"_x/long","params":{"a":"' + "y" * (int(rest) << 20) + '"}}')
    elif verb == "long-request":
        raw('{"jsonrpc":"2.0","id":"big","method":"_x/long","params":{"a":"' + "y" * (int(rest) << 20) + '"}}')
    elif verb == "long-answer":
        state["long"] = int(rest)
    elif verb == "say":
        say(session, rest)
    elif verb == "die":
        os._exit(int(rest))
    elif verb == "leave-open":
        # What it has started keeps its output open.
        subprocess.Popen([sys.executable, "-c", "import time,sys; time.sleep(600)"], stdin=subprocess.DEVNULL)
        os._exit(int(rest))
    elif verb == "child":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        say(session, f"child {child.pid}")
    elif verb == "forever":
        while True:
            handle(read())


def handle(message):
    method, id, params = message.get("method"), message.get("id"), message.get("params", {})
    if not isinstance(params, dict):
        params = {}
    if method == "initialize":
        send({"id": id, "result": {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}})
    elif method in ("session/new", "session/fork"):
        state["sessions"] += 1
        made = {"sessionId": f"s{state['sessions']}"}
        if HOW == "modes":
            made["configOptions"] = [{"id": "how", "category": "mode", "name": "How", "options": []},
                                     {"id": "model", "category": "model", "name": "Model", "options": []}]
        if HOW in ("own-modes", "stubborn-modes"):
            made["modes"] = {"currentModeId": "ask", "availableModes": [{"id": it, "name": it} for it in ("ask", "yolo")]}
        if HOW == "own-options":
            made["configOptions"] = [{"id": "how", "category": "mode", "name": "How", "currentValue": "ask", "options": []}]
        send({"id": id, "result": made})
    elif method == "session/load" and "_tells" in params:
        send({"method": "session/update", "params": {"sessionId": params["sessionId"], "update": params["_tells"]}})
        send({"id": id, "result": {}})
    elif method in ("session/load", "session/resume", "session/close") or (
            HOW in ("modes", "own-modes", "own-options") and str(method).startswith("session/set_")):
        send({"id": id, "result": {}})
    elif method == "session/prompt":
        for line in params["prompt"][0]["text"].split("\n"):
            do(params["sessionId"], line)
        more = {"_x": "y" * (state.pop("long") << 20)} if "long" in state else {}
        send({"id": id, "result": {"stopReason": "end_turn", **more}})
    elif method and id is not None and method != "_x/silent":
        send({"id": id, "error": {"code": -32601, "message": "no such method"}})


if HOW == "source":
    with open(sys.argv[2], "rb") as file:
        for line in file:
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    read()
while True:
    try:
        handle(read())
    except Exception:
        # Messages that were mutated may be anything.
        if HOW not in ("sturdy", "source"):
            raise
