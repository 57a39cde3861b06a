"""What a table's row expects of an answer, and the variables that it may name.

In a pattern, objects hold exactly the members that are named, unless `"..."` is one of them; members in any order. A text
or a name `/…/` is a regular expression for all of the text, `/…/>name` keeps what it met as `$name`; `"$string"`,
`"$number"`, `"$object"`, `"$array"`, `"$true-or-false"` meet any value of that kind, `"$anything"` any at all.

In requests and patterns `$name` stands for a variable: `$now` and `$now+60000` are milliseconds since 1970, `$fresh` is
a new id each time, `$fresh:a` the same one for all of a table. `#$now` is a number instead of a text.
"""

from __future__ import annotations

import re
import secrets
import time
from typing import Any, Optional

NAME = re.compile(r"\$(now[+-]\d+|fresh:\w+|\w+)")
KINDS: dict[str, tuple[type, ...]] = {
    "$string": (str,), "$number": (int, float), "$object": (dict,), "$array": (list,), "$true-or-false": (bool,)}


class Variables:
    """Names and what they stand for."""

    def __init__(self, known: dict[str, str]) -> None:
        self.known = dict(known)

    def text(self, template: str) -> str:
        return NAME.sub(lambda match: self._value(match.group(1)), template)

    def _value(self, name: str) -> str:
        if name in self.known:
            return self.known[name]
        if name == "now" or name.startswith(("now+", "now-")):
            return str(int(time.time() * 1000) + int(name[3:] or "0"))
        if name == "fresh":
            return secrets.token_hex(16)
        if name.startswith("fresh:"):
            return self.known.setdefault(name, secrets.token_hex(16))
        return f"${name}"

    def value(self, template: Any) -> Any:
        """The same with all variables replaced."""
        if isinstance(template, str):
            return int(self.text(template[1:])) if template.startswith("#$") else self.text(template)
        if isinstance(template, list):
            return [self.value(item) for item in template]
        if isinstance(template, dict):
            return {self.text(name): self.value(item) for name, item in template.items()}
        return template


def difference(pattern: Any, value: Any, variables: Variables, place: str = "answer") -> Optional[str]:
    """What of `value` is not as `pattern` says; None when nothing is."""
    if isinstance(pattern, str):
        return _text_difference(pattern, value, variables, place)
    if isinstance(pattern, dict):
        if not isinstance(value, dict):
            return f"{place} is {value!r}, no object"
        return _members_difference(pattern, value, variables, place)
    if isinstance(pattern, list):
        if not isinstance(value, list):
            return f"{place} is {value!r}, no array"
        if len(pattern) != len(value):
            return f"{place} has {len(value)} elements instead of {len(pattern)}: {value!r}"
        for index, (wanted, found) in enumerate(zip(pattern, value)):
            if found_difference := difference(wanted, found, variables, f"{place}[{index}]"):
                return found_difference
        return None
    # True is 1 for Python.
    if type(pattern) is type(value) and pattern == value:
        return None
    return f"{place} is {value!r} instead of {pattern!r}"


def _members_difference(
        pattern: dict[str, Any], value: dict[str, Any], variables: Variables, place: str) -> Optional[str]:
    left = dict(value)
    for name, wanted in pattern.items():
        if name == "...":
            continue
        found = next((key for key in left if _meets(name, key, variables)), None)
        if found is None:
            return f"{place} has no member {variables.text(name)}: {value!r}"
        if found_difference := difference(wanted, left.pop(found), variables, f"{place}.{found}"):
            return found_difference
    if left and "..." not in pattern:
        return f"{place} has members that were not expected: {', '.join(left)}"
    return None


def _meets(pattern: str, text: str, variables: Variables) -> bool:
    if match := re.fullmatch(r"/(.*)/(?:>(\w+))?", pattern, re.DOTALL):
        if not re.fullmatch(variables.text(match.group(1)), text, re.DOTALL):
            return False
        if match.group(2):
            variables.known[match.group(2)] = text
        return True
    return variables.text(pattern) == text


def _text_difference(pattern: str, value: Any, variables: Variables, place: str) -> Optional[str]:
    if pattern == "$anything":
        return None
    if pattern in KINDS:
        is_right = isinstance(value, KINDS[pattern]) and (pattern != "$number" or not isinstance(value, bool))
        return None if is_right else f"{place} is {value!r}, no {pattern[1:]}"
    if pattern.startswith("#$"):
        return None if value == variables.value(pattern) else f"{place} is {value!r} instead of {pattern}"
    if isinstance(value, str) and _meets(pattern, value, variables):
        return None
    return f"{place} is {value!r} instead of {variables.text(pattern)!r}"
