"""Holds chapters, registries, vectors and dialogues to each other. `problems()` lists what does not fit."""

import json
import re

import codec

REQUIREMENT = re.compile(r"\*\*\[([A-Z]{3}-\d{3})\]\*\*")
MENTION = re.compile(r"\[([A-Z]{3}-\d{3})\]")


def chapters():
    return {path.name: path.read_text() for path in sorted((codec.ROOT / "chapters").glob("*.md"))}


def requirements(found):
    texts = chapters()
    names = [name for text in texts.values() for name in REQUIREMENT.findall(text)]
    found += [f"{name} is defined twice" for name in sorted(set(names)) if names.count(name) > 1]
    for prefix in {name[:3] for name in names}:
        count = sum(name.startswith(prefix) for name in names)
        found += [f"{prefix}: no number {index}" for index in range(1, count + 1)
                  if f"{prefix}-{index:03}" not in names]
    for file, text in texts.items():
        found += [f"{file}: {name} does not exist" for name in MENTION.findall(text) if name not in names]
    return set(names)


def cited(found, names):
    for folder in ("vectors", "dialogues"):
        for path in sorted((codec.ROOT / folder).rglob("*.json")):
            content = json.loads(path.read_text())
            for item in content.get("cases", [content]):
                found += [f"{path.name}: {name} does not exist" for name in item["spec"] if name not in names]


def registries(found):
    texts = chapters()
    for item in codec.registry("limits")["limits"]:
        if f"| `{item['name']}` | {item['value']:,} |" not in texts["07-limits.md"]:
            found.append(f"07-limits.md: {item['name']}")
    closes = codec.registry("close-codes")
    for item in closes["codes"]:
        duty = [area["duty"] for area in closes["ranges"] if area["from"] <= item["code"] <= area["to"]]
        if duty != [item["duty"]]:
            found.append(f"close-codes.json: duty of {item['code']}")
        if f"| {item['code']} | {item['name']} |" not in texts["06-close-codes.md"]:
            found.append(f"06-close-codes.md: {item['code']}")
        if len(item["text"].encode()) > codec.LIMITS["closeTextBytes"]:
            found.append(f"close-codes.json: text of {item['code']}")
    for item in codec.FRAMES:
        if f"| `{item['type']:02x}` | {item['name']} |" not in texts["02-framing.md"]:
            found.append(f"02-framing.md: {item['name']}")
    for item in codec.LINK_FRAMES:
        if f"| `{item['type']:02x}` | {item['name']} |" not in texts["10-backend-link.md"]:
            found.append(f"10-backend-link.md: {item['name']}")


def contents(found):
    """Each field stands in a row of the chapter's tables."""
    text = chapters()["12-typed-contents.md"]
    for kind in codec.registry("contents")["kinds"]:
        for item in kind.get("fields", []):
            if f"| {item['tag']} | `{item['name']}` | {item['form']} |" not in text:
                found.append(f"12-typed-contents.md: {kind['name']} {item['name']}")


def flags(found, names):
    """Each bit is one of a field that its frames have, stands in the text of its requirement, and is there once."""
    text = "".join(chapters().values())
    seen = set()
    for item in codec.registry("flags")["bits"]:
        for name in item["frames"]:
            if item["field"] not in {field["name"] for field in codec.BY_NAME[name]["fields"]}:
                found.append(f"flags.json: {name} has no {item['field']}")
            if (name, item["field"], item["bit"]) in seen:
                found.append(f"flags.json: bit {item['bit']} of {name} is there twice")
            seen.add((name, item["field"], item["bit"]))
        if item["spec"] not in names or item["name"] not in text:
            found.append(f"flags.json: {item['name']}")


def example(found):
    """Each run of hex in the worked example is part of the handshake in proofs.json that it shows."""
    stored = json.loads((codec.ROOT / "vectors" / "proofs.json").read_text())["cases"]
    shown = next(item for item in stored if item["name"] == "register-handshake")
    known = "".join(item["hex"] + "." for item in shown["frames"])
    known += "".join(item["input"] + "." + item["key"] + "." for item in shown["proofs"])
    for block in re.findall(r"```hex\n(.*?)```", chapters()["09-worked-example.md"], re.DOTALL):
        text = re.sub(r"\s+", "", re.sub(r"#.*", "", block))
        if text not in known:
            found.append("09-worked-example.md: " + text[:40])


def step_problem(step, is_link):
    keys = set(step) - {"on"}
    if keys in ({"advance"}, {"drop"}, {"newEpoch"}, {"closeExpected"}, {"accept"}):
        return None
    if keys == {"from", "replay"} or keys == {"from", "bytes"}:
        return None
    peer = "backend" if is_link else "device"
    if keys != {"from", "frame"} or step["from"] not in (peer, "gateway"):
        return "a step of no known form"
    known = codec.BY_NAME.get(step["frame"]["type"])
    if known is None:
        return "an unknown frame " + step["frame"]["type"]
    direction = codec.SHARED.get(known["name"], known["direction"]) if is_link else known["direction"]
    ways = ("linkToGateway", "linkToBackend") if is_link else ("toGateway", "toDevice")
    if direction not in ("both", ways[0] if step["from"] == peer else ways[1]):
        return known["name"] + " goes the wrong way"
    allowed = {field["name"] for field in known["fields"]} | {"type", "extensions"} | (
        {"proof"} if known["signed"] else set())
    strange = set(step["frame"]) - allowed
    return f"{known['name']} has no {sorted(strange)}" if strange else None


def dialogues(found):
    for path in sorted((codec.ROOT / "dialogues").rglob("*.json")):
        is_link = path.parent.name == "link"
        content = json.loads(path.read_text())
        if list(content) != ["name", "text", "spec", "runs", "given", "steps"] or content["name"] != path.stem:
            found.append(f"{path.name}: its shape")
        given = ("device",) if is_link else ("nothing", "registered", "session")
        if content["given"] not in given or not content["runs"]:
            found.append(f"{path.name}: given or runs")
        problems = [step_problem(step, is_link) for step in content["steps"]]
        found += [f"{path.name}, step {index}: {text}" for index, text in enumerate(problems) if text]


def problems():
    found = []
    names = requirements(found)
    cited(found, names)
    registries(found)
    flags(found, names)
    contents(found)
    example(found)
    dialogues(found)
    return found
