"""What the Swift compiler says of each call: `scripts/measure-calls swift` runs it and packs its lines with scip.py.

    calls_swift.py FOLDER COMPILER ARGUMENTS-OF-THE-COMPILER…

All files of the folder are one module. The compiler shows the tree that it has made of them, in which each name has the place of
what it stands for. It prints a line for each name: file, line and columns from 0, whether it is defined there, and what it stands
for.
"""

import os
import re
import subprocess
import sys

# `(declref_expr type="…" location=/a/B.swift:5:3 range=[…] decl="m.(file).B.find(by:)@/a/C.swift:1:6" …)`; behind the place there may be
# what the types of a template are.
USE = re.compile(r'\(\w*declref_expr\b.*? location=(/.*?\.swift):(\d+):(\d+) .*?decl="([^"@]*)@([^"@]+?):(\d+):(\d+)[" ]')


def of_paths(root):
    for folder, _, names in sorted(os.walk(root)):
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".swift"))


class Lines:
    """Lines of files, for columns in UTF-16."""

    def __init__(self, root):
        self.root, self.known = root, {}

    def row(self, path, line, column, said, symbol):
        """A line of the output, or none where no name is at the place."""
        name = os.path.relpath(path, self.root)
        if name.startswith("..") or not path.endswith(".swift"):
            return None
        if path not in self.known:
            with open(path, "rb") as file:
                self.known[path] = file.read().split(b"\n")
        whole = self.known[path]
        if line > len(whole):
            return None
        before, rest = whole[line - 1][: column - 1], whole[line - 1][column - 1 :]
        word = re.match(rb"`?[\w$]+", rest) or re.match(rb"[-+*/%<>=!&|^~?.]+", rest)
        if not word:
            return None
        width = lambda text: len(text.decode(errors="replace").encode("utf-16-le")) // 2
        start = width(before) + word.group().startswith(b"`")
        end = start + width(word.group().lstrip(b"`"))
        return f"{name}\t{line - 1}\t{start}\t{end}\t{said}\t{symbol}"


def main():
    root, compiler = os.path.realpath(sys.argv[1]), sys.argv[2:]
    command = [*compiler, "-dump-ast", "-module-name", "measured", *of_paths(root)]
    shown = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    lines, seen = Lines(root), set()
    for text in shown.stdout:
        for path, line, column, name, there, there_line, there_column in USE.findall(text):
            # Those of functions end with their labels; all others are values.
            if not name.endswith(")"):
                continue
            symbol = f"{os.path.relpath(there, root)}:{there_line}:{there_column}"
            seen.add(lines.row(path, int(line), int(column), "uses", symbol))
            seen.add(lines.row(there, int(there_line), int(there_column), "defines", symbol))
    sys.stdout.writelines(f"{it}\n" for it in sorted(it for it in seen if it))


main()
