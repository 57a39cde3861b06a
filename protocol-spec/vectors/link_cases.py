"""The cases of the frames that only a backend's link has."""

import codec
from cases import CID, TOP, TOP_HEX, Case, Group
from codec import frame, string, varint

ID = bytes(range(0x10, 0x20))
LOGIN = {"appId": "demo.app-1", "capabilities": 0}
WELCOME = {"serverTime": 1796050000000, "keepAlive": 30, "window": 4096, "windowBytes": 4194304}
PUSH = {"id": ID, "cid": CID, "flags": 0, "ttl": 0, "alert": b"", "collapseId": "", "payload": b'{"hello":"world"}'}
ALERT = b'{"aps":{"alert":{"body":"Come and see"}}}'


def login():
    group = Group("link-login")
    group.good("plain", ["LNK-004"], LOGIN)
    group.good("app-of-64-signs", ["LNK-004", "HSK-008"], LOGIN | {"appId": "a" * 64})
    group.good("capabilities-of-2-64-less-1", ["LNK-004", "FRM-018"], LOGIN | {"capabilities": TOP})
    for name, app in [("empty", b""), ("with-a-space", b"a b"), ("of-65-signs", b"a" * 65), ("not-ascii", "é".encode())]:
        group.raw(f"app-{name}", ["LNK-004", "HSK-008"], string(app) + b"\0" + group.tail, 5005)
    group.usual(LOGIN)
    group.not_shortest(LOGIN, "capabilities")
    return group


def welcome():
    group = Group("link-welcome")
    group.good("plain", ["LNK-006"], WELCOME)
    group.good("least", ["LNK-006"], {"serverTime": 0, "keepAlive": 1, "window": 1, "windowBytes": 70656})
    group.good("greatest", ["LNK-006"], {name: TOP for name in WELCOME})
    for name, value in [("keepAlive", 0), ("window", 0), ("windowBytes", 70655), ("windowBytes", 0)]:
        data = b"".join(varint(item) for item in (WELCOME | {name: value}).values())
        group.raw(f"{name}-{value}", ["LNK-006", "FRM-019"], data + group.tail, 5005)
    group.usual(WELCOME)
    group.not_shortest(WELCOME, *WELCOME)
    return group


def push():
    group = Group("link-push")
    group.good("plain", ["LNK-008"], PUSH)
    group.good("live-only", ["LNK-008", "LNK-010"], PUSH | {"flags": 1})
    group.good("unknown-flags", ["FRM-018"], PUSH | {"flags": 0xFC}, decode_only=True)
    for ttl in (1, 127, 128, 259_200_000, 259_200_001, TOP):
        group.good(f"ttl-{ttl}", ["LNK-008", "LNK-010"], PUSH | {"ttl": ttl})
    group.good("alert", ["LNK-008", "LNK-011"], PUSH | {"alert": ALERT, "collapseId": "news"})
    group.good("background-alert", ["LNK-008", "LNK-011"], PUSH | {"alert": b'{"aps":{"content-available":1}}', "flags": 2})
    group.good("alert-of-4096-bytes", ["LNK-008"], PUSH | {"alert": b"x" * 4096})
    group.good("collapse-id-of-64-bytes", ["LNK-008"], PUSH | {"alert": ALERT, "collapseId": "x" * 64})
    group.good("no-payload", ["LNK-008"], PUSH | {"payload": b""})
    group.good("payload-of-any-bytes", ["LNK-008", "LNK-012"], PUSH | {"payload": bytes(range(256))})
    group.good("payload-of-65536-bytes", ["LNK-008", "LNK-012"], PUSH | {"payload": b"\xaa" * 65536})
    group.good("all-of-the-greatest-size", ["LNK-008"],
               PUSH | {"ttl": TOP, "alert": b"x" * 4096, "collapseId": "y" * 64, "payload": b"\xaa" * 65536})
    start = ID + CID + b"\0\0"
    group.raw("alert-of-4097-bytes", ["LNK-008", "FRM-006"], start + string(b"x" * 4097) + b"\0\1p", 5005)
    group.raw("collapse-id-of-65-bytes", ["LNK-008", "FRM-006"], start + b"\0" + string(b"x" * 65) + b"\1p", 5005)
    group.raw("payload-of-65537-bytes", ["LNK-008", "FRM-006"], start + b"\0\0" + string(b"x" * 65537), 5005)
    group.raw("payload-length-of-2-64-less-1", ["LNK-008", "FRM-006"], start + b"\0\0" + TOP_HEX, 5005)
    group.raw("payload-over-the-end", ["LNK-008", "FRM-006"], start + b"\0\0\5abcd", 5000)
    group.raw("without-payload", ["FRM-008"], start + b"\0\0", 5000)
    group.usual(PUSH)
    group.not_shortest(PUSH, "ttl")
    group.beyond_64_bits(ID + CID + b"\0", ["FRM-004"], b"\0\0\1p")
    return group


def answer():
    group = Group("link-answer")
    values = {"upTo": 300, "refusals": []}
    refusal = (7, 20001, 'target user is invalid: cid "00"')
    group.good("plain", ["LNK-015"], values)
    group.good("greatest", ["LNK-015"], values | {"upTo": TOP})
    group.good("refusal", ["LNK-015", "LNK-018"], values | {"refusals": [refusal]})
    group.good("refusals", ["LNK-015", "LNK-018"], values | {
        "refusals": [refusal, (8, 30019, "the service is busy, please retry later"), (300, TOP, "")]})
    group.good("refusal-text-of-256-bytes", ["LNK-015"], values | {"refusals": [(1, 20001, "x" * 256)]})
    group.good("refusal-text-beyond-ascii", ["LNK-015", "FRM-007"], values | {"refusals": [(1, 20001, "é 你 🚀")]})
    entry = lambda number, text=b"": varint(number) + varint(20001) + string(text)
    group.raw("refusal-0", ["LNK-015", "FRM-019"], varint(3) + b"\1" + entry(0), 5005)
    group.raw("refusal-above-upto", ["LNK-015", "FRM-019"], varint(3) + b"\1" + entry(4), 5005)
    group.raw("refusals-falling", ["LNK-015", "FRM-019"], varint(3) + b"\2" + entry(2) + entry(1), 5005)
    group.raw("refusals-twice", ["LNK-015", "FRM-019"], varint(3) + b"\2" + entry(2) + entry(2), 5005)
    group.raw("refusal-text-of-257-bytes", ["LNK-015", "FRM-006"], varint(3) + b"\1" + entry(2, b"x" * 257), 5005)
    group.raw("refusals-over-the-end", ["LNK-015", "FRM-008"], varint(3) + b"\2" + entry(2), 5000)
    group.raw("refusals-2-64-less-1", ["LNK-015", "SEC-007"], varint(3) + TOP_HEX + entry(2), 5000)
    group.usual(values)
    group.not_shortest(values, "upTo")
    group.beyond_64_bits(b"", ["FRM-004"], b"\0")
    return group


def framing():
    """What concerns the header and types alone: a link shares some frames with devices, and refuses all others."""
    found = []
    for way in ("linkToGateway", "linkToBackend"):
        def add(name, spec, data, expected):
            found.append(Case(f"link-framing-{name}-{'to-gateway' if way == 'linkToGateway' else 'to-backend'}", spec, way,
                              data, expected))
        for item in codec.LINK_BY_TYPE.values():
            if item["name"] in ("ping", "pong"):
                add(item["name"], ["LNK-002"], frame(item["type"], b""), "frame")
            elif item["direction"] not in (way, "both"):
                add(f"wrong-way-{item['name']}", ["LNK-002", "FRM-017"], frame(item["type"], b""), 5000)
        for kind in (0x00, 0x20, 0x3F, 0x60, 0x7F):
            add(f"unknown-type-{kind:02x}", ["LNK-002", "FRM-015"], frame(kind, b"\xff\x80"), "skipped")
        for kind in (0x80, 0xFF):
            add(f"unknown-type-{kind:02x}", ["LNK-002", "FRM-016"], frame(kind, b""), 5000)
        limit = codec.LIMITS[codec.BODY_LIMITS[way]]
        add("unknown-type-3f-too-large", ["LNK-001", "FRM-003"], b"\x3f" + varint(limit + 1), 5004)
        add("length-of-five-bytes", ["FRM-002"], b"\x05\x80\x80\x80\x80\x01", 5000)
    return found


def all():
    found = {group.kind: group.cases for group in (login(), welcome(), push(), answer())}
    found["framing"] = framing()
    return found
