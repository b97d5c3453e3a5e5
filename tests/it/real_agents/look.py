#!/usr/bin/python3
"""Looks for a key in everything that a worker can read: environments, memories, command lines and files.

    look.py FIRST SECOND    the two halves of the key, so that it is nowhere in this process as a whole

Writes `seen.txt`: the places that have it, and some that have the token of the run, which the same search has to find.
"""
import os
import sys

FIRST, SECOND = (it.encode() for it in sys.argv[1:3])
NAMES = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "COPILOT_PROVIDER_API_KEY")
TOKEN = next(os.environ[it] for it in NAMES if it in os.environ).encode()
LARGEST = 64 << 20
found, control = [], []


def search(place, data):
    at = data.find(FIRST)
    while at >= 0:
        if data[at + len(FIRST):at + len(FIRST) + len(SECOND)] == SECOND:
            found.append(place)
            break
        at = data.find(FIRST, at + 1)
    if TOKEN in data:
        control.append(place)


def read(place):
    try:
        if os.path.getsize(place) <= LARGEST:
            with open(place, "rb") as file:
                search(place, file.read(LARGEST))
    except OSError:
        pass


def memory(pid):
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
            for line in maps:
                begin, end = (int(it, 16) for it in line.split()[0].split("-"))
                if " r" in line and end - begin <= 1 << 30:
                    try:
                        mem.seek(begin)
                        search(f"memory of {pid}", mem.read(end - begin))
                    except (OSError, ValueError, OverflowError):
                        pass
    except OSError:
        pass


for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline"):
        read(f"/proc/{pid}/{name}")
    if int(pid) != os.getpid():
        memory(pid)
for top in (os.environ["HOME"], "/tmp", "/dev/shm", "/run", "/etc", os.getcwd()):
    for folder, _, names in os.walk(top):
        for name in names:
            read(os.path.join(folder, name))
# Not this process' own environment, which has the token in any case.
control = sorted({it for it in control if f"/proc/{os.getpid()}/" not in it})
with open("seen.txt", "w") as file:
    file.write(f"key: {sorted(set(found))}\ntoken: {control[:5]}\n")
