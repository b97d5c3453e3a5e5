#!/usr/bin/env python3
"""Takes the pictures of the page and of the terminal over the sample team: see scripts/pictures, which starts it.

    pictures.py FOLDER        # those that documents show
    pictures.py FOLDER all    # each view of the page as well, in light and dark, at a desk and on a phone
"""

import json
import os
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path

from browser import Browser
from terminal import Terminal

# Width, the most of the height that is shown, points for each point, and how it is called.
DESK, WIDE, PHONE = (1160, 1180, 1.5, "desk"), (1280, 1000, 1.5, "desk"), (360, 1100, 2, "phone")
VIEWS = {
    "needs": "/", "approval": "/a/2", "apply": "/a/3", "answered": "/a/1", "tasks": "/tasks", "task": "/t/watch-tests",
    "changes": "/t/print-receipts", "agents": "/agents", "locks": "/locks", "waits": "/waits", "intents": "/intents",
    "messages": "/messages", "events": "/e", "audit": "/audit", "health": "/health", "search": "/search?q=order*",
    "passkeys": "/passkeys",
}
WORDS_TO_ANSWER = (".block.words", ".answer")
# What documents show: the view, the size, the colours, and the first and the last part where it is not the top.
SHOWN = [
    ("needs", DESK, "light", (None, "#blocks > :nth-child(3)")),
    ("needs", DESK, "dark", (None, "#blocks > :nth-child(3)")),
    ("needs", PHONE, "light", ()),
    ("approval", DESK, "light", WORDS_TO_ANSWER),
    ("approval", DESK, "dark", WORDS_TO_ANSWER),
    ("approval", PHONE, "dark", WORDS_TO_ANSWER),
    ("apply", DESK, "dark", WORDS_TO_ANSWER),
    ("task", DESK, "light", ("h1", "pre.log")),
    ("waits", WIDE, "light", ("h1", ".graph")),
    ("locks", DESK, "dark", ()),
]
# Screens of `provost ui`: the keys that lead there, the name, what is there then, and what it is.
SCREENS = [
    ([], "needs", "Changes to take in", "provost ui: what needs a person"),
    (["Enter"], "approval", "apply.ask", "provost ui: an approval beside the list"),
    (["j", "a"], "passkey", "of this machine alone", "provost ui: a rule wants a passkey, and the screen names the page and waits"),
]


def at_a_terminal(line):
    """What a command prints at a terminal of a person: in a session of its own, since agents have spoken below this one."""
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        inner = f"script --quiet --return --command {line!r} {said} </dev/null >/dev/null 2>&1"
        subprocess.run(["setsid", "--fork", "--wait", "sh", "-c", inner], check=True)
        return said.read_text()


def enrol(browser, address):
    """Enrols a passkey on the page, as a person does."""
    text = at_a_terminal("provost passkey add --even-so --json")
    code = json.loads(text[text.index("{") : text.rindex("}") + 1])["code"]
    browser.authenticator()
    browser.go(address + "/passkeys")
    browser.write("#code", code)
    browser.write("#passkey-name", "phone")
    browser.click("button[data-does=enrol]")
    browser.shows("phone answers from now on")


def name_of(view, size, scheme):
    return f"page-{view}-{size[3]}-{scheme}.webp"


def take(browser, address, folder, wanted):
    """Takes pictures of views."""
    for view, size, scheme, part in wanted:
        width, high, scale, _ = size
        browser.looks(width, high, scale, scheme)
        browser.go(address + VIEWS[view])
        if view == "task":
            browser.until("document.querySelector('pre.log')?.textContent.includes('run 2')")
        is_clean(browser.eval("document.body.innerText"), view)
        browser.picture(folder / name_of(view, size, scheme), width, high, *part)
        print(f"pictures: {name_of(view, size, scheme)}", flush=True)


def is_clean(text, view):
    """Ends the run where something of this machine would be in a picture that documents show."""
    user = pwd.getpwuid(os.getuid())
    own = [str(Path(os.environ["HOME"]).parent), user.pw_dir, f"user:{user.pw_name}"]
    found = [it for it in own if it in text]
    if found and view in {shown for shown, *_ in SHOWN}:
        raise SystemExit(f"pictures: {view} shows {found[0]}, which is of this machine")


def take_screens(folder):
    """Takes pictures of `provost ui` in a terminal, each from its beginning."""
    for keys, name, shown, label in SCREENS:
        with tempfile.TemporaryDirectory() as place:
            terminal = Terminal(place, "provost ui --ground dark", 100, 30)
            try:
                terminal.shows("Changes to take in")
                for key in keys:
                    terminal.press(key)
                is_clean(terminal.shows(shown), "needs")
                terminal.picture(folder / f"terminal-{name}.svg", label)
                print(f"pictures: terminal-{name}.svg", flush=True)
            finally:
                terminal.end()


def main():
    folder, is_all = Path(sys.argv[1]), sys.argv[2:] == ["all"]
    opened = subprocess.run(["provost", "web", "--json"], capture_output=True, check=True).stdout
    address = json.loads(opened)["address"].rstrip("/")
    wanted = SHOWN
    if is_all:
        looks = [(size, scheme) for size in (DESK, PHONE) for scheme in ("light", "dark")]
        wanted = [(view, *look, ()) for view in VIEWS for look in looks]
    with tempfile.TemporaryDirectory() as place:
        browser = Browser(place)
        try:
            enrol(browser, address)
            browser.go(address + "/a/1")
            browser.click("button[data-does=approve]")
            browser.shows("granted (proof: passkey, phone)")
            take(browser, address, folder, wanted)
        finally:
            browser.end()
    take_screens(folder)


if __name__ == "__main__":
    main()
