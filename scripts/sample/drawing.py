"""Draws lines of a terminal as a picture (SVG), for scripts/record and for the pictures of `provost ui`."""

import re
from html import escape

LINE, LETTER, MARGIN = 19, 8.05, 16
GROUND, INK = "#0d1117", "#e6edf3"
# Blocks are drawn and not written: a font leaves gaps between them, and then a QR code cannot be read.
BLOCKS = "█▀▄"


def head(columns, lines, label, style=""):
    """How a picture of so many columns and lines begins."""
    width, height = columns * LETTER + 2 * MARGIN, lines * LINE + 2 * MARGIN
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" role="img" '
        f'aria-label="{escape(label)}">'
    )
    yield f"<style>text{{font:13px ui-monospace,Menlo,Consolas,monospace;white-space:pre{style}</style>"
    yield f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>'


def written(text, line, colour, column=0, more=""):
    """A text in its place, with further attributes."""
    x, y = MARGIN + column * LETTER, MARGIN + LINE * line + 13
    return f'<text x="{x:g}" y="{y}" fill="{colour}"{more} xml:space="preserve">{escape(text)}</text>'


def blocks(text, line, column, colour):
    """The upper and the lower halves of the blocks in a text, each run of them as one rectangle."""
    for half, signs in ((0, "█▀"), (1, "█▄")):
        for run in re.finditer(f"[{signs}]+", text):
            x, y = MARGIN + (column + run.start()) * LETTER, MARGIN + LINE * (line + half / 2) - 1
            size = f'width="{len(run[0]) * LETTER:g}" height="{LINE / 2:g}"'
            yield f'<rect x="{x:g}" y="{y:g}" {size} fill="{colour}" shape-rendering="crispEdges"/>'


def cells(spans, line):
    """A line of spans: what it says, its colour, its ground, and whether it is bold."""
    column = 0
    for text, colour, ground, is_bold in spans:
        width = len(text) * LETTER
        x, y = MARGIN + column * LETTER, MARGIN + LINE * line - 1
        if ground != GROUND:
            yield f'<rect x="{x:g}" y="{y}" width="{width:g}" height="{LINE}" fill="{ground}"/>'
        yield from blocks(text, line, column, colour)
        plain = "".join(" " if sign in BLOCKS else sign for sign in text)
        if plain.strip():
            weight = ' font-weight="700"' if is_bold else ""
            # As wide as in the terminal, in each font.
            yield written(plain, line, colour, column, f'{weight} textLength="{width:g}"')
        column += len(text)
