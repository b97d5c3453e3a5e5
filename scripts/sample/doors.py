"""Clients of Provost's doors, as agents have them: what each sends is what its protocol says, and nothing of Provost's own."""

import http.client
import json
import os
import socket
import subprocess
import urllib.parse

from approver import Door

ANSWER_SECONDS_MAX = 20


class Fault(Exception):
    """An answer that the sample does not expect."""


def devit(ident):
    """An agent at the DevIt door, with the secret that all clients share."""
    return Door(os.environ["DEVIT_SOCK"], ident, os.environ["DEVIT_SECRET"])


def delegate(door, worker, task_id, goal, **more):
    """Hands work to a worker, as DevIt's backend does."""
    task = {"action": "devit_delegate", "goal": goal, "timeout": 1800} | more
    reply = door.say("DELEGATE", {"return_to": door.ident, "task": task}, msg_id=task_id, to=worker)
    if reply is None or reply["msg_type"] not in ("ACK", "ERR"):
        raise Fault(f"{task_id}: {reply}")
    return reply["payload"]


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=None)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def wit(method, **params):
    """Calls a method of wit's protocol."""
    connection = UnixConnection(".wit/daemon.sock")
    call = {"jsonrpc": "2.0", "witVersion": "1", "id": 1, "method": method, "params": params}
    connection.request("POST", "/rpc", json.dumps(call), {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def post(variable, path, body, method="POST"):
    """Sends JSON to the door over loopback HTTP whose address this variable has."""
    at = urllib.parse.urlsplit(os.environ[variable])
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=ANSWER_SECONDS_MAX)
    connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    if answer.status >= 300:
        raise Fault(f"{method} {path}: {answer.status} {text}")
    return json.loads(text) if text else None


def publish(kind, agent, **payload):
    """Publishes a message at the broker's door."""
    post("GIT_PAW_BROKER_URL", "/publish", {"type": kind, "agent_id": agent, "payload": payload})


class Mcp:
    """A host's connection to `provost mcp`, which speaks as one agent."""

    def __init__(self, agent):
        self.number = 0
        self.server = subprocess.Popen(
            ["provost", "mcp", "--as", agent, "--tools", "all"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        client = {"name": "sample", "version": "1"}
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.server.stdin.write(json.dumps(message) + "\n")
        self.server.stdin.flush()

    def ask(self, method, **params):
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        for line in self.server.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.number:
                return answer
        raise Fault(f"{method}: provost mcp has ended")

    def call(self, tool, **arguments):
        """What a tool answers, as text for a model."""
        answer = self.ask("tools/call", name=tool, arguments=arguments)
        content = answer.get("result", {}).get("content") or [{"text": json.dumps(answer.get("error"))}]
        return content[0]["text"]

    def leave(self):
        self.server.stdin.close()
        self.server.wait()
