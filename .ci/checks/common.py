"""What the checks share: the files of the repository, Swift without its comments and texts, and how a finding looks."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("FERRY_CHECK_ROOT") or pathlib.Path(__file__).resolve().parents[2])
PRUNED = {".git", ".build", "data", "__pycache__"}


def files(*suffixes: str) -> list[pathlib.Path]:
    """The files that are or would be in the repository, by name; all of them when no suffix is named."""
    command = ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "-z"]
    listed = subprocess.run(command, capture_output=True, check=False) if (ROOT / ".git").exists() else None
    if listed is not None and listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
        paths = [ROOT / name for name in names if (ROOT / name).is_file()]
    else:
        paths = []
        for folder, folders, names in os.walk(ROOT):
            folders[:] = [name for name in folders if name not in PRUNED and not name.startswith(".build")]
            paths += [pathlib.Path(folder) / name for name in names if not name.endswith(".pyc")]
    return sorted(path for path in paths if not suffixes or path.suffix in suffixes)


def relative(path: pathlib.Path) -> str:
    return path.relative_to(ROOT).as_posix()


def bare(text: str) -> str:
    """Swift (or C) with comments and the texts of string literals blanked; every line keeps its number."""
    out, at, size = [], 0, len(text)

    def blank(end: int) -> int:
        out.append("".join("\n" if sign == "\n" else " " for sign in text[at:end]))
        return end

    while at < size:
        if text.startswith("//", at):
            end = text.find("\n", at)
            at = blank(size if end < 0 else end)
        elif text.startswith("/*", at):
            depth, end = 1, at + 2
            while depth and end < size:
                if text.startswith("/*", end):
                    depth, end = depth + 1, end + 2
                elif text.startswith("*/", end):
                    depth, end = depth - 1, end + 2
                else:
                    end += 1
            at = blank(end)
        elif text[at] == '"' or (text[at] == "#" and text[at:].lstrip("#").startswith('"')):
            at = blank(_end_of_string(text, at))
        else:
            out.append(text[at])
            at += 1
    return "".join(out)


def _end_of_string(text: str, at: int) -> int:
    """The place behind the string literal that starts at `at`, whose interpolations may hold strings again."""
    hashes = 0
    while text[at] == "#":
        hashes, at = hashes + 1, at + 1
    quote = '"""' if text.startswith('"""', at) else '"'
    closing, escape = quote + "#" * hashes, "\\" + "#" * hashes
    at += len(quote)
    while at < len(text):
        if text.startswith(closing, at):
            return at + len(closing)
        if text.startswith(escape + "(", at):
            depth, at = 1, at + len(escape) + 1
            while depth and at < len(text):
                if text[at] == '"':
                    at = _end_of_string(text, at)
                    continue
                depth += {"(": 1, ")": -1}.get(text[at], 0)
                at += 1
        elif text.startswith(escape, at):
            at += len(escape) + 1
        elif text[at] == "\n" and quote == '"':
            return at
        else:
            at += 1
    return at


class Findings:
    """What a check found: printed as it comes, counted for the exit status."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, path: pathlib.Path, line: int, text: str) -> None:
        self.count += 1
        print(f"{relative(path)}:{line}: {text}", file=sys.stderr)

    def exit(self) -> None:
        sys.exit(1 if self.count else 0)
