"""Packs lines about names into a `.scip` index, which `scripts/measure-calls` holds the graph against.

    scip.py NAME VERSION < lines > index

A line has the file, the line and the columns from 0 in UTF-16, `defines` or `uses`, and the symbol, with tabs between them.
<https://github.com/sourcegraph/scip/blob/main/scip.proto>
"""

import sys


def number(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(which, content):
    return number(which << 3 | 2) + number(len(content)) + content


def occurrence(line, start, end, defines, symbol):
    places = b"".join(number(int(it)) for it in (line, start, end))
    roles = b"\x18\x01" if defines else b""
    return field(1, places) + field(2, symbol.encode()) + roles


def main():
    tool = field(1, sys.argv[1].encode()) + field(2, sys.argv[2].encode())
    sys.stdout.buffer.write(field(1, field(2, tool)))
    files = {}
    for row in sorted(set(sys.stdin)):
        path, line, start, end, kind, symbol = row.rstrip("\n").split("\t")
        files.setdefault(path, []).append(field(2, occurrence(line, start, end, kind == "defines", symbol)))
    for path, found in files.items():
        sys.stdout.buffer.write(field(2, field(1, path.encode()) + b"".join(found)))


main()
