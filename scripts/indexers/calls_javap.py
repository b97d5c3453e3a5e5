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
CLASS = re.compile(r"^(?:[\w@]+ )*(?:class|interface|enum) ([\w.$]+)(.*)\{$")
METHOD = re.compile(r"^  (?:[\w<>.,?\[\] &$]+ )?([\w.$<>-]+)\((.*)\)(?: throws .*)?;$")
CALL = re.compile(r"^ +(\d+): invoke\w+ +#\d+(?:, +\d+)? +// (?:Interface)?Method (?:([\w/$]+)\.)?\"?([\w$<>-]+)\"?:(\S+)")
LINE = re.compile(r"^ +line (\d+): (\d+)")


class Method:
    def __init__(self, name):
        self.name, self.calls, self.lines = name, [], []

    def line_at(self, offset):
        before = [line for line, start in self.lines if start <= offset]
        return before[-1] if before else None


def classes_of(folder):
    """The source, the name, the types above and the methods of each class."""
    names = [
        os.path.join(below, name) for below, _, names in os.walk(folder) for name in names if name.endswith(".class")
    ]
    for begin in range(0, len(names), 500):
        command = ["javap", "-c", "-l", "-p", *names[begin : begin + 500]]
        yield from read(subprocess.run(command, capture_output=True, text=True).stdout.split("\n"))


def read(rows):
    source = owner = method = None
    methods, above = [], []
    for row in rows:
        if found := SOURCE.match(row):
            if owner:
                yield source, owner, above, methods
            source, owner, methods, method = found.group(1), None, [], None
        elif owner is None and (found := CLASS.match(row)):
            owner = found.group(1).replace(".", "/")
            plain = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", found.group(2))))
            above = [it.replace(".", "/") for it in re.findall(r"[\w.$]+", plain) if it not in ("extends", "implements")]
        elif found := METHOD.match(row):
            name = found.group(1)
            method = Method("<init>" if name.replace(".", "/") == owner else name)
            methods.append(method)
        elif method and (found := CALL.match(row)):
            method.calls.append((int(found.group(1)), found.group(2) or owner, found.group(3)))
        elif method and (found := LINE.match(row)):
            method.lines.append((int(found.group(1)), int(found.group(2))))
    if owner:
        yield source, owner, above, methods


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


def symbol_of(classes, owner, name):
    """What the source calls by a name, by the class that has it. Overloads are one symbol, and defaults make no other one."""
    owner, name = owner.removesuffix("$DefaultImpls"), name.removesuffix("$default")
    # A class that is put together of several files has its functions in parts.
    look, seen = [it for it in classes if it.startswith(owner + "__")] + [owner], set()
    while look and name != "<init>":
        at = look.pop(0)
        if at in classes and at not in seen:
            seen.add(at)
            above, methods = classes[at]
            if name in methods:
                owner = at
                break
            look.extend(above)
    return f"{owner}.{source_name(owner, name)}"


def main():
    root = os.path.realpath(sys.argv[1])
    texts, out = sources_of(root), set()
    rows = list(classes_of(sys.argv[2]))
    classes = {owner: (above, {it.name for it in methods}) for _, owner, above, methods in rows}
    # Without code, as in an interface, it has no place.
    placeless = {symbol_of(classes, owner, it.name) for _, owner, _, methods in rows for it in methods if not it.lines}
    for source, owner, _, methods in rows:
        # Where two files have one name in one package, it cannot be told which is meant.
        files = texts.get((owner.rpartition("/")[0], source), [])
        if len(files) != 1:
            continue
        path, lines = files[0]

        def say(number, name, before, kind, symbol):
            found = re.search(before + r"\b(" + re.escape(name) + r")\b", lines[number - 1]) if 0 < number <= len(lines) else None
            if found:
                out.add(f"{path}\t{number - 1}\t{found.start(1)}\t{found.end(1)}\t{kind}\t{symbol}")
            return found

        for method in methods:
            for offset, of, called in method.calls:
                line = method.line_at(offset)
                symbol = symbol_of(classes, of, called)
                if line and symbol not in placeless and not called.startswith(("access$", "lambda$")):
                    say(line, source_name(of, called), "", "uses", symbol)
            first = min((line for line, _ in method.lines if line <= len(lines)), default=None)
            if first and not method.name.endswith("$default"):
                name, symbol = source_name(owner, method.name), symbol_of(classes, owner, method.name)
                before = r"\bclass\s+" if method.name == "<init>" else r"\bfun\b.*?"
                above = range(first, max(0, first - HEAD_LINES_MAX), -1)
                next((it for it in above if say(it, name, before, "defines", symbol)), None)
    print("\n".join(sorted(out)))


main()
