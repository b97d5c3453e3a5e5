"""One process that takes all it can get at one door under three hundred names; prints how much that was, and the first no."""
import http.client, json, socket, sys

kind, address = sys.argv[1:3]
MOST = int(sys.argv[3]) if len(sys.argv) > 3 else 30000
WHO = "other" if len(sys.argv) > 3 else "n"
NAMES = 300


class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(address)


def connect():
    if address.startswith("/"):
        return Unix("provost", timeout=30)
    return http.client.HTTPConnection("127.0.0.1", int(address), timeout=30)


connection = connect()


def ask(path, body, **headers):
    headers = {"content-type": "application/json", "x-provost-api": "1"} | headers
    connection.request("POST", path, json.dumps(body), headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read() or b"null")


def own(path, body):
    return lambda name, n: ask(path, body(n), **{"x-provost-agent": name})


def wit(method, params):
    def call(name, n):
        status, said = ask("/rpc", {"jsonrpc": "2.0", "witVersion": "1", "id": "1", "method": method, "params": {"sessionId": name} | params(n)})
        return (status if "error" not in said else 409), said
    return call


ASK = {
    "own-lock": own("/lock", lambda n: {"symbol": f"f{n}.ts:f"}),
    "own-intent": own("/declare", lambda n: {"description": "x", "files": [f"f{n}.ts"]}),
    "own-contract": own("/propose-contract", lambda n: {"symbol": f"src/a.ts:f{n}"}),
    "wit-lock": wit("lock.acquire", lambda n: {"symbolPath": f"f{n}.ts:f", "ttlMs": 600000}),
    "wit-intent": wit("intent.declare", lambda n: {"description": "x", "files": [f"f{n}.ts"]}),
    "wit-name": wit("register", lambda n: {"name": "x"}),
    "task": lambda name, n: ask("/tasks", {"title": f"t{n}", "description": "x", "assigned_by": name}),
    "handoff": lambda name, n: ask("/handoffs", {"from_agent": name, "to_agent": "b", "task_id": "t", "summary": "x"}),
    "claim": lambda name, n: ask("/resources/claim", {"path": f"f{n}.ts", "agent_id": name}),
    "member": lambda name, n: ask("/agents/announce", {"id": name, "tool": "x"}),
    "name": lambda name, n: ask("/publish", {"type": "agent.status", "agent_id": name, "payload": {
        "status": "working", "modified_files": []}}),
}[kind]

OTHER = 2500 if kind == "own-contract" else 99999

if kind in ("claim", "task", "handoff"):
    for n in range(min(NAMES, MOST)):
        ask("/agents/announce", {"id": f"feat-{WHO}{n}", "tool": "x"})

taken = 0
while taken < MOST:
    # What others ask for is something else.
    name = taken if kind in ("name", "member", "wit-name") else taken % NAMES
    status, said = ASK(f"feat-{WHO}{name}", taken if WHO == "n" else OTHER)
    if status >= 300:
        print(json.dumps({"taken": taken, "status": status, "said": said}))
        break
    taken += 1
else:
    print(json.dumps({"taken": taken, "status": 0, "said": None}))
