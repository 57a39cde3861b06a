"""A small codec of protocol version 1, written from the chapters. It makes the vectors and reads them back.

The layouts and limits come from ../registry, so that the tables there are tested too.
"""

import hashlib
import hmac
import json
import pathlib
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def registry(name):
    return json.loads((ROOT / "registry" / (name + ".json")).read_text())


LIMITS = {item["name"]: item["value"] for item in registry("limits")["limits"]}
FRAMES = registry("frame-types")["frames"]
LINK_FRAMES = registry("frame-types")["linkFrames"]
BY_NAME = {frame["name"]: frame for frame in FRAMES + LINK_FRAMES}
BY_TYPE = {frame["type"]: frame for frame in FRAMES}
# What a link shares with devices' connections, with who sends it there.
SHARED = {"hello": "linkToGateway", "challenge": "linkToBackend", "ping": "both", "pong": "both", "close": "linkToBackend"}
# On a link every device's type is known, so that it is refused and not skipped.
LINK_BY_TYPE = {frame["type"]: frame | {"direction": SHARED.get(frame["name"], "nobody")} for frame in FRAMES} | {
    frame["type"]: frame for frame in LINK_FRAMES}
BODY_LIMITS = {"toGateway": "deviceFrameBytes", "toDevice": "gatewayFrameBytes", "linkToGateway": "linkFrameBytes",
               "linkToBackend": "gatewayFrameBytes"}
PROTOCOL_ERROR, TOO_LARGE, OUT_OF_RANGE = 5000, 5004, 5005
PROOF = 32
APP_ID = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."


class Fault(Exception):
    def __init__(self, code, why):
        super().__init__(why)
        self.code = code


# Writing

def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def string(data):
    return varint(len(data)) + data


def extension(tag, data):
    return varint(tag) + string(data)


def field_bytes(field, value):
    kind = field["kind"]
    if kind == "varint":
        return varint(value)
    if kind == "byte":
        return bytes([value])
    if kind == "raw":
        assert len(value) == field["size"], field
        return value
    if kind == "text":
        return string(value.encode())
    if kind == "bytes":
        return string(value)
    if kind == "refusals":
        return varint(len(value)) + b"".join(
            varint(number) + varint(code) + string(words.encode()) for number, code, words in value)
    return varint(len(value)) + b"".join(varint(code) + varint(count) for code, count in value)


def body(name, values, extensions=()):
    """The body without its proof. `values` holds ints, bytes and text by field name."""
    fields = BY_NAME[name]["fields"]
    assert {field["name"] for field in fields} == set(values), (name, values)
    out = b"".join(field_bytes(field, values[field["name"]]) for field in fields)
    return out + b"".join(extension(tag, data) for tag, data in extensions)


def frame(kind, data):
    """`kind` is a frame's name or any type byte."""
    number = BY_NAME[kind]["type"] if isinstance(kind, str) else kind
    return bytes([number]) + string(data)


# Proofs

def transcript(label, bodies):
    return label.encode() + b"".join(len(item).to_bytes(4, "big") + item for item in bodies)


def proof(key, label, bodies):
    return hmac.new(key, transcript(label, bodies), hashlib.sha256).digest()


# Reading

class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def raw(self, count):
        if len(self.data) - self.at < count:
            raise Fault(PROTOCOL_ERROR, "the body ends early")
        self.at += count
        return self.data[self.at - count:self.at]

    def varint(self):
        value = shift = 0
        while True:
            group = self.raw(1)[0]
            value |= (group & 0x7F) << shift
            if value >= 1 << 64 or shift > 63:
                raise Fault(PROTOCOL_ERROR, "more than 64 bits")
            if group < 0x80:
                if group == 0 and shift:
                    raise Fault(PROTOCOL_ERROR, "not the shortest spelling")
                return value
            shift += 7

    def string(self, limit):
        count = self.varint()
        if limit is not None and count > limit:
            raise Fault(OUT_OF_RANGE, "a string is too long")
        return self.raw(count)

    def extensions(self):
        found = []
        while self.at < len(self.data):
            tag = self.varint()
            found.append((tag, self.string(None)))
        return found


def read_field(reader, field):
    kind = field["kind"]
    if kind == "reasons":
        return [(reader.varint(), reader.varint()) for _ in range(reader.varint())]
    if kind == "refusals":
        return [(reader.varint(), reader.varint(), reader.string(LIMITS["linkTextBytes"]).decode(errors="replace"))
                for _ in range(reader.varint())]
    if kind == "raw":
        return reader.raw(field["size"])
    if kind in ("text", "bytes"):
        data = reader.string(LIMITS[field["limit"]])
        if field["name"] == "appId" and (not data or any(byte not in APP_ID for byte in data)):
            raise Fault(OUT_OF_RANGE, "appId")
        return data.decode(errors="replace") if kind == "text" else data
    value = reader.raw(1)[0] if kind == "byte" else reader.varint()
    if not field.get("minimum", 0) <= value <= field.get("maximum", 1 << 64):
        raise Fault(OUT_OF_RANGE, field["name"])
    return value


def check_token(environment, token):
    if environment > 2 or (environment == 0) != (not token) or len(token) > LIMITS["pushTokenBytes"]:
        raise Fault(OUT_OF_RANGE, "device token")


def check_meaning(name, values, extensions):
    if name == "device-token":
        check_token(values["environment"], values["token"])
    if name == "link-answer":
        numbers = [0, *(number for number, _, _ in values["refusals"])]
        if any(later <= earlier for earlier, later in zip(numbers, numbers[1:])) or numbers[-1] > values["upTo"]:
            raise Fault(OUT_OF_RANGE, "refusals")
    if name in ("login", "register"):
        first = {}
        for tag, data in extensions:
            first.setdefault(tag, data)
        if 1 in first:
            reader = Reader(first[1])
            check_token(reader.raw(1)[0], first[1][1:])
        if len(first.get(2, b"")) > LIMITS["clientInfoBytes"]:
            raise Fault(OUT_OF_RANGE, "client info")


def read_header(data, direction):
    """(type, body length, header length). Judges the header only."""
    length_bytes = data[1:5]
    end = next((index for index, byte in enumerate(length_bytes) if byte < 0x80), None)
    if end is None:
        raise Fault(PROTOCOL_ERROR, "the length has more than four bytes")
    length = Reader(length_bytes[:end + 1]).varint()
    if length > LIMITS[BODY_LIMITS[direction]]:
        raise Fault(TOO_LARGE, "the frame is too large")
    return data[0], length, end + 2


def decode(data, direction):
    """One whole frame: None when it is to be skipped, else (name, values, extensions, proof or None)."""
    kind, length, start = read_header(data, direction)
    assert len(data) == start + length, "not one whole frame"
    known = (LINK_BY_TYPE if direction.startswith("link") else BY_TYPE).get(kind)
    if known is None:
        if kind >= 0x80:
            raise Fault(PROTOCOL_ERROR, "a type that must be understood")
        return None
    if known["direction"] not in (direction, "both"):
        raise Fault(PROTOCOL_ERROR, "wrong direction")
    content, tail = data[start:], None
    if known["signed"]:
        if len(content) < PROOF:
            raise Fault(PROTOCOL_ERROR, "no room for the proof")
        content, tail = content[:-PROOF], content[-PROOF:]
    reader = Reader(content)
    values = {field["name"]: read_field(reader, field) for field in known["fields"]}
    extensions = reader.extensions()
    check_meaning(known["name"], values, extensions)
    return known["name"], values, extensions, tail


CONTENTS = {item["kind"]: item for item in registry("contents")["kinds"]}


def content(kind, payload):
    """The fields of a typed content, up to the first that is cut short [TYP-006...TYP-008]."""
    known = {item["tag"]: item for item in CONTENTS[kind]["fields"]}
    out, reader, seen = {"kind": CONTENTS[kind]["name"]}, Reader(payload), set()
    while reader.at < len(payload):
        try:
            tag, data = reader.varint(), reader.string(None)
        except Fault:
            break
        item = known.get(tag)
        if item is None or tag in seen:
            continue
        seen.add(tag)
        if item["form"] == "text":
            out[item["name"]] = data.decode(errors="replace")
        elif item["form"] == "mark":
            out[item["name"]] = True
        else:
            inner = Reader(data)
            try:
                number = inner.varint()
            except Fault:
                continue
            if inner.at == len(data):
                out[item["name"]] = number
    return out


def inflate(payload):
    """The original of a compressed payload."""
    reader = Reader(payload)
    count = reader.varint()
    if count > LIMITS["payloadBytes"]:
        raise Fault(OUT_OF_RANGE, "the original is too long")
    stream = zlib.decompressobj()
    try:
        original = stream.decompress(payload[reader.at:], count + 1)
    except zlib.error as error:
        raise Fault(PROTOCOL_ERROR, str(error)) from error
    if len(original) != count or not stream.eof or stream.unused_data:
        raise Fault(PROTOCOL_ERROR, "the stream is not what the length says")
    return original
