#!/usr/bin/env python3
"""Holds link.py to the specification's vectors of the backend link: what it reads, what it sends, and all proofs."""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

import link

VECTORS = pathlib.Path(__file__).resolve().parent.parent.parent / "protocol-spec" / "vectors" / "link"


def unhex(stored: Any) -> bytes:
    if isinstance(stored, dict):
        return b"".join(bytes.fromhex(piece) * times for piece, times in stored["hexParts"])
    return bytes.fromhex(stored)


def read(data: bytes) -> Any:
    """What a whole frame says to link.py, or the code of its fault."""
    buffer = bytearray(data)
    try:
        found = link.split(buffer)
        if found is None or buffer:
            return "unfinished"
        kind, body = found
        if kind == link.LINK_ANSWER:
            up_to, refusals = link.read_answer(body)
            return up_to, [(refusal.number, refusal.code, refusal.text) for refusal in refusals]
        if kind == link.LINK_WELCOME:
            return link.read_welcome(body)
        if kind in (link.PING, link.PONG):
            return "empty"
        return "skipped" if link.is_skipped(kind) else None
    except link.Fault as fault:
        return fault.code


def expected(case: dict[str, Any]) -> Any:
    if "mustFail" in case:
        return case["mustFail"]
    if case.get("skipped"):
        return "skipped"
    stored = case["frame"]
    if stored["type"] == "link-answer":
        return int(stored["upTo"]), [(int(item["number"]), int(item["code"]), item["text"])
                                     for item in stored["refusals"]]
    if stored["type"] == "link-welcome":
        return tuple(int(stored[name]) for name in ("serverTime", "keepAlive", "window", "windowBytes"))
    return "empty"


def sent(stored: dict[str, Any]) -> bytes:
    if stored["type"] == "link-login":
        body = link.login_body(stored["appId"], int(stored["capabilities"])) + bytes.fromhex(stored["proof"])
        return link.frame(link.LINK_LOGIN, body)
    if stored["type"] == "link-push":
        push = link.Push(
            cid=unhex(stored["cid"]), payload=unhex(stored["payload"]), id=unhex(stored["id"]), ttl=int(stored["ttl"]),
            flags=stored["flags"], alert=unhex(stored["alert"]), collapse_id=stored["collapseId"])
        return link.frame(link.LINK_PUSH, push.body())
    return link.frame(link.PING if stored["type"] == "ping" else link.PONG)


def handshake(case: dict[str, Any]) -> bool:
    key, right, bodies = case["masterSecret"].encode(), True, []
    proofs = iter(case["proofs"])
    for stored in case["frames"]:
        _, body = link.split(bytearray(unhex(stored["hex"]))) or (0, b"")
        if stored["type"].startswith("link-"):
            made = link.proof(key, f"ferry/1 {stored['type']}", [*bodies, body[:-32]])
            right = right and made == body[-32:] == bytes.fromhex(next(proofs)["proof"])
        bodies.append(body)
    return right


def main() -> int:
    wrong, count = [], 0
    for path in sorted(VECTORS.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        for case in content["cases"]:
            if content["kind"] == "proofs":
                right = handshake(case)
            elif case["direction"] == "linkToBackend":
                data = unhex(case["hex"])
                right = read(data) == expected(case)
                if "frame" in case:
                    right = right and all(read(data[:end]) == "unfinished" for end in range(min(len(data), 300)))
            elif "frame" in case and not case.get("decodeOnly"):
                right = sent(case["frame"]) == unhex(case["hex"])
            else:
                continue
            count += 1
            wrong += [] if right else [case["name"]]
    for name in wrong:
        print(f"wrong: {name}")
    print(f"{count} checks, {len(wrong)} wrong")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
