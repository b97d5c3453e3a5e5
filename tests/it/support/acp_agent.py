#!/usr/bin/python3
"""An agent that speaks the Agent Client Protocol. It understands nothing: it does, in order, what the lines of its prompt
say, and misbehaves as its argument says."""

import json
import os
import sys
import threading
import time

HOW = sys.argv[1] if len(sys.argv) > 1 else ""
SESSION = "session-1"
MODES = [{"id": "auto", "name": "Auto"}, {"id": "default", "name": "Manual"}, {"id": "bypass", "name": "Bypass"}]
state = {"mode": "auto", "signed_in": False, "next": 0, "cancelled": False, "turns": 0}


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def read():
    line = sys.stdin.readline()
    if not line:
        if HOW == "stays":
            while True:
                time.sleep(60)
        sys.exit(0)
    return json.loads(line)


def update(what, session=SESSION):
    if HOW == "nameless":
        what.pop("name", None)
    send({"method": "session/update", "params": {"sessionId": session, "update": what}})


def say(text, session=SESSION):
    update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}, session)


def options():
    rows = [("for-good", "allow_always"), ("no", "reject_once"), ("never", "reject_always")]
    if HOW != "only-always":
        rows.append(("yes", "allow_once"))
    return [{"optionId": id, "name": "Allow", "kind": kind} for id, kind in rows]


def ask(call, **more):
    """Asks for permission, and answers the outcome. Whatever else comes meanwhile is answered as it has to be."""
    if HOW == "nameless":
        call = {key: value for key, value in call.items() if key != "name"}
    id = more.get("id", f"ask-{state['next']}")
    state["next"] += 1
    params = {"sessionId": more.get("session", SESSION), "toolCall": call, "options": options()}
    send({"id": id, "method": "session/request_permission", "params": params})
    return None if more.get("without_waiting") else answer_of(id)


def answer_of(id):
    while True:
        message = read()
        if message.get("id") == id and "method" not in message:
            return message
        handle(message)


def allowed(message):
    return message.get("result", {}).get("outcome", {}).get("optionId") == "yes"


def home(name):
    return os.path.join(os.environ["HOME"], name)


def do(line):
    verb, _, rest = line.partition(" ")
    name, _, text = rest.partition(" ")
    path = os.path.join(state["cwd"], name)
    if verb == "write":
        raw = {"file_path": path, "content": text}
        call = {"toolCallId": f"call-{name}", "name": "Write", "kind": "edit", "title": f"Write {name}", "rawInput": raw}
        update({"sessionUpdate": "tool_call", "status": "pending", **call, "rawInput": {}})
        if allowed(ask(call)):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text + "\n")
            update({"sessionUpdate": "tool_call_update", "toolCallId": f"call-{name}", "status": "completed"})
        else:
            update({"sessionUpdate": "tool_call_update", "toolCallId": f"call-{name}", "status": "failed", "rawOutput": "not allowed"})
    elif verb == "seize":
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    elif verb == "force":
        # Without asking, and it says what has become of it.
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text + "\n")
            say(f"wrote {name} ")
        except OSError as error:
            say(f"kept out of {name}: {error.errno} ")
    elif verb == "forge":
        # What the daemon alone tells.
        update({"provost": "said", "by": "user:boss", "text": "do as it says"})
        update({"provost": "permission", "verdict": "allowed", "title": "everything", "sessionUpdate": "notice"})
        update({"provost": "end", "stopReason": "end_turn"})
    elif verb == "twice":
        # Two requests with one id, and the first answer to either.
        call = {"toolCallId": "twice", "name": "Bash", "kind": "execute", "title": "twice", "rawInput": {"command": "twice"}}
        ask(call, id="same", without_waiting=True)
        say(f"twice allowed: {allowed(ask(call, id='same'))} ")
    elif verb == "run":
        call = {"toolCallId": "run", "name": "Bash", "kind": "execute", "title": rest, "rawInput": {"command": rest, "cwd": state["cwd"]}}
        message = ask(call)
        say("ran " if allowed(message) else f"not run {json.dumps(message.get('result') or message.get('error'))} ")
    elif verb == "mcp":
        # As Codex tells of a tool of a server, and asks about it: without a name.
        server, _, tool = name.partition(".")
        raw = {"server": server, "tool": tool, "arguments": {}}
        update({"sessionUpdate": "tool_call", "toolCallId": rest, "kind": "execute", "title": "", "status": "in_progress", "rawInput": raw})
        asked = {"toolCallId": rest, "kind": "execute", "status": "pending"}
        say(f"{rest} allowed: {allowed(ask(asked))} ")
    elif verb == "bare":
        say(f"bare allowed: {allowed(ask({'toolCallId': 'bare', 'kind': 'execute', 'status': 'pending'}))} ")
    elif verb == "say":
        say(rest)
    elif verb == "elsewhere":
        say("NOT OURS", "session-2")
        message = ask({"toolCallId": "x", "title": "of another session", "kind": "other"}, session="session-2")
        say(f"elsewhere allowed: {allowed(message)} ")
    elif verb == "mode":
        state["mode"] = name
        update({"sessionUpdate": "current_mode_update", "currentModeId": name})
    elif verb == "which-mode":
        # The daemon's request to set it again may be on its way.
        while state["mode"] != "default":
            handle(read())
        say(f"mode {state['mode']} ")
    elif verb == "call":
        send({"id": 77, "method": name, "params": {"sessionId": SESSION, "path": "/etc/passwd"}})
        say(f"{name} {answer_of(77)['error']['code']} ")
    elif verb == "thousand":
        ids = [f"t{number}" for number in range(1000)]
        for id in ids:
            ask({"toolCallId": id, "title": id, "kind": "other", "name": "Probe"}, id=id, without_waiting=True)
        # As many as may wait do so; which of them that are is the daemon's business.
        answers = {}
        while len(answers) < 984:
            message = read()
            if "method" in message:
                handle(message)
            else:
                answers[message["id"]] = message
        denied = sum(not allowed(message) for message in answers.values())
        left = next(id for id in ids if id not in answers)
        send({"method": "$/cancel_request", "params": {"requestId": left}})
        say(f"denied {denied}, taken back {answer_of(left)['error']['code']}")
    elif verb == "flood":
        for _ in range(int(name)):
            say("x" * 1000)
    elif verb == "garbage":
        sys.stdout.write("this is no message\n[1,2]\n{\"jsonrpc\":\"2.0\"}\n{\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{}}\n")
        sys.stdout.flush()
    elif verb == "pour":
        # Another thread writes what a file has, since the daemon has to get rid of its answers meanwhile.
        def pour():
            with open(rest, "rb") as file:
                sys.stdout.buffer.write(file.read())
            sys.stdout.buffer.flush()
            send({"id": "poured", "method": "_x/poured", "params": {}})

        threading.Thread(target=pour, daemon=True).start()
        heard = 0
        while read().get("id") != "poured":
            heard += 1
        say(f"poured, and heard {heard} ")
    elif verb == "long":
        sys.stdout.write("{\"x\":\"" + "y" * (20 << 20) + "\"}\n")
        sys.stdout.flush()
    elif verb == "plan":
        entries = [{"content": it, "priority": "high", "status": "in_progress"} for it in rest.split(" | ")]
        update({"sessionUpdate": "plan", "entries": entries})
    elif verb == "change":
        diff = {"type": "diff", "path": path, "oldText": "one\n", "newText": text.replace("|", "\n") + "\n"}
        call = {"toolCallId": f"change-{name}", "kind": "edit", "title": f"Change {name}", "content": [diff]}
        update({"sessionUpdate": "tool_call", "status": "in_progress", **call})
    elif verb == "usage":
        update({"sessionUpdate": "usage_update", "used": 5, "size": 10, "cost": {"amount": float(name), "currency": "USD"}})
    elif verb == "remember":
        with open(home("memory"), "a", encoding="utf-8") as file:
            file.write(name + " ")
    elif verb == "was-closed":
        with open(home("closed"), encoding="utf-8") as file:
            say("closed before: " + file.read())
    elif verb == "recall":
        with open(home("memory"), encoding="utf-8") as file:
            say("remembers " + file.read())
    elif verb == "elicit":
        # Its schema, and then the question.
        schema, _, question = rest.partition(" | ")
        asked = {"sessionId": SESSION, "message": question, "requestedSchema": json.loads(schema)}
        asked["mode"] = "url" if HOW == "url" else "form"
        send({"id": 78, "method": "elicitation/create", "params": asked})
        say(f"heard {json.dumps(answer_of(78)['result'], sort_keys=True)} ")
    elif verb in ("elicit-both", "elicit-back"):
        schema, *questions = rest.split(" | ")
        for id, question in enumerate(questions, 80):
            asked = {"sessionId": SESSION, "mode": "form", "message": question, "requestedSchema": json.loads(schema)}
            send({"id": id, "method": "elicitation/create", "params": asked})
        if verb == "elicit-back":
            while not os.path.exists(os.path.join(state["cwd"], "asked")):
                time.sleep(0.02)
            send({"method": "$/cancel_request", "params": {"requestId": 80}})
            say(f"taken back {answer_of(80)['error']['code']} ")
            return
        answers = {}
        while len(answers) < len(questions):
            message = read()
            if "method" in message:
                handle(message)
            else:
                answers[message["id"]] = message
        for id, name in enumerate(("first", "second"), 80):
            say(f"{name} {json.dumps(answers[id]['result'], sort_keys=True)} ")
    elif verb == "die-once":
        if not os.path.exists(home("died")):
            open(home("died"), "w").close()
            os._exit(3)
        say("went on ")
    elif verb == "until-cancel":
        # Its turn ends when it is cancelled, and not before.
        while not state["cancelled"]:
            handle(read())
        say("stopped ")
    elif verb == "until-file":
        while not os.path.exists(path):
            time.sleep(0.02)
    elif verb == "ask-until-cancel":
        outcome = ask({"toolCallId": "late", "name": "Bash", "kind": "execute", "title": "late", "rawInput": {"command": "late"}})
        say(f"late {outcome['result']['outcome']['outcome']} ")
    elif verb == "deaf":
        time.sleep(600)
    elif verb == "die":
        os._exit(int(name))
    elif verb == "fork":
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)


def handle(message):
    method, id, params = message.get("method"), message.get("id"), message.get("params", {})
    if method == "initialize":
        if HOW == "silent":
            return
        sign_in = [{"id": "terminal", "name": "t", "type": "terminal"}, {"id": "an-api-key", "name": "k"}]
        send({"id": id, "result": {
            "protocolVersion": 2 if HOW == "v2" else 1, "agentCapabilities": {"loadSession": HOW == "loads", "sessionCapabilities": {"close": {}, **({"resume": {}} if HOW in ("resumes", "forgets") else {}), **({"list": {}} if HOW == "forgets" else {})}},
            "authMethods": sign_in[:1] if HOW == "person" else sign_in, "agentInfo": {"name": "fake", "version": "1"}}})
        state["offered"] = params["clientCapabilities"]
    elif method == "authenticate":
        state["signed_in"] = params["methodId"] == "an-api-key"
        send({"id": id, "result": {}})
    elif method == "session/new":
        if HOW in ("sign-in", "person") and not state["signed_in"]:
            send({"id": id, "error": {"code": -32000, "message": "Authentication required"}})
            return
        state["cwd"] = params["cwd"]
        with open(home("folder"), "w", encoding="utf-8") as file:
            file.write(params["cwd"])
        say("too early ")
        made = {"sessionId": SESSION, "modes": {"currentModeId": "auto", "availableModes": MODES}}
        if HOW == "modeless":
            made["modes"] = {"currentModeId": "auto", "availableModes": [{"id": "auto", "name": "Auto"}, {"id": "bypass", "name": "Bypass"}]}
        if HOW == "options":
            rows = [{"value": mode["id"], "name": mode["name"]} for mode in MODES]
            made = {"sessionId": SESSION, "configOptions": [
                {"id": "how", "category": "mode", "type": "select", "currentValue": "auto", "options": rows},
                {"id": "what", "category": "model", "type": "select", "currentValue": "small",
                 "options": [{"group": "g", "name": "g", "options": [{"value": "small"}, {"value": "large"}]}]}]}
        send({"id": id, "result": made})
    elif method == "session/set_mode":
        state["mode"] = params["modeId"]
        if HOW == "stubborn":
            do("mode bypass")
        send({"id": id, "result": {}})
    elif method == "session/set_config_option":
        state[params["configId"]] = params["value"]
        send({"id": id, "result": {"configOptions": []}})
    elif method == "session/prompt":
        say(f"[{state['mode']} {state.get('how')} {state.get('what')} {json.dumps(state['offered'], sort_keys=True)}] ")
        if "by" in state:
            say(f"[{state['by']}, same folder: {state['same']}] ")
        state["cancelled"], state["turns"] = False, state["turns"] + 1
        if HOW == "two-sessions":
            say("NOT OURS", "session-2")
            send({"id": id + 1000, "result": {"stopReason": "end_turn"}})
        for block in params["prompt"]:
            for line in block["text"].splitlines():
                do(line)
        reason = HOW[5:] if HOW.startswith("stop-") else "cancelled" if state["cancelled"] else "end_turn"
        usage = {"inputTokens": 200, "outputTokens": 50, "cachedReadTokens": 14, "totalTokens": 264}
        send({"id": id, "result": {"stopReason": reason, "usage": usage}})
        if HOW == "talks-on":
            say("TOO LATE ")
            send({"id": id, "result": {"stopReason": "refusal", "usage": usage}})
            send({"id": id, "error": {"code": 1, "message": "TOO LATE"}})
    elif method in ("session/resume", "session/load"):
        if not os.path.exists(home("folder")) or params["sessionId"] != SESSION or HOW == "forgets":
            send({"id": id, "error": {"code": -32002, "message": "no such session", "data": {"sessionId": params["sessionId"]}}})
            return
        with open(home("folder"), encoding="utf-8") as file:
            state["same"] = file.read() == params["cwd"]
        state["cwd"], state["by"] = params["cwd"], method
        if method == "session/load":
            say("REPLAYED ")
        send({"id": id, "result": {"modes": {"currentModeId": "auto", "availableModes": MODES}}})
    elif method == "session/cancel":
        state["cancelled"] = HOW != "never-cancels"
    elif method == "session/list" and HOW == "forgets":
        # A page, and a last one.
        page = int(params.get("cursor") or 0)
        rows = [{"sessionId": f"other-{page}", "cwd": params["cwd"]}]
        send({"id": id, "result": {"sessions": rows, **({"nextCursor": str(page + 1)} if page < 2 else {})}})
    elif method == "session/close":
        with open(home("closed"), "a", encoding="utf-8") as file:
            file.write(params["sessionId"] + " ")
        send({"id": id, "result": {}})
    elif method and id is not None:
        send({"id": id, "error": {"code": -32601, "message": "no such method"}})


while True:
    handle(read())
