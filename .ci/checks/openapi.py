#!/usr/bin/env python3
"""protocol-spec/openapi.yaml describes exactly the calls that the gateway routes, and docs name each of them.

Read by lines, since the standard library has no YAML: a path stands at two spaces, its methods at four.
"""

from __future__ import annotations

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


def routed() -> dict[str, tuple[str, int]]:
    """Words of paths that the sources compare with, and where. Each is part of a path that is described, if nothing is left
    out there."""
    words: dict[str, tuple[str, int]] = {}
    for file in sorted(ROUTES.rglob("*.swift")):
        for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
            for word in re.findall(r'\bpath\[\w+\] == "([^"]+)"', line):
                words.setdefault(word, (str(file), number))
    return words


def main() -> None:
    found = Findings()
    paths = described()
    parts = {part for path in paths for part in path.split("/")}
    words = routed()
    for word, (file, line) in words.items():
        if word not in parts:
            found.add(ROUTES / file, line, f"no path in protocol-spec/openapi.yaml has “{word}”: describe the call there")
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    # Pages may name a place in a path as they like.
    pages = re.sub(r"\{[^}]*\}(?:,\{[^}]*\})*(?:,…)?", "{}", text)
    for path, (line, methods) in paths.items():
        if not methods:
            found.add(DESCRIPTION, line, f"{path} has no method")
        for part in path.split("/"):
            if part and not part.startswith("{") and part not in words:
                found.add(DESCRIPTION, line, f"{path}: no route of the gateway has “{part}”")
        if not re.search(re.escape(re.sub(r"\{[^}]*\}", "{}", path)).replace(r"/v2/\{\}", r"(?:/v2/\{\})?") + r"(?![\w/])", pages):
            found.add(DESCRIPTION, line, f"{path} is on no page: docs/api.md or docs/api must name it")
    if len(paths) < 10 or len(words) < 10:
        found.add(DESCRIPTION, 1, f"only {len(paths)} paths and {len(words)} words were read: this check must learn to read them")
    found.exit()


if __name__ == "__main__":
    main()
