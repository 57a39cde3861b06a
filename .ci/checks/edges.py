#!/usr/bin/env python3
"""Each target imports only its direct dependencies in Package.swift and modules of the toolchain.

The compiler lets a target import whatever it can reach through others, so the picture in docs/ARCHITECTURE.md would
rot without this check. C targets include only their own headers and those of the system.
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys

from common import ROOT, Findings, bare

TOOLCHAIN = {
    "Swift", "Glibc", "Foundation", "FoundationEssentials", "Dispatch", "Synchronization", "Observation", "Testing",
    "RegexBuilder",
}
IMPORT = re.compile(
    r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:private|fileprivate|internal|package|public)\s+)?import\s+"
    r"(?:(?:struct|class|enum|protocol|func|var|let|typealias|actor)\s+)?(\w+)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)


def packaged() -> dict:
    command = ["swift", "package", "--package-path", str(ROOT), "dump-package"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        print(f"Package.swift:1: swift package dump-package failed:\n{result.stderr}", file=sys.stderr)
        sys.exit(1)
    return json.loads(result.stdout)


def names(dependencies: list[dict]) -> set[str]:
    """Of `{"byName": ["X", null]}`, `{"target": ["X", …]}` and the like."""
    return {value[0] for dependency in dependencies for value in dependency.values()}


def main() -> None:
    found = Findings()
    targets = packaged()["targets"]
    all_names = {target["name"] for target in targets}
    for target in targets:
        name, direct = target["name"], names(target["dependencies"])
        default = "Tests" if target["type"] == "test" else "Sources"
        folder = ROOT / (target.get("path") or f"{default}/{name}")
        imported: set[str] = set()
        for path in sorted(folder.rglob("*")):
            if path.suffix == ".swift":
                imported |= check_swift(path, name, direct, found)
            elif path.suffix in (".c", ".cpp", ".h"):
                check_c(path, folder, all_names, name, found)
        # The executable and the tests stand on top of the picture: what they could reach holds nobody up.
        if target["type"] == "regular":
            for unused in sorted(direct - imported):
                line = line_of(ROOT / "Package.swift", f'name: "{name}"')
                found.add(ROOT / "Package.swift", line, f"{name} depends on {unused} and imports it nowhere: drop it")
    found.exit()


def check_swift(path: pathlib.Path, target: str, direct: set[str], found: Findings) -> set[str]:
    code = bare(path.read_text(encoding="utf-8"))
    modules = set()
    for match in IMPORT.finditer(code):
        module = match.group(1)
        modules.add(module)
        if module not in direct and module not in TOOLCHAIN:
            line = code.count("\n", 0, match.start(1)) + 1
            found.add(path, line, f"{target} imports {module}, which is not among its dependencies in Package.swift: "
                                  "go through a dependency that it has, or add the edge there and to the picture")
    return modules


def check_c(path: pathlib.Path, folder: pathlib.Path, targets: set[str], target: str, found: Findings) -> None:
    text = path.read_text(encoding="utf-8")
    for match in INCLUDE.finditer(text):
        line, header = text.count("\n", 0, match.start(2)) + 1, match.group(2)
        own = any((place / header).is_file() for place in (path.parent, folder, folder / "include"))
        if match.group(1) == '"' and not own:
            found.add(path, line, f'{target} includes "{header}", which is none of its headers: C targets stand alone')
        elif match.group(1) == "<" and pathlib.Path(header).stem in targets - {target}:
            found.add(path, line, f"{target} includes <{header}> of another target: C targets stand alone")


def line_of(path: pathlib.Path, text: str) -> int:
    before, hit, _ = path.read_text(encoding="utf-8").partition(text)
    return before.count("\n") + 1 if hit else 1


if __name__ == "__main__":
    main()
