#!/usr/bin/python3
"""Stands in for the services of four models: Anthropic's messages, OpenAI's responses and chat, Gemini's contents.

    model.py LOG        serves on a free port of the loopback, prints it, and writes a line of JSON for each request into LOG

What a model "decides" is in the prompt, in double brackets: [[write PATH TEXT]], [[edit PATH OLD NEW]], [[run COMMAND]],
[[escalate COMMAND]], [[patch PATH OLD NEW]] and [[subagent WORDS]] call the agent's own tool, one after the other, each when the one before has its
result; in what a subagent is told ((…)) stands for the brackets of an order of its own. [[hang]] lets the agent wait, once; [[wait FILE]], which has to be the last, lets it wait until that file is there. Then it says "Done.", or PROVOST-READY where that word is asked for. Every answer with tools
claims the same tokens, so that a sum of them is known.
"""
import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOCK = threading.Lock()
HUNG = threading.Event()
# An answer that hangs does not come, however long a busy machine takes for what is to happen meanwhile.
NEVER = threading.Event()
ORDER = re.compile(r"\[\[(write|edit|run|escalate|patch|subagent|hang|wait)\b ?(.*?)\]\]", re.DOTALL)
# What each answer claims: read in all, of that out of the cache, written, of that thoughts.
READ, CACHED, WRITTEN, THOUGHT = 100, 7, 25, 5


def texts(value):
    """Every text below a part of a request."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for it in value:
            yield from texts(it)
    elif isinstance(value, dict):
        for name, it in value.items():
            if name in ("text", "content", "parts"):
                yield from texts(it)


def turns(body):
    """What was said and done, in order: ("user", text) and ("result", text)."""
    for item in body.get("messages") or body.get("contents") or body.get("input") or []:
        if not isinstance(item, dict):
            continue
        kind, role = item.get("type", ""), item.get("role", "")
        if kind in ("function_call_output", "custom_tool_call_output"):
            yield "result", str(item.get("output"))
        elif role == "tool":
            yield "result", " ".join(texts(item.get("content")))
        elif role == "user":
            parts = item.get("content") if "content" in item else item.get("parts")
            for part in [parts] if isinstance(parts, str) else parts or []:
                if isinstance(part, dict) and part.get("type") == "tool_result":
                    yield "result", json.dumps(part.get("content"))
                elif isinstance(part, dict) and "functionResponse" in part:
                    yield "result", json.dumps(part["functionResponse"])
                else:
                    yield "user", " ".join(texts(part))


def tools_of(body):
    names = []
    for tool in body.get("tools") or []:
        names.append(tool.get("name") or (tool.get("function") or {}).get("name") or tool.get("type"))
        names += [it.get("name") for it in tool.get("functionDeclarations") or []]
    return [it for it in names if it]


def folder_of(body):
    """Where the agent works, as it tells its model."""
    found = re.search(r"(?:[Ww]orking directory(?: is)?:?|in the directory:|<cwd>)\s*`?(/[^\s`<\"'\\]+)", json.dumps(body))
    return found.group(1).rstrip(".,") if found else "."


def patch(path, old, new):
    return f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch\n"


def call(order, words, tools, folder):
    """The agent's own tool for an order, and its arguments; None where it has none of that kind."""
    is_goose = "extensionmanager__manage_extensions" in tools

    def at(path):
        return path if path.startswith("/") else f"{folder}/{path}"

    if order == "write":
        path, _, text = words.partition(" ")
        if "Write" in tools:
            return "Write", {"file_path": at(path), "content": text + "\n"}
        if "write_file" in tools:
            return "write_file", {"file_path": at(path), "content": text + "\n"}
        if "write" in tools:
            # OpenCode's, or Goose's, which leaves out what it does not know.
            name = "path" if is_goose else "filePath"
            return "write", {name: at(path), "content": text + "\n"}
        order, words = "run", f"printf '%s\\n' '{text}' > {path}"
    if order == "edit":
        path, old, new = words.split("|")
        return "Edit", {"file_path": at(path), "old_string": old, "new_string": new}
    if order == "patch":
        path, old, new = words.split("|")
        order, words = "run", "apply_patch <<'EOF'\n" + patch(path, old, new) + "EOF"
    if order == "subagent":
        # Claude Code has called it by both names.
        name = next((it for it in ("Agent", "Task") if it in tools), None)
        told = words.replace("((", "[[").replace("))", "]]")
        return name and (name, {"description": "does a part", "prompt": told, "subagent_type": "general-purpose"})
    more = {}
    if order == "escalate":
        more = {"sandbox_permissions": "require_escalated", "justification": "it is needed"}
    for name, argument in (
        ("exec_command", {"cmd": words}),
        ("shell_command", {"command": words}),
        ("shell", {"command": words if is_goose else ["bash", "-c", words]}),
        ("Bash", {"command": words, "description": "does it"}),
        ("bash", {"command": words, "description": "does it"}),
        ("run_shell_command", {"command": words, "description": "does it", "is_background": False}),
    ):
        if name in tools:
            return name, argument | more
    return None


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def note(self, **what):
        names = ("authorization", "x-api-key", "x-goog-api-key", "user-agent")
        heads = {name: self.headers[name] for name in names if self.headers[name]}
        with LOCK:
            LOG.write(json.dumps({"path": self.path, "heads": heads} | what) + "\n")
            LOG.flush()

    def body(self):
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        whole = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def json(self, value):
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def stream(self, events):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for name, value in events:
            head = f"event: {name}\n" if name else ""
            data = value if isinstance(value, str) else json.dumps(value)
            self.wfile.write(f"{head}data: {data}\n\n".encode())
            self.wfile.flush()
        self.close_connection = True

    def do_GET(self):
        self.note(method="GET")
        self.json({"data": [], "models": [], "object": "list"})

    def do_POST(self):
        raw = self.body()
        try:
            body = json.loads(raw)
        except ValueError:
            body = {}
        path = self.path.split("?")[0]
        if "ount" in path and "oken" in path:
            self.note(method="count")
            return self.json({"input_tokens": 10, "totalTokens": 10})
        tools, done = tools_of(body), list(turns(body))
        # Of the last prompt that has orders; results before it are of earlier turns.
        asked = [at for at, (kind, text) in enumerate(done) if kind == "user" and ORDER.search(text)]
        orders = ORDER.findall(done[asked[-1]][1]) if asked and tools else []
        if HUNG.is_set():
            orders = [it for it in orders if it[0] != "hang"]
        results = [text for kind, text in (done[asked[-1]:] if asked else []) if kind == "result"]
        chosen, words = None, "Done."
        if any("PROVOST-READY" in text for kind, text in done if kind == "user"):
            words = "PROVOST-READY"
        if len(results) < len(orders):
            order, rest = orders[len(results)]
            if order == "hang":
                self.note(method="hang", tools=len(tools))
                HUNG.set()
                NEVER.wait()
            if order == "wait":
                self.note(method="wait")
                while not os.path.exists(rest):
                    time.sleep(0.05)
            else:
                chosen = call(order, rest, tools, folder_of(body))
        self.note(method="POST", tools=len(tools), model=body.get("model"), called=chosen and chosen[0], results=results,
                  claimed=bool(tools), names=tools, prompts=len(asked),
                  told=[text for kind, text in done if kind == "user"][-1:], news=raw.count(b"Provost: your inbox has"))
        try:
            self.answer(path, body, chosen, words, bool(tools))
        except (BrokenPipeError, ConnectionResetError):
            pass

    def answer(self, path, body, chosen, words, claims):
        model, streams, this = body.get("model"), body.get("stream", False), time.time_ns()
        read, cached, written, thought = (READ, CACHED, WRITTEN, THOUGHT) if claims else (0, 0, 0, 0)
        if path.endswith("/messages"):
            usage = {"input_tokens": read - cached, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0}
            whole = {"id": f"msg_{this}", "type": "message", "role": "assistant", "model": model, "stop_sequence": None}
            if not streams:
                said = [{"type": "text", "text": words}]
                usage |= {"output_tokens": written}
                return self.json(whole | {"content": said, "stop_reason": "end_turn", "usage": usage})
            begun = whole | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": min(1, written)}}
            events = [{"type": "message_start", "message": begun}]
            blocks = [({"type": "text", "text": ""}, {"type": "text_delta", "text": "I do it." if chosen else words})]
            if chosen:
                use = {"type": "tool_use", "id": f"toolu_{this}", "name": chosen[0], "input": {}}
                blocks.append((use, {"type": "input_json_delta", "partial_json": json.dumps(chosen[1])}))
            for at, (block, delta) in enumerate(blocks):
                events += [{"type": "content_block_start", "index": at, "content_block": block},
                           {"type": "content_block_delta", "index": at, "delta": delta},
                           {"type": "content_block_stop", "index": at}]
            stop = {"stop_reason": "tool_use" if chosen else "end_turn", "stop_sequence": None}
            events += [{"type": "message_delta", "delta": stop, "usage": {"output_tokens": written}}, {"type": "message_stop"}]
            return self.stream([(it["type"], it) for it in events])
        if path.endswith("/responses"):
            said = [{"type": "output_text", "text": words}]
            item = {"type": "message", "id": f"m_{this}", "role": "assistant", "content": said}
            if chosen:
                item = {"type": "function_call", "id": f"fc_{this}", "call_id": f"call_{this}", "name": chosen[0],
                        "arguments": json.dumps(chosen[1])}
            usage = {"input_tokens": read, "input_tokens_details": {"cached_tokens": cached}, "output_tokens": written,
                     "output_tokens_details": {"reasoning_tokens": thought}, "total_tokens": read + written}
            delta = {"type": "response.output_text.delta", "item_id": item["id"], "output_index": 0, "content_index": 0,
                     "delta": words}
            begun = item if chosen else item | {"content": []}
            events = [{"type": "response.created", "response": {"id": f"resp_{this}"}},
                      {"type": "response.output_item.added", "output_index": 0, "item": begun},
                      *([] if chosen else [delta]), {"type": "response.output_item.done", "output_index": 0, "item": item},
                      {"type": "response.completed", "response": {"id": f"resp_{this}", "usage": usage}}]
            return self.stream([(it["type"], it) for it in events])
        if path.endswith("/chat/completions"):
            usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written,
                     "prompt_tokens_details": {"cached_tokens": cached}}
            if not streams:
                message = {"role": "assistant", "content": words}
                return self.json({"id": f"c_{this}", "object": "chat.completion", "model": model, "usage": usage,
                                  "choices": [{"index": 0, "finish_reason": "stop", "message": message}]})

            def chunk(delta, end=None):
                return None, {"id": f"c_{this}", "object": "chat.completion.chunk", "created": 1, "model": model,
                              "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}

            events = [chunk({"role": "assistant", "content": "I do it." if chosen else words})]
            if chosen:
                function = {"name": chosen[0], "arguments": json.dumps(chosen[1])}
                called = {"index": 0, "id": f"call_{this}", "type": "function", "function": function}
                events.append(chunk({"tool_calls": [called]}))
            last = chunk({})[1] | {"choices": [], "usage": usage}
            return self.stream([*events, chunk({}, "tool_calls" if chosen else "stop"), (None, last), (None, "[DONE]")])
        if "enerateContent" in path:
            parts = [{"text": words if claims else "{}"}]
            if chosen:
                parts = [{"text": "I do it."}, {"functionCall": {"name": chosen[0], "args": chosen[1]}}]
            usage = {"promptTokenCount": read, "candidatesTokenCount": written, "totalTokenCount": read + written,
                     "cachedContentTokenCount": cached}
            whole = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
                     "usageMetadata": usage, "modelVersion": model or "m"}
            return self.stream([(None, whole)]) if "alt=sse" in self.path else self.json(whole)
        return self.json({})


LOG = open(sys.argv[1], "w")
SERVER = ThreadingHTTPServer(("127.0.0.1", 0), Model)
SERVER.daemon_threads = True
print(SERVER.server_address[1], flush=True)
SERVER.serve_forever()
