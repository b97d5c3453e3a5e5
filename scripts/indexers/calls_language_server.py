"""What a language server says of each call: `scripts/measure-calls php` runs it and packs its lines with scip.py.

    calls_language_server.py FOLDER LANGUAGE SUFFIX BELOW SERVER…

It asks for the definition of each name before a bracket, in the files whose paths begin with BELOW, and prints a line for each
name: file, line and columns from 0, whether it is defined there, and what it stands for, which is the place of its definition.
"""

import json
import os
import re
import subprocess
import sys
import urllib.parse

# A call, or what is made with `new`.
CALL = re.compile(r"(?:\bnew\s+([\\\w]+))|(\w+)\s*\(")
DEFINED = re.compile(r"\b(?:function\s+&?|class\s+|interface\s+|trait\s+|enum\s+)(\w+)")
WORDS = {"if", "while", "for", "foreach", "switch", "function", "fn", "catch", "array", "isset", "list", "empty", "match"}
AT_ONCE = 200


class Server:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.number = 0

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def ask(self, method, params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        return self.number

    def receive(self):
        length = 0
        while (line := self.process.stdout.readline().strip()) or not length:
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        message = json.loads(self.process.stdout.read(length))
        if "method" in message and "id" in message:
            self.send({"id": message["id"], "result": None})
        return message


def uri_of(path):
    return "file://" + urllib.parse.quote(path)


def questions(text):
    for number, line in enumerate(text.split("\n")):
        for found in CALL.finditer(line):
            which = 1 if found.group(1) else 2
            name = found.group(which).rsplit("\\", 1)[-1]
            if name not in WORDS and not line[: found.start()].rstrip().endswith("function"):
                yield number, found.end(which) - len(name), name


def files_below(root, suffix):
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            if name.endswith(suffix):
                yield os.path.relpath(os.path.join(folder, name), root)


def wait_for_index(server):
    """Returns once the server says that it has read all files."""
    while True:
        message = server.receive()
        if message.get("method", "").endswith("indexingEnded"):
            return


def main():
    root, language, suffix, below = os.path.realpath(sys.argv[1]), *sys.argv[2:5]
    server = Server(sys.argv[5:])
    home = os.path.join(os.environ.get("TMPDIR", "/tmp"), "calls-language-server")
    number = server.ask(
        "initialize",
        {
            "processId": os.getpid(),
            "rootUri": uri_of(root),
            "workspaceFolders": [{"uri": uri_of(root), "name": "measured"}],
            "capabilities": {"textDocument": {"definition": {}}},
            "initializationOptions": {"storagePath": home, "globalStoragePath": home, "clearCache": True},
        },
    )
    while server.receive().get("id") != number:
        pass
    server.send({"method": "initialized", "params": {}})
    wait_for_index(server)
    texts = {path: open(os.path.join(root, path), encoding="utf-8", errors="replace").read() for path in files_below(root, suffix)}
    lines = set()
    for path in (it for it in texts if it.startswith(below)):
        text, uri = texts[path], uri_of(os.path.join(root, path))
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        server.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        asked = list(questions(text))
        for begin in range(0, len(asked), AT_ONCE):
            open_questions = {}
            for line, column, name in asked[begin : begin + AT_ONCE]:
                position = {"line": line, "character": column}
                of = {"textDocument": {"uri": uri}, "position": position}
                open_questions[server.ask("textDocument/definition", of)] = (line, column, name)
            while open_questions:
                message = server.receive()
                if message.get("id") not in open_questions or "method" in message:
                    continue
                line, column, name = open_questions.pop(message["id"])
                found = message.get("result") or []
                for it in found if isinstance(found, list) else [found]:
                    lines.update(told(root, texts, (path, line, column, name), it))
        server.send({"method": "textDocument/didClose", "params": {"textDocument": {"uri": uri}}})
    print("\n".join(sorted(lines)))
    server.process.kill()


def told(root, texts, asked, found):
    path, line, column, name = asked
    file = urllib.parse.unquote(found["uri"].removeprefix("file://"))
    start = found["range"]["start"]
    symbol = f"{file}:{start['line']}:{start['character']}"
    yield f"{path}\t{line}\t{column}\t{column + len(name)}\tuses\t{symbol}"
    of = os.path.relpath(file, root)
    if of not in texts:
        return
    # The range may be that of the whole definition: its name is the first of that spelling.
    rows = texts[of].split("\n")
    for at in range(start["line"], min(start["line"] + 30, len(rows))):
        if where := DEFINED.search(rows[at]):
            defined = where.group(1)
            yield f"{of}\t{at}\t{where.start(1)}\t{where.end(1)}\tdefines\t{symbol}"
            return


main()
