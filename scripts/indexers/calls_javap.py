"""What the compiler of Kotlin has made of each call: `scripts/measure-calls kotlin` runs it and packs its lines with scip.py.

    calls_javap.py FOLDER CLASSES

It reads the classes that were compiled from the sources of a folder, as `javap` prints them, and prints a line for each name: file,
line and columns from 0, whether it is defined there, and what it stands for. Calls of inline functions leave no trace and are left
out, and so is what has no code, such as a method of an interface.
"""

import os
import re
import subprocess
import sys

HEAD_LINES_MAX = 20
SOURCE = re.compile(r'^Compiled from "(.*)"')
CLASS = re.compile(r"^(?:[\w@]+ )*(?:class|interface|enum) ([\w.$]+)")
METHOD = re.compile(r"^  (?:[\w<>.,?\[\] &$]+ )?([\w.$<>-]+)\((.*)\)(?: throws .*)?;$")
CALL = re.compile(r"^ +(\d+): invoke\w+ +#\d+(?:, +\d+)? +// (?:Interface)?Method (?:([\w/$]+)\.)?\"?([\w$<>-]+)\"?:(\S+)")
LINE = re.compile(r"^ +line (\d+): (\d+)")


class Method:
    def __init__(self, name):
        self.name, self.calls, self.lines, self.described = name, [], [], None

    def line_at(self, offset):
        before = [line for line, start in self.lines if start <= offset]
        return before[-1] if before else None


def classes_of(folder):
    names = [
        os.path.join(below, name) for below, _, names in os.walk(folder) for name in names if name.endswith(".class")
    ]
    for begin in range(0, len(names), 500):
        command = ["javap", "-c", "-l", "-p", "-s", *names[begin : begin + 500]]
        yield from read(subprocess.run(command, capture_output=True, text=True).stdout.split("\n"))


def read(rows):
    source = owner = method = None
    methods = []
    for row in rows:
        if found := SOURCE.match(row):
            if owner:
                yield source, owner, methods
            source, owner, methods, method = found.group(1), None, [], None
        elif owner is None and (found := CLASS.match(row)):
            owner = found.group(1).replace(".", "/")
        elif found := METHOD.match(row):
            name = found.group(1)
            method = Method("<init>" if name.replace(".", "/") == owner else name)
            methods.append(method)
        elif method and row.startswith("    descriptor: "):
            method.described = row.split(": ")[1]
        elif method and (found := CALL.match(row)):
            method.calls.append((int(found.group(1)), found.group(2) or owner, found.group(3), found.group(4)))
        elif method and (found := LINE.match(row)):
            method.lines.append((int(found.group(1)), int(found.group(2))))
    if owner:
        yield source, owner, methods


def sources_of(root):
    found = {}
    for below, _, names in os.walk(root):
        for name in names:
            if name.endswith((".kt", ".java")):
                path = os.path.join(below, name)
                with open(path, encoding="utf-8", errors="replace") as file:
                    text = file.read()
                package = re.search(r"^package ([\w.]+)", text, re.M)
                key = (package.group(1).replace(".", "/") if package else "", name)
                found.setdefault(key, []).append((os.path.relpath(path, root), text.split("\n")))
    return found


def source_name(owner, name):
    """The name by which the source calls what the class calls so."""
    if name == "<init>":
        return owner.rsplit("/", 1)[-1].rsplit("$", 1)[-1]
    return name.split("$")[0].split("-")[0]


def main():
    root = os.path.realpath(sys.argv[1])
    texts, out = sources_of(root), set()
    for source, owner, methods in classes_of(sys.argv[2]):
        # Where two files have one name in one package, it cannot be told which is meant.
        files = texts.get((owner.rpartition("/")[0], source), [])
        if len(files) != 1:
            continue
        path, lines = files[0]

        def say(number, name, before, kind, symbol):
            if 0 < number <= len(lines) and (found := re.search(before + r"\b(" + re.escape(name) + r")\b", lines[number - 1])):
                out.add(f"{path}\t{number - 1}\t{found.start(1)}\t{found.end(1)}\t{kind}\t{symbol}")
                return True
            return False

        for method in methods:
            name, symbol = source_name(owner, method.name), f"{owner}.{method.name}{method.described}"
            for offset, of, called, described in method.calls:
                line = method.line_at(offset)
                if line and not called.startswith(("access$", "lambda$")) and not called.endswith("$default"):
                    say(line, source_name(of, called), "", "uses", f"{of}.{called}{described}")
                elif line and called.endswith("$default"):
                    say(line, source_name(of, called), "", "uses", f"{of}.{called.removesuffix('$default')}")
            first = min((line for line, _ in method.lines if line <= len(lines)), default=None)
            if first and "$" not in method.name:
                before = r"\bclass\s+" if method.name == "<init>" else r"\bfun\b.*?"
                for number in range(first, max(0, first - HEAD_LINES_MAX), -1):
                    if say(number, name, before, "defines", symbol):
                        say(number, name, before, "defines", f"{owner}.{method.name}")
                        break
    print("\n".join(sorted(out)))


main()
