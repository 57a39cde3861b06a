#!/usr/bin/env python3
"""Writes the vectors; with --check compares them with the files instead and exits 1 on a difference.

Each case is read back by the codec before it is written, so a vector that contradicts the codec cannot be made.
"""

import json
import sys

import cases
import check
import codec
import content_cases
import link_cases
import payload_cases
import transcripts

HERE = codec.ROOT / "vectors"


def number(value):
    return value if value <= 1 << 53 else str(value)


def packed(data):
    """Hex text, or runs of a repeated byte where that saves space."""
    if len(data) <= 600:
        return data.hex()
    parts, plain, at = [], bytearray(), 0
    while at < len(data):
        end = at
        while end < len(data) and data[end] == data[at]:
            end += 1
        if end - at >= 16:
            if plain:
                parts.append([bytes(plain).hex(), 1])
                plain.clear()
            parts.append([data[at:at + 1].hex(), end - at])
        else:
            plain += data[at:end]
        at = end
    if plain:
        parts.append([bytes(plain).hex(), 1])
    return {"hexParts": parts}


def shown(name, values, extensions, proof):
    out = {"type": name}
    for key, value in values.items():
        if isinstance(value, bytes):
            value = packed(value)
        elif isinstance(value, list):
            value = [dict(zip(("number", "code", "text") if key == "refusals" else ("code", "count"),
                              (number(part) if isinstance(part, int) else part for part in entry))) for entry in value]
        elif isinstance(value, int):
            value = number(value)
        out[key] = value
    out["extensions"] = [{"tag": number(tag), "hex": packed(data)} for tag, data in extensions]
    if proof is not None:
        out["proof"] = proof.hex()
    return out


def written(case):
    """The case as JSON has it. The outcome is what the codec reads, and must be what the case expects."""
    out = {"name": case.name, "spec": case.spec, "direction": case.direction, "hex": packed(case.data)}
    try:
        result = codec.decode(case.data, case.direction)
    except codec.Fault as fault:
        assert case.expected == fault.code, (case.name, case.expected, fault.code, str(fault))
        return out | {"mustFail": fault.code}
    if result is None:
        assert case.expected == "skipped", case.name
        return out | {"skipped": True}
    assert case.expected == "frame", (case.name, case.expected, result)
    name, values, extensions, proof = result
    if case.values is not None:
        assert case.values == values, (case.name, case.values, values)
    if case.decode_only:
        out["decodeOnly"] = True
    return out | {"frame": shown(name, values, extensions, proof)}


def payload_written(case):
    """The same for the payload of a compressed push."""
    out = {"name": case.name, "spec": case.spec, "hex": packed(case.payload)}
    try:
        original = codec.inflate(case.payload)
    except codec.Fault as fault:
        assert case.expected == fault.code, (case.name, fault.code, str(fault))
        return out | {"mustFail": fault.code}
    assert case.expected == original, case.name
    return out | {"original": packed(original)}


def content_written(case):
    """The same for the payload of a typed content."""
    name, spec, kind, payload = case
    return {"name": name, "spec": spec, "hex": payload.hex(), "content": codec.content(kind, payload)}


def text(kind, items):
    lines = ",\n".join("    " + json.dumps(item, ensure_ascii=True) for item in items)
    return '{\n  "kind": "%s",\n  "cases": [\n%s\n  ]\n}\n' % (kind, lines)


def main():
    files = {kind + ".json": text(kind, [written(case) for case in group]) for kind, group in cases.all().items()}
    files["proofs.json"] = text("proofs", transcripts.all())
    files |= {f"link/{kind}.json": text(kind, [written(case) for case in group])
              for kind, group in link_cases.all().items()}
    files["link/proofs.json"] = text("proofs", transcripts.links())
    files["payload/compressed.json"] = text("compressed", [payload_written(case) for case in payload_cases.all()])
    files["payload/contents.json"] = text("contents", [content_written(case) for case in content_cases.all()])
    names = [item["name"] for content in files.values() for item in json.loads(content)["cases"]]
    assert len(names) == len(set(names)), "a case name is used twice"
    if "--check" not in sys.argv[1:]:
        for folder in ("link", "payload"):
            (HERE / folder).mkdir(exist_ok=True)
        for name, content in files.items():
            (HERE / name).write_text(content)
    wrong = [name for name, content in files.items() if not (HERE / name).exists()
             or (HERE / name).read_text() != content]
    wrong += [path.name + " is not generated" for path in HERE.rglob("*.json")
              if str(path.relative_to(HERE)) not in files]
    wrong += check.problems()
    for item in wrong:
        print("differs or wrong:", item, file=sys.stderr)
    print(len(names), "cases")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
