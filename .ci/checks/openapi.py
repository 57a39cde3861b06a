#!/usr/bin/env python3
"""protocol-spec/openapi.yaml describes exactly the calls that the gateway routes, and docs name each of them.

Read by lines, since the standard library has no YAML: a path stands at two spaces, its methods at four.
"""

from __future__ import annotations

import pathlib
import re

from common import ROOT, Findings

DESCRIPTION = ROOT / "protocol-spec/openapi.yaml"
ROUTES = ROOT / "Sources/FerryAPI"
PAGES = [ROOT / "docs/api.md", *sorted((ROOT / "docs/api").glob("*.md"))]
METHODS = ("get", "put", "post", "delete", "head")


def described() -> dict[str, tuple[int, list[str]]]:
    """Path: its line, and its methods."""
    found: dict[str, tuple[int, list[str]]] = {}
    path, is_inside = "", False
    for number, line in enumerate(DESCRIPTION.read_text(encoding="utf-8").split("\n"), 1):
        if re.match(r"\S", line):
            is_inside = line == "paths:"
        elif is_inside and (match := re.match(r"  (/\S*):$", line)):
            path = match.group(1)
            found[path] = (number, [])
        elif is_inside and (match := re.match(rf"    ({'|'.join(METHODS)}):$", line)):
            found[path][1].append(match.group(1))
    return found


# What finds a call: it is handed the path, or words of it.
FINDER = re.compile(
    r"^    (?:[\w ]*func \w+\([^{]*?\bpath: |init\?\(_ \w+: String, _ \w+: String\))[^{]*\{\n(.*?)^    \}\n", re.M | re.S)
WORD = re.compile(r'"([A-Za-z][A-Za-z0-9_]*)"')


def routed() -> tuple[dict[str, tuple[pathlib.Path, int]], set[str]]:
    """Words of paths that finders compare with, and where; and all texts of the sources."""
    words: dict[str, tuple[pathlib.Path, int]] = {}
    texts: set[str] = set()
    for file in sorted(ROUTES.rglob("*.swift")):
        code = file.read_text(encoding="utf-8")
        texts.update(WORD.findall(code))
        for match in FINDER.finditer(code):
            for word in WORD.finditer(match.group(1)):
                # Methods are named in upper case.
                if not word.group(1).isupper():
                    line = code.count("\n", 0, match.start(1) + word.start()) + 1
                    words.setdefault(word.group(1), (file, line))
    return words, texts


def main() -> None:
    found = Findings()
    paths = described()
    parts = {part for path in paths for part in path.split("/")}
    words, texts = routed()
    for word, (file, line) in words.items():
        if word not in parts:
            found.add(file, line, f"no path in protocol-spec/openapi.yaml has “{word}”: describe the call there")
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    # Pages may name a place in a path as they like.
    pages = re.sub(r"\{[^}]*\}(?:,\{[^}]*\})*(?:,…)?", "{}", text)
    for path, (line, methods) in paths.items():
        if not methods:
            found.add(DESCRIPTION, line, f"{path} has no method")
        for part in path.split("/"):
            if part and not part.startswith("{") and part not in texts:
                found.add(DESCRIPTION, line, f"{path}: no route of the gateway has “{part}”")
        if not re.search(re.escape(re.sub(r"\{[^}]*\}", "{}", path)).replace(r"/v2/\{\}", r"(?:/v2/\{\})?") + r"(?![\w/])", pages):
            found.add(DESCRIPTION, line, f"{path} is on no page: docs/api.md or docs/api must name it")
    if len(paths) < 10 or len(words) < 10:
        found.add(DESCRIPTION, 1, f"only {len(paths)} paths and {len(words)} words were read: this check must learn to read them")
    found.exit()


if __name__ == "__main__":
    main()
