#!/usr/bin/env python3
"""Swift is formatted as .swift-format says."""

from __future__ import annotations

import re
import subprocess
import sys

from common import ROOT


def main() -> None:
    command = ["swift", "format", "lint", "--strict", "--parallel", "-r", "Package.swift", "Sources", "Tests"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    sys.stderr.write(re.sub(re.escape(f"{ROOT}/"), "", result.stdout + result.stderr))
    if result.returncode != 0:
        print("The fix is mostly `make format`.", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
