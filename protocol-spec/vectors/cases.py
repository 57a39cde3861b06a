"""The cases of every frame kind: what is sent, and what a receiver makes of it."""

import dataclasses

import codec
from codec import body, extension, frame, string, varint

TOP = (1 << 64) - 1
TOP_HEX = varint(TOP)
CLIENT_NONCE = bytes(range(0x00, 0x20))
SERVER_NONCE = bytes(range(0x20, 0x40))
CID = bytes(range(0x40, 0x50))
EPOCH = bytes.fromhex("0123456789abcdef")
SESSION = bytes.fromhex("00000000000000a7")
SECRET = bytes(range(0x60, 0x80))
INSTALLATION = bytes(range(0x80, 0xA0))
MSGID = bytes(range(0xB0, 0xC0))
TASKID = "RASS_1130_0123456789abcdef0123456789abcdef"
SEAL = bytes(range(0xC0, 0xE0))
TOKEN = bytes(range(0xE0, 0x100))

LOGIN = {"appId": "demo.app-1", "cid": CID, "generation": 1, "epoch": EPOCH, "lastSeq": 41, "keepAlive": 0,
         "window": 0, "capabilities": 0}
REGISTER = {"appId": "demo.app-1", "installationKey": INSTALLATION, "keepAlive": 120, "window": 128,
            "capabilities": 0}
WELCOME = {"sessionId": SESSION, "epoch": EPOCH, "flags": 0, "serverTime": 1796050000000, "keepAlive": 240,
           "window": 64, "windowBytes": 262144, "keptMessages": 3, "keptBytes": 90}
NOTIFICATION = bytes.fromhex("01024869020474657874")  # title "Hi", body "text"
PUSH = {"seq": 42, "flags": 0, "msgid": MSGID, "taskid": TASKID, "payload": b'{"hello":"world"}'}
# As in payload_cases.py: a frame's reader does not look into it.
COMPRESSED = bytes.fromhex(
    "8201780175cc410e80200c05d1ab345df704dea692af982010298984707771afbb799be96c2d8317765e8d85b72b9d531aa34e196e9b2a00b5"
    "54498d70ecdee42df3a05aaa06ca411d7848ff7ead88ff2b1e0fd49d2a93")
HELLO = body("hello", {"version": 1, "nonce": CLIENT_NONCE})
CHALLENGE = body("challenge", {"version": 1, "nonce": SERVER_NONCE})

# Extensions that no version defines: a small tag, the tag 0, an empty one, the greatest tag.
STRANGE = [(99, b"\x01\x02"), (0, b""), (65281, b"private"), (TOP, b"\xff")]


@dataclasses.dataclass
class Case:
    name: str
    spec: list
    direction: str
    data: bytes
    expected: object = "frame"  # or "skipped", or a close code
    values: dict = None
    decode_only: bool = False


class Group:
    """Collects the cases of one frame kind."""

    def __init__(self, kind, direction=None):
        self.kind, self.cases = kind, []
        self.direction = direction or codec.BY_NAME[kind]["direction"]
        self.tail = SEAL if kind in codec.BY_NAME and codec.BY_NAME[kind]["signed"] else b""

    def good(self, name, spec, values, extensions=(), decode_only=False):
        data = frame(self.kind, body(self.kind, values, extensions) + self.tail)
        self.cases.append(Case(f"{self.kind}-{name}", spec, self.direction, data, values=values,
                               decode_only=decode_only))

    def raw(self, name, spec, content, expected, values=None, decode_only=False):
        self.cases.append(Case(f"{self.kind}-{name}", spec, self.direction, frame(self.kind, content), expected,
                               values, decode_only))

    def bytes(self, name, spec, data, expected):
        self.cases.append(Case(f"{self.kind}-{name}", spec, self.direction, data, expected))

    def usual(self, values):
        """What holds for every kind: extensions, truncation and length."""
        plain = body(self.kind, values)
        self.good("unknown-extensions", ["FRM-009", "FRM-011"], values, STRANGE, decode_only=True)
        self.good("repeated-extension", ["FRM-012"], values, [(99, b"first"), (99, b"second")], decode_only=True)
        faults = [
            ("extension-without-length", varint(7)),
            ("extension-over-the-end", varint(7) + varint(3) + b"ab"),
            ("extension-length-beyond-64-bits", varint(7) + b"\xff" * 9 + b"\x02"),
            ("extension-length-of-2-64-less-1", varint(7) + TOP_HEX),
            ("extension-tag-not-shortest", b"\x87\x00" + string(b"")),
            ("extension-length-not-shortest", b"\x07\x80\x00"),
            ("garbage-after-extension", extension(7, b"ok") + b"\x80"),
        ]
        for name, tail in faults:
            spec = ["FRM-010"] + (["FRM-004"] if "shortest" in name or "beyond" in name else [])
            self.raw(name, spec, plain + tail + self.tail, 5000)
        if plain:
            self.raw("empty-body", ["FRM-008"], b"", 5000)
            self.raw("one-byte-short", ["FRM-008"], plain[:-1] + self.tail, 5000)
        limit = codec.LIMITS[codec.BODY_LIMITS[self.direction]]
        room = limit - len(plain) - len(self.tail) - 1
        count = room - len(varint(room - 2))
        self.good("of-the-greatest-size", ["FRM-003"], values, [(99, bytes(count))], decode_only=True)
        assert self.cases[-1].data[1:].startswith(varint(limit)), self.kind
        self.bytes("too-large-by-its-header", ["FRM-003"],
                   bytes([codec.BY_NAME[self.kind]["type"]]) + varint(limit + 1), 5004)

    def not_shortest(self, values, *names):
        """The named varints, each spelled with a needless zero group."""
        for chosen in names:
            content = b""
            for field in codec.BY_NAME[self.kind]["fields"]:
                part = codec.field_bytes(field, values[field["name"]])
                if field["name"] == chosen:
                    part = part[:-1] + bytes([part[-1] | 0x80, 0])
                content += part
            self.raw(f"{chosen}-not-shortest", ["FRM-004"], content + self.tail, 5000)

    def beyond_64_bits(self, prefix, spec, suffix=b""):
        self.raw("number-of-65-bits", spec, prefix + b"\xff" * 9 + b"\x02" + suffix + self.tail, 5000)
        self.raw("number-of-eleven-bytes", spec, prefix + b"\x80" * 10 + b"\x01" + suffix + self.tail, 5000)


def nonces(kind, spec):
    group = Group(kind)
    values = {"version": 1, "nonce": CLIENT_NONCE if kind == "hello" else SERVER_NONCE}
    group.good("plain", [spec], values)
    for version in (0, 2, 127, 128, TOP):
        group.good(f"version-{version}", [spec, "HSK-004"], values | {"version": version})
    group.usual(values)
    group.not_shortest(values, "version")
    group.beyond_64_bits(b"", ["FRM-004"], values["nonce"])
    return group


def known_extensions(group, values):
    token = lambda environment, data: (1, bytes([environment]) + data)
    for name, extensions in [
        ("token-sandbox", [token(1, TOKEN)]),
        ("token-production", [token(2, TOKEN)]),
        ("token-of-one-byte", [token(2, b"\x00")]),
        ("token-of-128-bytes", [token(2, b"\xaa" * 128)]),
        ("token-cleared", [token(0, b"")]),
        ("client-info", [(2, "client/1.0 \u00fc".encode())]),
        ("client-info-empty", [(2, b"")]),
        ("client-info-of-64-bytes", [(2, b"x" * 64)]),
        ("client-info-not-utf-8", [(2, b"\xff\xfe")]),
        ("token-and-client-info", [token(1, TOKEN), (2, b"client/1.0")]),
    ]:
        group.good(name, ["HSK-009"], values, extensions)
    group.good("client-info-before-token", ["FRM-009", "HSK-009"], values, [(2, b"client/1.0"), token(1, TOKEN)],
               decode_only=True)
    group.good("token-repeated-second-is-out-of-range", ["FRM-012"], values, [token(1, TOKEN), token(9, b"")],
               decode_only=True)
    for name, extensions, code in [
        ("token-without-environment", [(1, b"")], 5000),
        ("token-environment-3", [token(3, TOKEN)], 5005),
        ("token-cleared-with-bytes", [token(0, TOKEN)], 5005),
        ("token-empty", [token(1, b"")], 5005),
        ("token-of-129-bytes", [token(1, b"\xaa" * 129)], 5005),
        ("client-info-of-65-bytes", [(2, b"x" * 65)], 5005),
    ]:
        group.raw(name, ["HSK-009", "FRM-019"], body(group.kind, values, extensions) + group.tail, code)


def app_ids(group, values):
    rest = body(group.kind, values)[len(string(values["appId"].encode())):]
    for name, text in [("app-id-of-one-byte", "a"), ("app-id-of-64-bytes", "Z" * 64), ("app-id-all-signs", "aZ09-_.")]:
        group.good(name, ["HSK-008"], values | {"appId": text})
    for name, data in [("empty", b""), ("of-65-bytes", b"a" * 65), ("with-a-slash", b"a/b"), ("with-a-space", b"a b"),
                       ("beyond-ascii", "\u00e4".encode()), ("not-utf-8", b"\xff"), ("with-zero-byte", b"a\0")]:
        group.raw(f"app-id-{name}", ["HSK-008", "FRM-019"], string(data) + rest + group.tail, 5005)
    group.raw("app-id-length-of-2-64-less-1", ["FRM-006"], TOP_HEX + rest + group.tail, 5005)
    group.raw("app-id-over-the-end", ["FRM-006", "FRM-008"], varint(64) + b"a" * 8 + group.tail, 5000)
    group.raw("app-id-length-not-shortest", ["FRM-004"], b"\x81\x00a" + rest + group.tail, 5000)


def login():
    group = Group("login")
    group.good("plain", ["HSK-006"], LOGIN)
    group.good("all-zero", ["HSK-006", "HSK-010"], LOGIN | {"generation": 0, "epoch": bytes(8), "lastSeq": 0})
    group.good("all-at-the-top", ["HSK-006", "HSK-010", "FRM-018"], LOGIN | {
        "generation": TOP, "epoch": b"\xff" * 8, "lastSeq": TOP, "keepAlive": TOP, "window": TOP, "capabilities": TOP})
    group.good("compressed-payloads", ["CMP-001"], LOGIN | {"capabilities": 1})
    app_ids(group, LOGIN)
    known_extensions(group, LOGIN)
    group.usual(LOGIN)
    group.not_shortest(LOGIN, "generation", "lastSeq", "keepAlive", "window", "capabilities")
    group.raw("without-proof", ["FRM-014"], body("login", LOGIN), 5000)
    group.raw("shorter-than-a-proof", ["FRM-014"], SEAL[:31], 5000)
    return group


def register():
    group = Group("register")
    group.good("plain", ["HSK-007"], REGISTER)
    group.good("all-zero", ["HSK-007", "HSK-010"], REGISTER | {"installationKey": bytes(32), "keepAlive": 0,
                                                              "window": 0})
    group.good("all-at-the-top", ["HSK-007", "HSK-010", "FRM-018"], REGISTER | {
        "installationKey": b"\xff" * 32, "keepAlive": TOP, "window": TOP, "capabilities": TOP})
    group.good("compressed-payloads", ["CMP-001"], REGISTER | {"capabilities": 1})
    app_ids(group, REGISTER)
    known_extensions(group, REGISTER)
    group.usual(REGISTER)
    group.not_shortest(REGISTER, "keepAlive", "window", "capabilities")
    group.raw("without-proof", ["FRM-014"], body("register", REGISTER)[:40], 5000)
    return group


def registered():
    group = Group("registered")
    values = {"cid": CID, "generation": 1, "secret": SECRET}
    group.good("plain", ["HSK-011"], values)
    group.good("generation-0", ["HSK-011"], values | {"generation": 0})
    group.good("generation-at-the-top", ["HSK-011"], values | {"generation": TOP})
    group.usual(values)
    group.not_shortest(values, "generation")
    group.raw("without-proof", ["FRM-014"], body("registered", values), 5000)
    return group


def welcome():
    group = Group("welcome")
    group.good("plain", ["HSK-012"], WELCOME)
    group.good("resumed", ["HSK-012", "DLV-016"], WELCOME | {"flags": 1})
    group.good("unknown-flags", ["FRM-018"], WELCOME | {"flags": 0xFF})
    group.good("compressed-payloads", ["HSK-012", "CMP-002"], WELCOME | {"flags": 2})
    group.good("resumed-compressed-payloads", ["HSK-012", "CMP-002"], WELCOME | {"flags": 3})
    group.good("at-the-bottom", ["HSK-012", "HSK-028"], WELCOME | {
        "serverTime": 0, "keepAlive": 1, "window": 1, "windowBytes": 1, "keptMessages": 0, "keptBytes": 0})
    group.good("at-the-top", ["HSK-012"], WELCOME | {
        "sessionId": b"\xff" * 8, "serverTime": TOP, "keepAlive": TOP, "window": TOP, "windowBytes": TOP,
        "keptMessages": TOP, "keptBytes": TOP})
    for name in ("keepAlive", "window", "windowBytes"):
        group.raw(f"{name}-0", ["HSK-028", "FRM-019"], body("welcome", WELCOME | {name: 0}) + SEAL, 5005)
    group.usual(WELCOME)
    group.not_shortest(WELCOME, "serverTime", "keepAlive", "window", "windowBytes", "keptMessages", "keptBytes")
    return group


def push():
    group = Group("push")
    group.good("plain", ["DLV-002"], PUSH)
    group.good("offline-flag", ["DLV-002", "DLV-021"], PUSH | {"flags": 1})
    group.good("unknown-flags", ["FRM-018", "DLV-002"], PUSH | {"flags": 0xFE})
    group.good("compressed", ["DLV-002", "CMP-004"], PUSH | {"flags": 2, "payload": COMPRESSED})
    group.good("compressed-offline", ["DLV-002", "CMP-004"], PUSH | {"flags": 3, "payload": COMPRESSED})
    group.good("notification", ["TYP-002", "TYP-006"], PUSH | {"flags": 4, "payload": NOTIFICATION})
    group.good("notification-offline", ["TYP-002", "TYP-006"], PUSH | {"flags": 5, "payload": NOTIFICATION})
    group.good("revoke", ["TYP-002", "TYP-010"], PUSH | {"flags": 8, "payload": b"\x01" + string(TASKID.encode())})
    group.good("kind-3", ["TYP-004"], PUSH | {"flags": 12})
    for seq in (0, 1, 127, 128, 16383, 16384, (1 << 32) - 1, 1 << 32, (1 << 53) + 1, (1 << 63) - 1, 1 << 63, TOP):
        group.good(f"seq-{seq}", ["DLV-002", "FRM-004"], PUSH | {"seq": seq})
    group.good("payload-empty", ["DLV-003"], PUSH | {"payload": b""})
    group.good("payload-not-utf-8", ["DLV-003"], PUSH | {"payload": b"\xff\xfe\x00\x80\xc0"})
    group.good("payload-of-65535-bytes", ["DLV-003"], PUSH | {"payload": b"\xaa" * 65535})
    group.good("payload-of-65536-bytes", ["DLV-003"], PUSH | {"payload": b"\xaa" * 65536})
    group.good("taskid-empty", ["DLV-002"], PUSH | {"taskid": ""})
    group.good("taskid-of-64-bytes", ["DLV-002"], PUSH | {"taskid": "t" * 64})
    group.good("all-at-the-top", ["DLV-002", "FRM-003"], PUSH | {
        "seq": TOP, "flags": 1, "msgid": b"\xff" * 16, "taskid": "t" * 64, "payload": b"\xaa" * 65536})
    head = varint(42) + b"\0" + MSGID
    group.raw("taskid-of-65-bytes", ["FRM-006", "FRM-019"], head + string(b"t" * 65) + string(b"x"), 5005)
    group.raw("payload-of-65537-bytes", ["FRM-006", "FRM-019"], head + string(b"t") + string(b"\xaa" * 65537), 5005)
    group.raw("payload-length-of-2-64-less-1", ["FRM-006"], head + string(b"t") + TOP_HEX, 5005)
    group.raw("payload-over-the-end", ["FRM-006", "FRM-008"], head + string(b"t") + varint(5) + b"four", 5000)
    group.usual(PUSH)
    group.not_shortest(PUSH, "seq")
    group.beyond_64_bits(b"", ["FRM-004"], body("push", PUSH)[1:])
    return group


def gap():
    group = Group("gap")
    values = {"seq": 40, "upTo": 40, "count": 3, "reasons": [(1, 2), (2, 1)]}
    group.good("plain", ["DLV-018"], values)
    group.good("one-reason", ["DLV-018"], values | {"count": 1, "reasons": [(1, 1)]})
    group.good("no-reason", ["DLV-019"], values | {"reasons": []})
    group.good("count-0", ["DLV-019"], values | {"count": 0, "reasons": []})
    group.good("unknown-reason", ["DLV-019"], values | {"reasons": [(1, 1), (77, 1), (TOP, 1)]})
    group.good("reason-repeated", ["DLV-019"], values | {"reasons": [(1, 1), (1, 2)]})
    group.good("reasons-do-not-add-up", ["DLV-019"], values | {"count": 9})
    group.good("up-to-other-than-seq", ["DLV-018"], values | {"upTo": 39})
    group.good("seq-0", ["DLV-018"], values | {"seq": 0, "upTo": 0})
    group.good("all-at-the-top", ["DLV-018", "DLV-019"], {
        "seq": TOP, "upTo": TOP, "count": TOP, "reasons": [(1, TOP), (2, TOP)]})
    group.good("a-hundred-reasons", ["DLV-019"], values | {"reasons": [(code, 1) for code in range(1, 101)]})
    head = varint(40) * 2 + varint(3)
    group.raw("reason-without-count", ["FRM-008"], head + b"\x02\x01\x02\x02", 5000)
    group.raw("reasons-over-the-end", ["FRM-008"], head + b"\x03\x01\x02\x02\x01", 5000)
    group.raw("reason-count-of-2-64-less-1", ["FRM-008"], head + TOP_HEX + b"\x01\x02", 5000)
    group.usual(values)
    group.not_shortest(values, "seq", "upTo", "count")
    return group


def numbered(kind, field, spec):
    group = Group(kind)
    for value in (0, 1, 127, 128, 16384, (1 << 53) + 1, 1 << 63, TOP):
        group.good(f"{field}-{value}", [spec, "FRM-004"], {field: value})
    group.usual({field: 42})
    group.not_shortest({field: 0}, field)
    group.beyond_64_bits(b"", ["FRM-004"])
    return group


def empty(kind, specs):
    """Frames without fields; ping and pong go both ways."""
    ways = ["toGateway", "toDevice"] if codec.BY_NAME[kind]["direction"] == "both" else [None]
    found = []
    for way in ways:
        group = Group(kind, way)
        group.good("plain", specs, {})
        group.usual({})
        if way == "toDevice":
            for case in group.cases:
                case.name += "-to-device"
        found += group.cases
    return found


def resumed():
    group = Group("resumed")
    values = {"sessionId": SESSION, "flags": 1, "keptMessages": 2, "keptBytes": 60}
    group.good("plain", ["KAL-013"], values)
    group.good("not-honoured", ["KAL-013", "DLV-016"], values | {"flags": 0})
    group.good("unknown-flags", ["FRM-018"], values | {"flags": 0xFF})
    group.good("all-at-the-top", ["KAL-013"], values | {"sessionId": b"\xff" * 8, "keptMessages": TOP,
                                                       "keptBytes": TOP})
    group.usual(values)
    group.not_shortest(values, "keptMessages", "keptBytes")
    return group


def device_token():
    group = Group("device-token")
    values = {"environment": 1, "token": TOKEN}
    group.good("sandbox", ["KAL-016"], values)
    group.good("production", ["KAL-016"], values | {"environment": 2})
    group.good("clear", ["KAL-016"], {"environment": 0, "token": b""})
    group.good("of-one-byte", ["KAL-016"], values | {"token": b"\0"})
    group.good("of-128-bytes", ["KAL-016"], values | {"token": b"\xaa" * 128})
    for name, content in [("environment-3", b"\x03" + string(TOKEN)), ("environment-255", b"\xff" + string(TOKEN)),
                          ("clear-with-bytes", b"\0" + string(TOKEN)), ("empty", b"\x01\0"),
                          ("of-129-bytes", b"\x01" + string(b"\xaa" * 129))]:
        group.raw(name, ["KAL-016", "FRM-019"], content, 5005)
    group.raw("length-of-2-64-less-1", ["FRM-006"], b"\x01" + TOP_HEX, 5005)
    group.raw("over-the-end", ["FRM-008"], b"\x01" + varint(9) + b"short", 5000)
    group.usual(values)
    return group


def token_saved():
    group = Group("token-saved")
    for environment in (0, 1, 2):
        group.good(f"environment-{environment}", ["KAL-017"], {"environment": environment})
    group.raw("environment-3", ["KAL-017", "FRM-019"], b"\x03", 5005)
    group.usual({"environment": 1})
    return group


def close():
    group = Group("close")
    values = {"code": 1001, "text": "the gateway is overloaded", "retryAfter": 1500}
    group.good("plain", ["CLS-001"], values)
    for item in codec.registry("close-codes")["codes"]:
        group.good(f"code-{item['code']}-{item['name']}", ["CLS-002"], {
            "code": item["code"], "text": item["text"], "retryAfter": 0})
    for code in (0, 999, 1999, 2999, 3999, 4999, 5999, 6000, 65535):
        group.good(f"unknown-code-{code}", ["CLS-003"], values | {"code": code})
    group.good("text-empty", ["CLS-001"], values | {"text": ""})
    group.good("text-beyond-ascii", ["CLS-001", "FRM-007"], values | {"text": "\u00fcberlastet \u8fc7\u8f7d"})
    group.good("text-of-256-bytes", ["CLS-001"], values | {"text": "x" * 256})
    group.raw("text-not-utf-8", ["FRM-007"], varint(1001) + string(b"a\xffb") + b"\0", "frame",
              {"code": 1001, "text": "a\ufffdb", "retryAfter": 0}, decode_only=True)
    group.good("retry-after-at-the-top", ["CLS-006"], values | {"retryAfter": TOP})
    rest = string(b"x") + b"\0"
    group.raw("code-65536", ["CLS-001", "FRM-019"], varint(65536) + rest, 5005)
    group.raw("code-of-2-64-less-1", ["CLS-001", "FRM-019"], TOP_HEX + rest, 5005)
    group.raw("text-of-257-bytes", ["CLS-001", "FRM-006"], varint(1001) + string(b"x" * 257) + b"\0", 5005)
    group.usual(values)
    group.not_shortest(values, "code", "retryAfter")
    return group


def framing():
    """What concerns the header and types alone."""
    found = []
    for way, limit, foreign in [("toGateway", 4096, [f for f in codec.FRAMES if f["direction"] == "toDevice"]),
                                ("toDevice", 66560, [f for f in codec.FRAMES if f["direction"] == "toGateway"])]:
        def add(name, spec, data, expected):
            found.append(Case(f"framing-{name}-{'to-gateway' if way == 'toGateway' else 'to-device'}", spec, way, data,
                              expected))
        for kind in (0x00, 0x3F, 0x7F):
            add(f"unknown-type-{kind:02x}", ["FRM-015"], frame(kind, b""), "skipped")
        add("unknown-type-3f-with-a-body", ["FRM-015"], frame(0x3F, b"\xff\x80any bytes"), "skipped")
        add("unknown-type-3f-of-the-greatest-size", ["FRM-015", "FRM-003"], frame(0x3F, bytes(limit)), "skipped")
        add("unknown-type-3f-too-large", ["FRM-003"], b"\x3f" + varint(limit + 1), 5004)
        for kind in (0x80, 0x90, 0xFF):
            add(f"unknown-type-{kind:02x}", ["FRM-016"], frame(kind, b""), 5000)
        for item in foreign:
            add(f"wrong-way-{item['name']}", ["FRM-017"], frame(item["type"], b""), 5000)
        add("length-not-shortest", ["FRM-002"], b"\x05\x80\x00", 5000)
        add("length-1-not-shortest", ["FRM-002"], b"\x3f\x81\x00x", 5000)
        add("length-of-three-bytes-not-shortest", ["FRM-002"], b"\x3f\x81\x80\x00x", 5000)
        add("length-of-five-bytes", ["FRM-002"], b"\x05\x80\x80\x80\x80\x01", 5000)
        add("length-of-ten-bytes", ["FRM-002"], b"\x05" + TOP_HEX, 5000)
        add("length-greatest-of-four-bytes", ["FRM-003"], b"\x05\xff\xff\xff\x7f", 5004)
    return found


def nothing_else():
    empties = {"ping": ["KAL-001"], "pong": ["KAL-001"], "background": ["KAL-010"], "bye": ["KAL-015"]}
    return {kind: empty(kind, specs) for kind, specs in empties.items()}


def all():
    groups = [nonces("hello", "HSK-002"), nonces("challenge", "HSK-005"), login(), register(), registered(), welcome(),
              push(), gap(), numbered("ack", "seq", "DLV-007"), numbered("foreground", "lastSeq", "KAL-012"), resumed(),
              device_token(), token_saved(), close()]
    found = {group.kind: group.cases for group in groups}
    found.update(nothing_else())
    found["framing"] = framing()
    return found
