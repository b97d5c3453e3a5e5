"""An MCP server that behaves as its first argument says: well, badly, or not at all."""
import json
import os
import signal
import sys
import time

how = sys.argv[1]


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def nested(depth):
    return {"a": nested(depth - 1)} if depth else "x"


def result(arguments):
    if how == "devit":
        return {"summary": " all\x1b[31m done ", "details": {"stderr": "noise", "asked": arguments, "cwd": os.getcwd()},
                "usage": {"input_tokens": 11, "output_tokens": 22, "cost": 0.5}}
    if how == "failing":
        return {"content": [{"type": "text", "text": "no such zone"}], "isError": True}
    if how == "long":
        return {"content": [{"type": "text", "text": "y" * 400_000}]}
    if how == "deep":
        return {"content": [], "structuredContent": nested(80)}
    return {"content": [{"type": "text", "text": "plain"}], "structuredContent": {"total_tokens": 7}}


if how == "garbage":
    for i in range(1000):
        print("this is not MCP", flush=True)
    time.sleep(60)
if how == "one line":
    sys.stdout.write("x" * (5 << 20))
    sys.stdout.flush()
    time.sleep(60)
if how == "deaf":
    time.sleep(60)
if how == "dies":
    sys.exit(3)
if how == "greets":
    print("Welcome!", flush=True)
if how == "no handshake":
    sys.stdin.readline()
    say({"jsonrpc": "2.0", "id": 0, "result": {"hello": True}})
    time.sleep(60)

for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if how == "says no":
        say({"jsonrpc": "2.0", "id": number, "error": {"code": -32099, "message": "not today"}})
    elif method == "initialize":
        version = message["params"]["protocolVersion"]
        say({"jsonrpc": "2.0", "id": number, "result": {
            "protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}})
    elif method == "tools/list":
        names = ["devit_delegate"] if how != "toolless" else ["paint", "sing"]
        say({"jsonrpc": "2.0", "id": number, "result": {
            "tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}})
    elif method == "tools/call":
        if how == "refuses":
            say({"jsonrpc": "2.0", "id": number, "error": {"code": -32050, "message": "out of ink"}})
        elif how == "falls":
            os.kill(os.getpid(), signal.SIGKILL)
        elif how == "silent":
            time.sleep(60)
        elif how == "floods":
            while True:
                say({"jsonrpc": "2.0", "method": "notifications/message",
                     "params": {"level": "info", "data": "z" * 100_000}})
        else:
            say({"jsonrpc": "2.0", "id": number, "result": result(message["params"]["arguments"])})
            if how == "leaves":
                sys.exit(5)
            if how == "stays":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                if os.fork() == 0:
                    time.sleep(600)
                time.sleep(600)
