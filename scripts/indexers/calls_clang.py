"""What clang says of each call in C and C++: `scripts/measure-calls clang` runs it and packs its lines with scip.py.

    calls_clang.py FOLDER ARGUMENTS-OF-THE-COMPILER…

It prints a line for each name: file, line and columns from 0, whether it is defined there, and what it stands for. Constructors
and what only a template's instance would tell are left out. It needs the package `libclang`.
"""

import os
import sys

from clang.cindex import Cursor, CursorKind, Index, TranslationUnitLoadError, conf

FUNCTIONS = {
    CursorKind.FUNCTION_DECL,
    CursorKind.CXX_METHOD,
    CursorKind.FUNCTION_TEMPLATE,
    CursorKind.CONVERSION_FUNCTION,
}
USES = {CursorKind.DECL_REF_EXPR, CursorKind.MEMBER_REF_EXPR}
SOURCES = (".c", ".cc", ".cpp", ".cxx")


def name_of(cursor: Cursor) -> str:
    return cursor.spelling.split("<")[0]


def place(root: str, cursor: Cursor):
    at = cursor.location
    if at.file is None:
        return None
    path = os.path.relpath(os.path.realpath(at.file.name), root)
    return None if path.startswith("..") else (path, at.line - 1, at.column - 1)


def lines_of(root: str, unit):
    # What a library's headers say at their top is passed over whole.
    own = (it for it in unit.cursor.get_children() if place(root, it))
    for cursor in (inner for it in own for inner in it.walk_preorder()):
        try:
            kind = cursor.kind
        except ValueError:
            continue
        if kind in FUNCTIONS and cursor.is_definition():
            of, said = cursor, "defines"
        elif kind in USES:
            of, said = cursor.referenced, "uses"
            if of is None or of.kind not in FUNCTIONS:
                continue
            # An instance goes by its template.
            of = conf.lib.clang_getSpecializedCursorTemplate(of) or of
        else:
            continue
        at = place(root, cursor)
        if at and of.get_usr():
            path, line, column = at
            yield f"{path}\t{line}\t{column}\t{column + len(name_of(of))}\t{said}\t{of.get_usr()}"


def main():
    root, arguments = os.path.realpath(sys.argv[1]), sys.argv[2:]
    index, seen = Index.create(), set()
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith(SOURCES):
                try:
                    unit = index.parse(os.path.join(folder, name), arguments)
                except TranslationUnitLoadError:
                    continue
                seen.update(lines_of(root, unit))
    print("\n".join(sorted(seen)))


main()
