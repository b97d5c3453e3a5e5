#!/usr/bin/env python3
"""A team of agents over the sample shop. They stand in for Claude Code, Codex, DevIt's backend, wit, git-paw and Agent
Protocol: each is to the daemon what its real client is, at the same door and in the same messages. What they do is always
the same.

    team.py           # begins the day, then works on until it is ended
    team.py --still   # begins the day, until something is in every view, and changes no more
"""

import itertools
import signal
import subprocess
import sys
import threading
import time

import doors
import two_agents

READY_SECONDS_MAX = 60
# What each round of the day that follows takes, and how many rounds there are: an hour and a half.
ROUND_SECONDS, ROUNDS = 15, 360
SESSIONS = {"claude": "5f0c9b1e-7a52-4c1d-9d0e-2b64a1f3c001", "codex": "0199a213-81c0-7800-8aa1-bbab2a035a53"}
ROUNDED = """\
Round what a customer pays to cents.
CHANGE src/cart.py
-         return vat(discount(net))
+         return round(vat(discount(net)), 2)
"""
RECEIPTS = """\
Print a receipt with a line for each thing.
CHANGE src/receipts.py
-     return f"{order['total']}"
+     lines = [f"{count} x {name}: {price:.2f}" for name, price, count in order["items"]]
+     return "\\n".join([*lines, f"total: {order['total']:.2f}"])
"""
WATCHED = (
    "for n in $(seq 900); do echo \"run $n\"; python3 tests/test_cart.py -v 2>&1 | "
    "grep -E '[.][.][.] |FAILED|OK'; sleep 5; done"
)
LONG = "Read all of the shop and write down what a customer waits for.\nWAIT 900\n"


class Team:
    """Everyone of the team; what holds a place lives as long as this."""

    def __init__(self):
        self.planner = doors.devit("client:planner")
        self.mcp = doors.Mcp("reviewer")
        self.hosts = {}

    def hooks_hold_what_is_written(self):
        """Claude Code writes a method and holds it; Codex is stopped there, and writes beside it."""
        for host, session in SESSIONS.items():
            self.hosts[host] = two_agents.Agent(host, session)
        old = "        net = sum(price * count for _, price, count in self.items)"
        new = "        net = sum(count * price for _, price, count in self.items)"
        dear = "    return net * 0.95 if net > 100 else net"
        expect(self.hosts["claude"].writes(old, new, "src/cart.py") is None)
        expect(self.hosts["codex"].writes(new, old, "src/cart.py") is not None)
        expect(self.hosts["codex"].writes(dear, dear.replace(">", ">="), "src/prices.py") is None)

    def wit_locks_and_agrees(self):
        """Agents with wit lock symbols, wait for them in a line, announce a change, and offer a signature."""
        for session, name in (("checkout", "Checkout"), ("payments", "Payments"), ("tokens", "Tokens")):
            expect("result" in doors.wit("register", sessionId=session, name=name))
        hour = 60 * 60 * 1000

        def lock(session, symbol, reason, **more):
            return doors.wit("lock.acquire", sessionId=session, symbolPath=symbol, ttlMs=hour, reason=reason, **more)

        expect("result" in lock("checkout", "src/orders.py:place", "orders in two steps"))
        expect("result" in lock("payments", "src/orders.py:refund", "refunds by the bank"))
        expect("result" in lock("tokens", "src/auth.py:Session.renew", "shorter tokens"))
        beside(lock, "checkout", "src/cart.py:Cart.total", "the total of an order", waitMs=hour)
        waits_for("checkout", "Cart.total")
        beside(lock, "payments", "src/orders.py:place", "when an order is paid", waitMs=hour)
        waits_for("payments", "place")
        beside(lock, "tokens", "src/orders.py:place", "who has ordered", waitMs=hour)
        waits_for("tokens", "place")
        # It would wait for one that waits for it.
        expect("error" in lock("checkout", "src/orders.py:refund", "the other way round", waitMs=1000))
        intent = {"description": "tokens of 32 bytes, renewed each day", "files": ["src/auth.py"]}
        intent["symbols"] = ["src/auth.py:Session.renew"]
        expect("result" in doors.wit("intent.declare", sessionId="tokens", **intent))
        expect("result" in doors.wit("contract.propose", sessionId="payments", symbolPath="src/orders.py:refund"))

    def git_paw_talks(self):
        """Agents on branches of their own say where they are, ask, and answer."""

        def says(kind, agent, **payload):
            doors.publish(f"agent.{kind}", agent, **payload)

        def writes(agent, to, text):
            says("feedback", to, **{"from": agent, "errors": [text]})

        says("status", "feat-login", status="working", modified_files=["src/auth.py"], message="log-in by link")
        says("status", "feat-search", status="working", modified_files=[], message="an index of all things")
        summary = "a log-in by link needs tokens of its own"
        says("intent", "feat-login", files=["src/auth.py"], summary=summary, valid_for_seconds=3600)
        writes("feat-search", "feat-login", "Your branch renames login(): the search calls it, too.")
        writes("feat-login", "feat-search", "It keeps its name. Only Session.renew() changes.")
        says("artifact", "feat-search", status="committed", exports=[], modified_files=["src/search.py"])
        says("question", "feat-login", question="Is a link good for ten minutes, or for a day?")

    def agent_protocol_claims(self):
        """A crew by Agent Protocol, whose members claim whole files."""
        at = "AGENT_PROTOCOL_URL"
        for agent, role in (("docs-1", "worker"), ("docs-2", "worker")):
            doors.post(at, "/agents/announce", {"id": agent, "tool": "cursor", "role": role})
        doors.post(at, "/resources/claim", {"path": "README.md", "agent_id": "docs-1"})

    def mcp_speaks(self):
        """A host with MCP writes to another agent."""
        self.mcp.call("message_send", to="checkout", text="place() has to bear an empty cart: test_cart has the case.")

    def devit_hands_out(self):
        """DevIt's backend hands out work: some ends, some fails, some waits for a person."""

        def hand(*words, **more):
            doors.delegate(self.planner, *words, **more)

        hand("shell", "find-slow-tests", "python3 -m unittest -q tests.test_slow 2>&1 | tail --lines=3; exit 1")
        hand("shell", "count-lines", "wc --lines src/*.py")
        hand("shell", "raise-salaries", "sed --in-place s/little/much/ salaries", working_dir="payroll")
        hand("claude", "round-totals", ROUNDED)
        self.until_ended("find-slow-tests", "count-lines", "round-totals")
        hand("claude", "print-receipts", RECEIPTS)
        self.until_ended("print-receipts")
        hand("claude", "read-the-shop", LONG)
        hand("claude", "tidy-imports", "Sort the imports, and remove those that nothing uses.\nWAIT 5\n")
        hand("shell", "watch-tests", WATCHED)
        hand("shell", "release-2.4", "sh publish.sh 2.4", working_dir="release")
        hand("shell", "release-2.5", "sh publish.sh 2.5 && git tag v2.5", working_dir="release")

    def reviewer_applies(self):
        """A host with MCP wants to write what a task has changed: a person looks at it first."""
        expect("pproval 3" in self.mcp.call("task_apply", task_id="print-receipts"))

    def until_ended(self, *tasks):
        def ended():
            said = self.planner.say("STATUS_REQUEST", {"filter": "active"})["payload"]
            return not {it["id"] for it in said["active_tasks"]} & set(tasks)

        until(ended, " and ".join(tasks))

    def begin(self):
        self.hooks_hold_what_is_written()
        self.devit_hands_out()
        self.wit_locks_and_agrees()
        self.git_paw_talks()
        self.agent_protocol_claims()
        self.mcp_speaks()
        self.reviewer_applies()

    def go_on(self):
        """Rounds of a day: signs of life, messages, small tasks."""
        places = itertools.cycle(("an index of names", "an index of prices", "an index of both"))
        for round_ in range(1, ROUNDS + 1):
            time.sleep(ROUND_SECONDS)
            doors.publish("agent.status", "feat-search", status="working", modified_files=[], message=next(places))
            doors.post("AGENT_PROTOCOL_URL", "/agents/docs-1/heartbeat", {})
            doors.post("AGENT_PROTOCOL_URL", "/agents/docs-2/heartbeat", {})
            self.planner.say("HEARTBEAT", {})
            if round_ % 4 == 0:
                doors.delegate(self.planner, "shell", f"count-lines-{round_ // 4}", "wc --lines src/*.py")


def beside(work, *words, **more):
    """Does something that takes long, beside the others."""
    threading.Thread(target=work, args=words, kwargs=more, daemon=True).start()


def expect(it):
    if not it:
        raise doors.Fault("the team is not where it should be")


def until(holds, what):
    end = time.monotonic() + READY_SECONDS_MAX
    while not holds():
        if time.monotonic() > end:
            raise doors.Fault(f"{what}: not within {READY_SECONDS_MAX} s")
        time.sleep(0.1)


def waits_for(agent, symbol):
    def waits():
        said = subprocess.run(["provost", "waits", "--json"], capture_output=True, text=True, check=True).stdout
        return f'"{agent}"' in said and symbol in said

    until(waits, f"{agent} waits for {symbol}")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    team = Team()
    team.begin()
    print("ready", flush=True)
    if "--still" not in sys.argv[1:]:
        team.go_on()
    signal.pause()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
