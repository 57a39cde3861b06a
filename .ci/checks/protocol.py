#!/usr/bin/env python3
"""The protocol's vectors are what its program makes, its parts agree, and requirements that others quote exist."""

from __future__ import annotations

import re
import subprocess
import sys

from common import ROOT, Findings, files, relative

QUOTED = re.compile(r"\b([A-Z]{3}-\d{3})\b")
DEFINED = re.compile(r"\*\*\[([A-Z]{3}-\d{3})\]\*\*")


def main() -> None:
    program = ROOT / "protocol-spec/vectors/generate.py"
    result = subprocess.run([sys.executable, "-B", str(program), "--check"], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.stderr.write(result.stdout + result.stderr)
        print("protocol-spec/vectors:1: run `python3 protocol-spec/vectors/generate.py`, and read the diff", file=sys.stderr)
        sys.exit(1)
    defined: set[str] = set()
    for path in (ROOT / "protocol-spec/chapters").glob("*.md"):
        defined.update(DEFINED.findall(path.read_text(encoding="utf-8")))
    families = {name[:3] for name in defined}
    found = Findings()
    for path in files(".swift", ".py", ".md", ".json", ".txt"):
        if relative(path).startswith(".ci/"):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            for name in QUOTED.findall(line):
                if name[:3] in families and name not in defined:
                    found.add(path, number, f"there is no requirement {name} in protocol-spec/chapters: quote one that is")
    found.exit()


if __name__ == "__main__":
    main()
