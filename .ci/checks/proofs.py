#!/usr/bin/env python3
"""docs/failures-elsewhere.md names a test for each thing that cannot happen here; each is one that exists."""

from __future__ import annotations

import re

from common import ROOT, Findings, files

PAGE = ROOT / "docs" / "failures-elsewhere.md"
SWIFT_TEST = re.compile(r"@Test\b.*?func\s+`([^`]+)`", re.DOTALL)
SCRIPT_TEST = re.compile(r"^def\s+(\w+)", re.MULTILINE)


def tests() -> set[str]:
    names: set[str] = set()
    for path in files(".swift", ".py"):
        if "Tests" not in path.relative_to(ROOT).parts:
            continue
        text = path.read_text(encoding="utf-8")
        names.update((SWIFT_TEST if path.suffix == ".swift" else SCRIPT_TEST).findall(text))
    return names


def main() -> None:
    found = Findings()
    known = tests()
    named = 0
    for number, line in enumerate(PAGE.read_text(encoding="utf-8").split("\n"), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 3 or set(cells[0]) <= {"-", " "} or cells[2] == "proof":
            continue
        proofs = re.findall(r"`([^`]+)`", cells[2])
        if not proofs and not re.search(r"\]\(|does not apply", cells[2]):
            found.add(PAGE, number, "no proof: name a test in backticks, link to a page, or say why it does not apply")
        for proof in proofs:
            named += 1
            if proof not in known:
                found.add(PAGE, number, f"there is no test named “{proof}”")
    if not named:
        found.add(PAGE, 1, "names no test at all")
    found.exit()


if __name__ == "__main__":
    main()
