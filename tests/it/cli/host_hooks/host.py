#!/usr/bin/python3
"""A host that sends its hooks over HTTP as Claude Code does, as its own settings say.

    host.py SETTINGS      reads {"event", "told"} in lines of JSON, and writes {"status", "body"} for each

Variables in headers are those of its environment, as far as the entry allows them; an event whose hook is a command has no answer.
"""
import json
import os
import re
import sys
import urllib.parse
from http.client import HTTPConnection


def call(hook, told):
    url = urllib.parse.urlsplit(hook["url"])
    allowed = hook.get("allowedEnvVars", [])
    value = lambda it: os.environ.get(it[1], "") if it[1] in allowed else ""
    headers = {name: re.sub(r"\$([A-Z_][A-Z0-9_]*)", value, text) for name, text in hook["headers"].items()}
    connection = HTTPConnection(url.hostname, url.port, timeout=hook["timeout"])
    path = url.path + ("?" + url.query if url.query else "")
    body = told if isinstance(told, str) else json.dumps(told)
    connection.request("POST", path, body, {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    return {"status": answer.status, "body": answer.read().decode()}


for line in sys.stdin:
    asked = json.loads(line)
    with open(sys.argv[1], encoding="utf-8") as file:
        hook = json.load(file)["hooks"][asked["event"]][0]["hooks"][0]
    hook = {**hook, **asked.get("instead", {})}
    print(json.dumps(call(hook, asked["told"]) if hook["type"] == "http" else {"status": 0, "body": ""}), flush=True)
