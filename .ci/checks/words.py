#!/usr/bin/env python3
"""The repository speaks of the product only, to somebody who has nothing but the repository."""

from __future__ import annotations

import re

from common import Findings, files, relative

RULES = [
    (re.compile(r"(?<![\w.~$}/])/(?:work|tmp|home|root|Users|opt|mnt|srv)(?:/|\b(?![-.\w]))"),
     "a path of one machine: make it relative, take it from an option, or ask for a temporary folder"),
    (re.compile(r"(?<![\w&/\"'(])#\d+\b|\b[Ii]ssue #?\d+\b"), "a number of a tracker: say what it was about"),
    (re.compile(r"\b(?:TO[D]O|FIX[M]E|XX[X])\b"), "unfinished business: finish it, or say in the documentation what is missing"),
    (re.compile(r"\b(?:founde[r]|sub-?agen[t]s?|shared/[a-z-]+\.m[d])\b"),
     "not part of the product: say it so that a reader of the repository alone understands it"),
]
SKIPPED = {"LICENSE"}


def main() -> None:
    found = Findings()
    for path in files():
        if path.name in SKIPPED:
            continue
        # Plots of what was measured.
        if path.suffix == ".png" and relative(path).startswith("docs/performance/"):
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            found.add(path, 1, "not UTF-8: binary files have no place here")
            continue
        for number, line in enumerate(text.split("\n"), 1):
            for pattern, fix in RULES:
                if match := pattern.search(line):
                    found.add(path, number, f"{match.group(0)!r} is {fix}")
    found.exit()


if __name__ == "__main__":
    main()
