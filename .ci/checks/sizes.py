#!/usr/bin/env python3
"""A file holds one idea. One that is longer than 400 lines says in its first 15 why it is."""

from __future__ import annotations

import re

from common import Findings, files, relative

LIMIT, TEST_LIMIT, FIRST_LINES = 400, 600, 15
REASON = re.compile(r"(?://|#) Long because: \S")
EXCLUDED = ("protocol-spec/",)


def main() -> None:
    found = Findings()
    for path in files(".swift", ".c", ".cpp", ".h", ".py", ".sh", ".md"):
        name = relative(path)
        if name.startswith(EXCLUDED):
            continue
        lines = path.read_text(encoding="utf-8").split("\n")
        limit = TEST_LIMIT if name.startswith("Tests/") else LIMIT
        if len(lines) - 1 > limit and not any(REASON.search(line) for line in lines[:FIRST_LINES]):
            found.add(path, limit + 1, f"{len(lines) - 1} lines, more than {limit}: split it by ideas, or give the reason "
                                       "in a line “// Long because: …” at its top")
    found.exit()


if __name__ == "__main__":
    main()
