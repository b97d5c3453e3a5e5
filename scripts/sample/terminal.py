"""A real terminal (tmux) in which a command runs, and pictures of what it shows."""

import os
import re
import subprocess
import time

import drawing

WAIT_SECONDS_MAX = 30
SIXTEEN = (
    "#484f58 #ff7b72 #7ee787 #d29922 #79c0ff #d2a8ff #56d4dd #b1bac4 "
    "#8b949e #ffa198 #a5f3ae #e3b341 #a5d6ff #e2c5ff #b3f0ff #ffffff"
).split()


class Terminal:
    """A terminal with a server of tmux of its own, ended by `end`."""

    def __init__(self, folder, line, columns, rows):
        self.socket, self.columns, self.rows = os.path.join(folder, "tmux"), columns, rows
        begin = ["-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), line]
        # A session of its own: what runs below a process that has spoken as an agent is no person.
        self.tmux(*begin, before=("setsid", "--fork", "--wait"))

    def tmux(self, *words, before=()):
        command = [*before, "tmux", "-u", "-S", self.socket, *words]
        environment = os.environ | {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    def press(self, key):
        self.tmux("send-keys", "-t", "0", key)

    def shows(self, text):
        """Waits until a text is there; all that is there then."""
        end = time.monotonic() + WAIT_SECONDS_MAX
        while text not in (shown := self.tmux("capture-pane", "-p", "-t", "0")):
            if time.monotonic() > end:
                raise SystemExit(f"pictures: the terminal does not show {text!r}:\n{shown}")
            time.sleep(0.05)
        return shown

    def picture(self, path, label):
        """Writes what it shows as a picture."""
        lines = self.tmux("capture-pane", "-p", "-e", "-t", "0").splitlines()[: self.rows]
        drawn = list(drawing.head(self.columns, self.rows, label, "}"))
        pen = Pen()
        for number, line in enumerate(lines):
            drawn += drawing.cells(pen.spans(line), number)
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join([*drawn, "</svg>"]) + "\n")

    def end(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], stderr=subprocess.DEVNULL, check=False)


class Pen:
    """The colours that a terminal writes with, as escape sequences change them."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.colour, self.ground, self.is_bold, self.is_dim, self.is_turned = drawing.INK, drawing.GROUND, False, False, False

    def spans(self, line):
        """The parts of a line that look alike."""
        for part in re.split(r"(\x1b\[[0-9;:]*m)", line):
            if part.startswith("\x1b["):
                self.take([int(it or 0) for it in re.split("[;:]", part[2:-1])])
            elif part:
                colour, ground = (self.ground, self.colour) if self.is_turned else (self.colour, self.ground)
                yield part, "#8b949e" if self.is_dim and colour == drawing.INK else colour, ground, self.is_bold

    def take(self, numbers):
        """What an escape sequence says about the colours."""
        while numbers:
            it = numbers.pop(0)
            if it == 0:
                self.reset()
            elif it in (1, 2, 7):
                setattr(self, {1: "is_bold", 2: "is_dim", 7: "is_turned"}[it], True)
            elif it == 22:
                self.is_bold = self.is_dim = False
            elif it == 27:
                self.is_turned = False
            elif it in (38, 48):
                setattr(self, "colour" if it == 38 else "ground", self.further(numbers))
            elif it == 39:
                self.colour = drawing.INK
            elif it == 49:
                self.ground = drawing.GROUND
            elif it % 10 < 8 and it // 10 in (3, 4, 9, 10):
                name = "colour" if it // 10 in (3, 9) else "ground"
                setattr(self, name, SIXTEEN[it % 10 + (8 if it // 10 in (9, 10) else 0)])

    @staticmethod
    def further(numbers):
        """A colour of many, by its number or its parts."""
        if numbers.pop(0) == 2:
            red, green, blue, *numbers[:] = numbers
            return f"#{red:02x}{green:02x}{blue:02x}"
        number = numbers.pop(0)
        if number < 16:
            return SIXTEEN[number]
        if number >= 232:
            return "#" + f"{8 + (number - 232) * 10:02x}" * 3
        steps = (number - 16) // 36, (number - 16) // 6 % 6, (number - 16) % 6
        return "#" + "".join(f"{it * 40 + 55 if it else 0:02x}" for it in steps)
