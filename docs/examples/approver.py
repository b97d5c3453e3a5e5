#!/usr/bin/env python3
"""An approver for Provost's DevIt door, in Python without any package.

It signs and checks frames as docs/protocols/devit.md says, collects the requests that wait for
client:approver, grants those whose goal matches a pattern and denies the rest.

    export DEVIT_SOCK=...                                        # provost env prints it
    export DEVIT_SECRET="$(provost key rotate client:approver)"  # its own key; the shared one cannot approve
    docs/examples/approver.py --grant 'make *' --once
"""

import argparse
import base64
import fnmatch
import hashlib
import hmac
import json
import os
import socket
import sys
import time
import uuid

ANSWER_SECONDS_MAX = 10


def mac(secret, head, payload_text):
    """Base64 of the HMAC over `msg_type|msg_id|from|to|ts|nonce|payload`."""
    body = "|".join([*head, payload_text]).encode()
    return base64.b64encode(hmac.new(secret.encode(), body, hashlib.sha256).digest()).decode()


class Door:
    """One connection per message and one line of answer, as DevIt's clients do it."""

    def __init__(self, path, ident, secret):
        self.path, self.ident, self.secret = path, ident, secret

    def say(self, msg_type, payload, msg_id=None, to="orchestrator"):
        """Sends one message; returns the answer, or None for an empty line."""
        head = [msg_type, msg_id or str(uuid.uuid4()), self.ident, to]
        head += [str(int(time.time())), str(uuid.uuid4())]
        text = json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        names = ["msg_type", "msg_id", "from", "to", "ts", "nonce"]
        frame = dict(zip(names, head), hmac=mac(self.secret, head, text), payload=payload)
        frame["ts"] = int(frame["ts"])
        line = json.dumps(frame, separators=(",", ":"), ensure_ascii=False)
        with socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(ANSWER_SECONDS_MAX)
            stream.connect(self.path)
            stream.sendall(line.encode() + b"\n")
            answer = stream.makefile("rb").readline().decode().rstrip("\n")
        return self.check(answer) if answer else None

    def check(self, line):
        """Believes an answer only if the daemon signed it; the payload is last and signed as it was sent."""
        frame = json.loads(line)
        head = [str(frame[name]) for name in ["msg_type", "msg_id", "from", "to", "ts", "nonce"]]
        marker = '"payload":'
        text = line[line.index(marker) + len(marker) : -1]
        if not hmac.compare_digest(frame["hmac"], mac(self.secret, head, text)):
            raise SystemExit(f"approver: the answer is not signed with our key: {frame['payload']}")
        return frame


def decide(request, pattern):
    """The whole judgement of this example. Put your own here; it must never trust the words of the goal."""
    task = (request["payload"].get("details") or {}).get("task") or {}
    return "granted" if pattern and fnmatch.fnmatchcase(task.get("goal", ""), pattern) else "denied"


def answer(door, request, pattern):
    """Answers one APPROVAL: under its own id, bound to the digest of exactly what was shown."""
    shown, verdict = request["payload"], decide(request, pattern)
    goal = ((shown.get("details") or {}).get("task") or {}).get("goal", "")
    print(f"approver: {goal!r}: {shown['explanation']}, risk {shown['risk_level']}")
    payload = {"status": verdict, "digest": shown["digest"], "note": f"the pattern is {pattern!r}"}
    reply = door.say("APPROVAL_DECISION", payload, msg_id=request["msg_id"])
    if reply is None or reply["msg_type"] != "ACK":
        raise SystemExit(f"approver: the decision was not taken: {reply and reply['payload']}")
    print(f"approver: {verdict}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Answers the requests that wait for an approver.")
    parser.add_argument("--grant", metavar="PATTERN", help="grant goals like this, deny all others")
    parser.add_argument("--once", action="store_true", help="end after the first answer")
    parser.add_argument("--seconds", type=float, default=600, help="end after this long without a request")
    asked = parser.parse_args()
    try:
        path, secret = os.environ["DEVIT_SOCK"], os.environ["DEVIT_SECRET"]
    except KeyError as missing:
        raise SystemExit(f"approver: {missing.args[0]} is not set; see the head of this file") from None
    door = Door(path, os.environ.get("DEVIT_IDENT", "client:approver"), secret)
    until = time.monotonic() + asked.seconds
    while time.monotonic() < until:
        message = door.say("HEARTBEAT", {})
        if message is None:
            time.sleep(0.2)
            continue
        if message["msg_type"] == "ERR":
            raise SystemExit(f"approver: {message['payload']['message']}")
        if message["msg_type"] != "APPROVAL":
            continue
        answer(door, message, asked.grant)
        if asked.once:
            return
        until = time.monotonic() + asked.seconds
    sys.exit("approver: nothing was asked" if asked.once else 0)


if __name__ == "__main__":
    try:
        main()
    except OSError as err:
        sys.exit(f"approver: {err}")
