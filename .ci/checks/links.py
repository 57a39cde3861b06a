#!/usr/bin/env python3
"""Relative links in Markdown lead to files, and their anchors to headings, that exist."""

from __future__ import annotations

import pathlib
import re
import urllib.parse

from common import ROOT, Findings, files

LINK = re.compile(r"\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^()\s]+(?:\([^()\s]*\))?)(?:\s+\"[^\"]*\")?\)")
FENCE = re.compile(r"^\s*(```|~~~)")


def prose(text: str) -> list[str]:
    """The lines, those of code blocks and code spans blanked."""
    lines, is_code = [], False
    for line in text.split("\n"):
        if FENCE.match(line):
            is_code = not is_code
            line = ""
        lines.append("" if is_code else re.sub(r"`[^`]*`", "", line))
    return lines


def anchors(path: pathlib.Path) -> set[str]:
    found: dict[str, int] = {}
    slugs, is_code = set(), False
    for line in path.read_text(encoding="utf-8").split("\n"):
        if FENCE.match(line):
            is_code = not is_code
        if is_code or not (match := re.match(r"#{1,6}\s+(.*?)\s*#*$", line)):
            continue
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match.group(1))
        slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        count = found.get(slug, 0)
        found[slug] = count + 1
        slugs.add(slug if count == 0 else f"{slug}-{count}")
    return slugs


def main() -> None:
    found = Findings()
    for path in files(".md"):
        for number, line in enumerate(prose(path.read_text(encoding="utf-8")), 1):
            for match in LINK.finditer(line):
                link = urllib.parse.unquote(match.group(1))
                if re.match(r"[a-z][a-z0-9+.-]*:", link):
                    continue
                place, _, anchor = link.partition("#")
                target = (path.parent / place).resolve() if place else path
                if not target.exists() or not target.is_relative_to(ROOT.resolve()) and place:
                    found.add(path, number, f"the link to {link} leads nowhere: mend or drop it")
                elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                    found.add(path, number, f"{place or path.name} has no heading #{anchor}: mend the link")
    found.exit()


if __name__ == "__main__":
    main()
