#!/usr/bin/env python3
"""Holds ferry_wire.py to the specification's vectors: what a device decodes, what it sends, and all proofs."""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any, Optional

import ferry_wire as wire

HERE = pathlib.Path(__file__).resolve().parent
VECTORS = HERE.parent.parent / "protocol-spec" / "vectors"
EVERY_CUT_BELOW = 1000  # longer frames are cut byte by byte in one pass only
ODD_CHUNK = 1371


def unhex(value: Any) -> bytes:
    if isinstance(value, str):
        return bytes.fromhex(value)
    return b"".join(bytes.fromhex(piece) * times for piece, times in value["hexParts"])


def expected(stored: dict[str, Any]) -> wire.Frame:
    """A case's `frame` in the form in which the codec speaks of it."""
    values: dict[str, Any] = {}
    for item in wire.BY_NAME[stored["type"]].fields:
        value = stored[item.name]
        if item.kind in ("varint", "byte"):
            value = int(value)
        elif item.kind in ("raw", "bytes"):
            value = unhex(value)
        elif item.kind == "reasons":
            value = [(int(reason["code"]), int(reason["count"])) for reason in value]
        values[item.name] = value
    extensions = [(int(item["tag"]), unhex(item["hex"])) for item in stored["extensions"]]
    return wire.Frame(stored["type"], values, extensions, unhex(stored["proof"]) if "proof" in stored else None)


def same(one: Optional[wire.Frame], other: Optional[wire.Frame]) -> bool:
    if one is None or other is None:
        return one is other
    return ((one.name, one.values, one.extensions, one.proof)
            == (other.name, other.values, other.extensions, other.proof))


def read(*chunks: bytes) -> list[Optional[wire.Frame]]:
    """All frames in a stream that arrives in chunks; None stands for a skipped one."""
    splitter, found = wire.FrameSplitter(), []
    for chunk in chunks:
        splitter.feed(chunk)
        while (raw := splitter.next()) is not None:
            found.append(wire.decode_frame(*raw))
    return found


def sliced(data: bytes, size: int) -> list[bytes]:
    return [data[at:at + size] for at in range(0, len(data), size)]


class Check:
    def __init__(self) -> None:
        self.count = 0
        self.wrong: list[str] = []

    def that(self, right: bool, name: str) -> None:
        self.count += 1
        if not right:
            self.wrong.append(name)

    def faulty(self, case: dict[str, Any]) -> None:
        data = unhex(case["hex"])
        for chunks in ([data], sliced(data, 1)):
            try:
                read(*chunks)
                code = None
            except wire.Fault as fault:
                code = fault.code
            self.that(code == case["mustFail"], case["name"])

    def good(self, case: dict[str, Any]) -> None:
        data, frame = unhex(case["hex"]), None if case.get("skipped") else expected(case["frame"])
        found = read(data)
        self.that(len(found) == 1 and same(found[0], frame), case["name"])
        splitter = wire.FrameSplitter()  # no prefix may be taken for a whole frame
        early = False
        for byte in sliced(data, 1)[:-1]:
            splitter.feed(byte)
            early = early or splitter.next() is not None
        splitter.feed(data[-1:])
        self.that(not early and splitter.next() is not None, case["name"] + ", byte by byte")
        if len(data) < EVERY_CUT_BELOW:
            cuts = [read(data[:at], data[at:]) for at in range(len(data) + 1)]
            self.that(all(len(cut) == 1 and same(cut[0], frame) for cut in cuts), case["name"] + ", cut")

    def sent(self, case: dict[str, Any]) -> None:
        frame = expected(case["frame"])
        body = wire.encode_body(frame.name, frame.values, frame.extensions) + (frame.proof or b"")
        self.that(wire.encode_frame(frame.name, body) == unhex(case["hex"]), case["name"])

    def handshake(self, case: dict[str, Any]) -> None:
        keys = {"deviceSecret": unhex(case["deviceSecret"]), "appSecret": case.get("appSecret", "").encode()}
        opening: list[bytes] = []
        proofs = iter(case["proofs"])
        for stored in case["frames"]:
            name, data = stored["type"], unhex(stored["hex"])
            splitter = wire.FrameSplitter()
            splitter.feed(data)
            kind, body = splitter.next() or (0, b"")
            frame = wire.decode_frame(kind, body, stored["direction"])
            assert frame is not None
            rebuilt = wire.encode_body(name, frame.values, frame.extensions)
            self.that(wire.encode_frame(name, rebuilt + (frame.proof or b"")) == data, f"{case['name']}, {name}")
            if frame.proof is not None:
                key = keys["appSecret" if name in ("register", "registered") else "deviceSecret"]
                step, label, bodies = next(proofs), f"ferry/1 {name}", [*opening, frame.unsigned]
                where = f"{case['name']}, proof of {name}"
                self.that(step["label"] == label and unhex(step["key"]) == key, where)
                self.that([unhex(item) for item in step["bodies"]] == bodies, where)
                self.that(unhex(step["input"]) == wire.transcript(label, bodies), where)
                self.that(unhex(step["proof"]) == wire.proof(key, label, bodies) == frame.proof, where)
            if name != "registered":
                opening.append(body)
        self.that(next(proofs, None) is None, f"{case['name']}, all proofs")

    def payload(self, case: dict[str, Any]) -> None:
        """A compressed payload, and each change of one byte: that may be a fault, but never another original."""
        data, original = unhex(case["hex"]), unhex(case["original"]) if "original" in case else None
        self.that(self._inflated(data) == (original or case.get("mustFail", b"")), case["name"])
        if original is not None:
            for at in range(len(data)):
                for mask in (range(1, 256) if len(original) < 1000 else (1, 0x10, 0x80, 0xFF)):
                    found = self._inflated(data[:at] + bytes([data[at] ^ mask]) + data[at + 1:])
                    self.that(isinstance(found, int) or found == original, f"{case['name']}, byte {at} ^ {mask}")

    @staticmethod
    def _inflated(data: bytes) -> Any:
        try:
            return wire.inflated(data)
        except wire.Fault as fault:
            return fault.code

    def file(self, path: pathlib.Path) -> None:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["kind"] == "compressed":
            for case in content["cases"]:
                self.payload(case)
            return
        if content["kind"] == "contents":
            for case in content["cases"]:
                says = {key: value for key, value in case["content"].items() if key != "kind"}
                kind = {"notification": wire.NOTIFICATION, "revoke": wire.REVOKE}[case["content"]["kind"]]
                self.that(wire.content(kind, unhex(case["hex"])) == says, case["name"])
                for end in range(len(unhex(case["hex"]))):  # cut anywhere it says less, and never fails
                    self.that(isinstance(wire.content(kind, unhex(case["hex"])[:end]), dict), f"{case['name']}, cut at {end}")
            return
        stream, frames = b"", []
        for case in content["cases"]:
            if content["kind"] == "proofs":
                self.handshake(case)
            elif case["direction"] == wire.TO_DEVICE and "mustFail" in case:
                self.faulty(case)
            elif case["direction"] == wire.TO_DEVICE:
                self.good(case)
                stream += unhex(case["hex"])
                frames.append(None if case.get("skipped") else expected(case["frame"]))
            elif "frame" in case and not case.get("decodeOnly"):
                self.sent(case)
        for size in (len(stream), ODD_CHUNK):
            if frames:
                found = read(*sliced(stream, size))
                right = len(found) == len(frames) and all(map(same, found, frames))
                self.that(right, f"{path.name}, joined")


def main() -> int:
    files = sorted([*VECTORS.glob("*.json"), *VECTORS.glob("payload/*.json")])
    if not files:
        print(f"There are no vectors in {VECTORS}.", file=sys.stderr)
        return 1
    check = Check()
    for path in files:
        check.file(path)
    for name in check.wrong:
        print(f"wrong: {name}")
    print(f"{check.count} checks of {len(files)} files, {len(check.wrong)} wrong")
    return 1 if check.wrong or not check.count else 0


if __name__ == "__main__":
    sys.exit(main())
