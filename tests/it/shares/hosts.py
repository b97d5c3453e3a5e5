"""One process that has nearly its share of something by the own API, under many names, and takes the rest as a host of agents
(over HTTP or standard input), or as an editor; prints how much it has in all, the first no, and what a token changes about it."""
import base64, http.client, itertools, json, os, socket, struct, subprocess, sys

way, kind, own_socket, address, most = sys.argv[1:6]
most, ALONE = int(most), len(sys.argv) > 6
WHO = "other" if ALONE else "n"
# The last few are taken at the door.
REST = 12
ERA = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "host", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(own_socket)


own_connection = Unix("provost", timeout=60)


def own(path, body, name, token=None):
    headers = {"content-type": "application/json", "x-provost-api": "1", "x-provost-agent": name}
    headers |= {"authorization": f"Bearer {token}"} if token else {}
    own_connection.request("POST", path, json.dumps(body), headers)
    answer = own_connection.getresponse()
    return answer.status, json.loads(answer.read() or b"null")


def joined(name, known=set()):
    if name not in known:
        known.add(name)
        own("/join-crew", {"tool": "x", "capabilities": []}, name)


# What is asked for by the own API, and by a tool.
KINDS = {
    "lock": (lambda n: ("/lock", {"symbol": f"f{n}.ts:f"}), lambda n: ("lock_acquire", {"symbol": f"f{n}.ts:f"})),
    "intent": (
        lambda n: ("/declare", {"description": "x", "files": [f"f{n}.ts"]}),
        lambda n: ("intent_declare", {"description": "x", "files": [f"f{n}.ts"]}),
    ),
    "claim": (lambda n: ("/claim", {"path": f"f{n}.ts"}), lambda n: ("claim_acquire", {"path": f"f{n}.ts"})),
    "contract": (
        lambda n: ("/propose-contract", {"symbol": f"src/a.ts:f{n}"}),
        lambda n: ("contract_propose", {"symbol": f"src/a.ts:f{n}"}),
    ),
    "handoff": (
        lambda n: ("/offer-handoff", {"to": "b", "task": "t", "summary": "x"}),
        lambda n: ("handoff_offer", {"to": "b", "task": "t", "summary": "x"}),
    ),
    "approval": (
        lambda n: ("/delegate", {"task": f"{WHO}-t{n}", "worker": "shell", "goal": "true", "watch_patterns": []}),
        lambda n: ("delegate", {"task_id": f"{WHO}-t{n}", "worker": "shell", "goal": "true"}),
    ),
}


def by_http(name, tool, arguments, token=None):
    connection = http.client.HTTPConnection("127.0.0.1", int(address), timeout=60)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments, "_meta": ERA}}
    headers = {
        "accept": "application/json, text/event-stream", "content-type": "application/json",
        "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": tool,
    }
    headers |= {"authorization": f"Bearer {token}"} if token else {"x-provost-agent": name}
    connection.request("POST", "/mcp", json.dumps(message), headers)
    answer = connection.getresponse()
    text = answer.read()
    return told(json.loads(text) if answer.status == 200 else {"error": {"status": answer.status, "said": text.decode()}})


def told(answer):
    if "error" in answer:
        return 500, answer["error"]
    result = answer["result"]
    return (409 if result.get("isError") else 200), result["content"][0]["text"]


servers = {}


def by_stdio(name, tool, arguments, token=None):
    if name not in servers:
        command = [address, "mcp", "--as", name, "--tools", "all"]
        environment = dict(os.environ) | ({"PROVOST_TOKEN": token} if token else {})
        servers[name] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)
    server = servers[name]
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments, "_meta": ERA}}
    print(json.dumps(message), file=server.stdin, flush=True)
    while True:
        answer = json.loads(server.stdout.readline())
        if answer.get("id") == 1 and "method" not in answer:
            return told(answer)


class Editor:
    """A connection of an editor's."""

    def __init__(self, token=None):
        self.socket = socket.create_connection(("127.0.0.1", int(address)), timeout=60)
        path = f"/ws?token={token}" if token else "/ws"
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"{head}Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.stream = self.socket.makefile("rb")
        first = self.stream.readline()
        assert b" 101 " in first, first
        while self.stream.readline() != b"\r\n":
            pass

    def send(self, id, method, params):
        text = json.dumps({"id": id, "method": method, "params": params}).encode()
        length = struct.pack("!BH", 0xFE, len(text)) if len(text) > 125 else struct.pack("!B", 0x80 | len(text))
        self.socket.sendall(b"\x81" + length + bytes(4) + text)

    def message(self):
        _, length = self.stream.read(2)
        if length == 126:
            (length,) = struct.unpack("!H", self.stream.read(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", self.stream.read(8))
        return json.loads(self.stream.read(length))

    def ask(self, id, method, params):
        self.send(id, method, params)
        while True:
            message = self.message()
            if message.get("id") == id:
                return (409, message["error"]) if "error" in message else (200, message["result"])


def minted(name):
    status, said = own("/mint-token", {"agent": name, "scopes": ["read", "join", "coordinate", "delegate"]}, name)
    assert status == 200, said
    return said["secret"]


def by_editors():
    """Background tasks on a few connections; those with a token last."""
    editors = [Editor() for _ in range(1 if ALONE else 3)]
    for n in itertools.count():
        if ALONE and n == 1:
            return n, 0, None, None
        command = {"agentType": "shell", "task": f"sleep 100 # {n}"}
        status, said = editors[n % len(editors)].ask(f"r{n}", "background.launch", command)
        if status != 200:
            again = Editor(minted(f"late-{kind}")).ask("late", "background.launch", command)
            return n, status, said, again


def by_asking_editors():
    """Applies that wait for somebody's word, all at once; what is refused is answered, the others wait."""
    editors = [Editor() for _ in range(1 if ALONE else 4)]
    count = 1 if ALONE else most + 10
    for n in range(count):
        made = [{"id": f"{n}", "type": "file", "path": f"{WHO}{n}.txt", "content": "x", "language": "text"}]
        editors[n % len(editors)].send(f"r{n}", "artifacts.apply", {"artifacts": made})
    refused = []
    for editor in editors:
        editor.socket.settimeout(3)
        try:
            while True:
                refused.append(editor.message())
        except TimeoutError:
            pass
    said = next((it["error"] for it in refused if "error" in it), None)
    return count - len(refused), 409 if refused else 0, said, None


def by_tools():
    by_own, by_tool = KINDS[kind]
    ask = by_http if way == "http" else by_stdio
    needs_crew = kind in ("claim", "handoff")
    taken = 0
    while not ALONE and taken < most - REST:
        name = f"feat-{WHO}{taken % 40}"
        if needs_crew:
            joined(name)
        status, said = own(*by_own(taken), name)
        assert status == 200, (taken, said)
        taken += 1
    while True:
        if ALONE and taken == 1:
            return taken, 0, None, None
        name = f"feat-{WHO}{taken % (4 if way == 'stdio' else 40)}"
        if needs_crew:
            joined(name)
        asked = by_tool(most + 7 if ALONE else taken)
        status, said = ask(name, *asked)
        if status != 200:
            late = f"late-{kind}"
            token = minted(late)
            if needs_crew:
                own("/join-crew", {"tool": "x", "capabilities": []}, late, token)
            return taken, status, said, ask(late, *asked, token=token)
        taken += 1


taken, status, said, again = {"job": by_editors, "apply": by_asking_editors}.get(kind, by_tools)()
print(json.dumps({"taken": taken, "status": status, "said": said, "again": again}))
for server in servers.values():
    server.stdin.close()
    server.wait()
