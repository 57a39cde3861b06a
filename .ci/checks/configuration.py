#!/usr/bin/env python3
"""docs/configuration.md lists exactly the keys and options that `ferry serve` takes, with their ranges and meanings."""

from __future__ import annotations

import pathlib
import re

from common import ROOT, Findings

KEYS = ROOT / "Sources/FerryGateway/ConfigurationKey.swift"
PLACES = ROOT / "Sources/ferry/ServeSettings.swift"
OPTIONS = ROOT / "Sources/ferry/ServeCommand.swift"
POLICIES = ROOT / "Sources/FerryRouting/CapPolicy.swift"
DOCUMENT = ROOT / "docs/configuration.md"

NUMBER_KEY = re.compile(r'\.(integer|cap|milliseconds|seconds)\(\s*"(\w+)",\s*([\d_]+)\.\.\.([\d_<\s]+),\s*"([^"]*)"')
TEXT_KEY = re.compile(r'\.text\("(\w+)", "([^"]*)"')
WORD_KEY = re.compile(r'\.word\(\s*"(\w+)",\s*(\w+)\.self,\s*"([^"]*)"')
PLACE_KEY = re.compile(r'\("(\w+)", "([^"]*)"\)')
OPTION = re.compile(r'CommandOption\(\s*"(--[\w-]+)"(?:,\s*"[^"]*")?,\s*help:\s*"[^"]*"(?:,\s*environment:\s*"(\w+)")?', re.S)


def number(text: str) -> int:
    base, _, shift = text.replace("_", "").partition("<<")
    return int(base) << int(shift or 0)


def main() -> None:
    found = Findings()
    expected: dict[str, list[str]] = {}  # name: texts that its row must have
    code = KEYS.read_text(encoding="utf-8")
    for unit, name, low, high, meaning in NUMBER_KEY.findall(code):
        range_text = f"{number(low)}…{number(high)}"
        units = {"integer": range_text, "cap": f"{range_text} or `unlimited`"}
        expected[name] = [units.get(unit, f"{unit}, {range_text}"), meaning]
    for name, kind, meaning in WORD_KEY.findall(code):
        words = re.findall(r"^    case (\w+)$", POLICIES.read_text(encoding="utf-8").split(f"enum {kind}", 1)[1].split("\n}", 1)[0], re.M)
        expected[name] = [" or ".join(f"`{word}`" for word in words), meaning]
    for name, meaning in TEXT_KEY.findall(code):
        expected[name] = ["text, 1…1024 bytes", meaning]
    places = PLACES.read_text(encoding="utf-8").split("placeKeys", 1)[1].split("]\n", 1)[0]
    for name, meaning in PLACE_KEY.findall(places):
        expected[name] = [meaning]
    for name, variable in OPTION.findall(OPTIONS.read_text(encoding="utf-8")):
        expected[name] = [f"`{variable}`"] if variable else []
    rows: dict[str, tuple[int, str]] = {}
    text = DOCUMENT.read_text(encoding="utf-8").split("\n## Apps file", 1)[0]
    for line_number, line in enumerate(text.split("\n"), 1):
        if match := re.match(r"\| `(--[\w-]+|\w+)[` ]", line):
            rows[match.group(1)] = (line_number, line)
    for name, texts in expected.items():
        if name not in rows:
            source = OPTIONS if name.startswith("--") else KEYS if f'"{name}"' in code else PLACES
            found.add(source, line_of(source, f'"{name}"'), f"{name} is missing in docs/configuration.md: add its row")
            continue
        line_number, row = rows[name]
        for wanted in texts:
            if wanted not in row:
                found.add(DOCUMENT, line_number, f"{name}: the code says “{wanted}”: make the row say so")
    for name in rows.keys() - expected.keys():
        found.add(DOCUMENT, rows[name][0], f"{name} is nothing that ferry serve takes: drop the row")
    if len(expected) < 30:
        found.add(KEYS, 1, f"only {len(expected)} keys and options were read: this check must learn how they are written now")
    found.exit()


def line_of(path: pathlib.Path, text: str) -> int:
    before, hit, _ = path.read_text(encoding="utf-8").partition(text)
    return before.count("\n") + 1 if hit else 1


if __name__ == "__main__":
    main()
