#!/usr/bin/env python3
"""What decides is pure: no operating system, clock, chance or concurrency. And no Foundation on the data plane."""

from __future__ import annotations

import re

from common import ROOT, Findings, bare

PURE = ("FerryCore", "FerryWire", "FerryRouting", "FerryStats", "FerryAudience", "FerrySession", "FerryAPI", "FerryClientCore")
DATA_PLANE = ("FerryGateway", "FerryStore", "FerryIO", "FerryAPNS")

SYSTEM_MODULES = "Glibc|Foundation|FoundationEssentials|Dispatch|Synchronization|Observation"
IMPURE = [
    (re.compile(rf"\bimport\s+(?:\w+\s+)?({SYSTEM_MODULES})\b"), "a driver imports it instead"),
    (re.compile(r"\b(async|await|actor|Task|TaskGroup|AsyncStream|MainActor)\b"),
     "a machine decides at once; drivers wait"),
    (re.compile(r"\b(Date\s*\(|ContinuousClock|SuspendingClock|DispatchTime)"), "take `now: Instant` as a parameter"),
    (re.compile(r"\b(SystemRandomNumberGenerator)\b"), "take the generator as a parameter"),
]
# With a generator that came as a parameter they are as pure as any other function.
CHANCE = re.compile(r"\.(random|randomElement|shuffled?)\s*\(")
FOUNDATION = [(re.compile(r"\bimport\s+(?:\w+\s+)?(Foundation|FoundationEssentials)\b"),
               "the data plane does without: it is slow to start and to run; ferry (the executable) may use it")]


def arguments(code: str, at: int) -> str:
    """The text up to the parenthesis that closes the one before `at`."""
    depth, end = 1, at
    while depth and end < len(code):
        depth += {"(": 1, ")": -1}.get(code[end], 0)
        end += 1
    return code[at:end]


def main() -> None:
    found = Findings()
    for targets, rules in ((PURE, IMPURE), (DATA_PLANE, FOUNDATION)):
        for target in targets:
            for path in sorted((ROOT / "Sources" / target).rglob("*.swift")):
                code = bare(path.read_text(encoding="utf-8"))
                for pattern, fix in rules:
                    for match in pattern.finditer(code):
                        line, what = code.count("\n", 0, match.start(1)) + 1, match.group(1).strip(" (")
                        found.add(path, line, f"{what} has no place in {target}: {fix}")
                if rules is not IMPURE:
                    continue
                for match in CHANCE.finditer(code):
                    if not re.search(r"\busing\s*:", arguments(code, match.end())):
                        line = code.count("\n", 0, match.start(1)) + 1
                        found.add(path, line, f"{match.group(1)} has no place in {target}: take the generator as a parameter")
    found.exit()


if __name__ == "__main__":
    main()
