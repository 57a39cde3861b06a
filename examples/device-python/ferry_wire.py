"""The bytes of the Ferry protocol, version 1: values, frames, proofs and limits.

Nothing here touches a socket, a file or a clock. Names in brackets are requirements of the specification.
"""

from __future__ import annotations

import hashlib
import hmac
import zlib
from dataclasses import dataclass, field
from typing import Any, Iterable, Optional

VERSION = 1
PROOF_BYTES = 32
MAX_NUMBER = 2**64 - 1
MAX_BODY_FROM_GATEWAY = 66_560
APP_ID_BYTES = 64
APP_ID_SIGNS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")
PUSH_TOKEN_BYTES = 128
PAYLOAD_BYTES = 65_536
NO_EPOCH = bytes(8)

PROTOCOL_ERROR, VERSION_NOT_SUPPORTED, FRAME_TOO_LARGE, FIELD_OUT_OF_RANGE = 5000, 5001, 5004, 5005

TO_GATEWAY, TO_DEVICE, BOTH = "toGateway", "toDevice", "both"
EXTENSION_DEVICE_TOKEN, EXTENSION_CLIENT_INFO = 1, 2
CAPABILITY_COMPRESSED_PAYLOADS, CAPABILITY_TYPED_CONTENTS = 1, 2  # of login and register
FLAG_RESUMED, FLAG_COMPRESSED_PAYLOADS = 1, 2  # of welcome
FLAG_OFFLINE, FLAG_COMPRESSED = 1, 2  # of push
TRANSMISSION, NOTIFICATION, REVOKE = 0, 1, 2  # bits 2 and 3 of its flags [TYP-002]
GAP_REASONS = {1: "expired", 2: "overflowed"}

BACK_OFF, RECONNECT, REGISTER_ANEW, WAIT_FOR_FOREGROUND, STOP = (
    "backOff", "reconnect", "registerAnew", "waitForForeground", "stop")
DUTIES = {1: BACK_OFF, 2: RECONNECT, 3: REGISTER_ANEW, 4: WAIT_FOR_FOREGROUND, 5: STOP}


class Fault(Exception):
    """The peer sent what the specification forbids; `code` is the close code that names it."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Field:
    """One field of a layout. `size` is the length of a raw field, `limit` the greatest length of a string."""

    name: str
    kind: str  # varint, byte, raw, bytes, text, reasons
    size: int = 0
    limit: int = 0
    minimum: int = 0
    maximum: int = MAX_NUMBER


@dataclass(frozen=True)
class Layout:
    """What a frame of one type looks like."""

    type: int
    name: str
    direction: str
    fields: tuple[Field, ...] = ()
    signed: bool = False


@dataclass
class Frame:
    """A decoded frame. `unsigned` is its body without the proof, as a proof's transcript needs it."""

    name: str
    values: dict[str, Any]
    extensions: list[tuple[int, bytes]] = field(default_factory=list)
    proof: Optional[bytes] = None
    unsigned: bytes = b""

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def _varint(name: str, **bounds: int) -> Field:
    return Field(name, "varint", **bounds)


def _raw(name: str, size: int) -> Field:
    return Field(name, "raw", size=size)


_NONCE = (_varint("version"), _raw("nonce", 32))
_WISHES = (_varint("keepAlive"), _varint("window"), _varint("capabilities"))
_APP_ID = Field("appId", "text", limit=APP_ID_BYTES)
_ENVIRONMENT = Field("environment", "byte", maximum=2)
_KEPT = (_varint("keptMessages"), _varint("keptBytes"))

LAYOUTS = (
    Layout(0x01, "hello", TO_GATEWAY, _NONCE),
    Layout(0x02, "login", TO_GATEWAY, (
        _APP_ID, _raw("cid", 16), _varint("generation"), _raw("epoch", 8), _varint("lastSeq"), *_WISHES), signed=True),
    Layout(0x03, "register", TO_GATEWAY, (_APP_ID, _raw("installationKey", 32), *_WISHES), signed=True),
    Layout(0x04, "ack", TO_GATEWAY, (_varint("seq"),)),
    Layout(0x05, "ping", BOTH),
    Layout(0x06, "pong", BOTH),
    Layout(0x07, "background", TO_GATEWAY),
    Layout(0x08, "foreground", TO_GATEWAY, (_varint("lastSeq"),)),
    Layout(0x09, "bye", TO_GATEWAY),
    Layout(0x0A, "device-token", TO_GATEWAY, (_ENVIRONMENT, Field("token", "bytes", limit=PUSH_TOKEN_BYTES))),
    Layout(0x41, "challenge", TO_DEVICE, _NONCE),
    Layout(0x42, "registered", TO_DEVICE, (_raw("cid", 16), _varint("generation"), _raw("secret", 32)), signed=True),
    Layout(0x43, "welcome", TO_DEVICE, (
        _raw("sessionId", 8), _raw("epoch", 8), Field("flags", "byte"), _varint("serverTime"),
        _varint("keepAlive", minimum=1), _varint("window", minimum=1), _varint("windowBytes", minimum=1), *_KEPT),
        signed=True),
    Layout(0x44, "push", TO_DEVICE, (
        _varint("seq"), Field("flags", "byte"), _raw("msgid", 16), Field("taskid", "text", limit=64),
        Field("payload", "bytes", limit=PAYLOAD_BYTES))),
    Layout(0x45, "gap", TO_DEVICE, (
        _varint("seq"), _varint("upTo"), _varint("count"), Field("reasons", "reasons"))),
    Layout(0x46, "resumed", TO_DEVICE, (_raw("sessionId", 8), Field("flags", "byte"), *_KEPT)),
    Layout(0x47, "token-saved", TO_DEVICE, (_ENVIRONMENT,)),
    Layout(0x4F, "close", TO_DEVICE, (
        _varint("code", maximum=65_535), Field("text", "text", limit=256), _varint("retryAfter"))),
)
BY_NAME = {layout.name: layout for layout in LAYOUTS}
BY_TYPE = {layout.type: layout for layout in LAYOUTS}


def duty_of(code: int) -> str:
    """What a client owes after a close; it follows from the code's range alone [CLS-002, CLS-003]."""
    return DUTIES.get(code // 1000, BACK_OFF)


def varint(value: int) -> bytes:
    """LEB128 in its shortest form [FRM-004]."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def string(data: bytes) -> bytes:
    """Bytes behind their length [FRM-006]."""
    return varint(len(data)) + data


def _written(item: Field, value: Any) -> bytes:
    """One field's bytes; the value must be within the field's range."""
    if item.kind == "raw":
        return value
    if item.kind in ("bytes", "text"):
        return string(value.encode() if item.kind == "text" else value)
    if item.kind == "reasons":
        return varint(len(value)) + b"".join(varint(code) + varint(count) for code, count in value)
    return bytes([value]) if item.kind == "byte" else varint(value)


def encode_body(name: str, values: dict[str, Any], extensions: Iterable[tuple[int, bytes]] = ()) -> bytes:
    """Fields in their order, then extensions, without a proof [FRM-009]."""
    fields = b"".join(_written(item, values[item.name]) for item in BY_NAME[name].fields)
    return fields + b"".join(varint(tag) + string(data) for tag, data in extensions)


def encode_frame(name: str, body: bytes = b"") -> bytes:
    """A whole frame around a body [FRM-001]."""
    return bytes([BY_NAME[name].type]) + string(body)


def transcript(label: str, bodies: Iterable[bytes]) -> bytes:
    """The label, then each body behind its length in four bytes [HSK-016]."""
    return label.encode("ascii") + b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def proof(key: bytes, label: str, bodies: Iterable[bytes]) -> bytes:
    """HMAC-SHA-256 over the transcript [HSK-016]."""
    return hmac.new(key, transcript(label, bodies), hashlib.sha256).digest()


class _Reader:
    """Reads values from a body; running out of bytes is a fault [FRM-008]."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def at_end(self) -> bool:
        return self._at == len(self._data)

    def rest(self) -> bytes:
        return self.raw(len(self._data) - self._at)

    def raw(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            raise Fault(PROTOCOL_ERROR, "a body ends too early")
        self._at += count
        return self._data[self._at - count:self._at]

    def varint(self) -> int:
        value = 0
        for index in range(10):
            byte = self.raw(1)[0]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                if byte == 0 and index:
                    raise Fault(PROTOCOL_ERROR, "a number is not in its shortest form")
                if value > MAX_NUMBER:
                    break
                return value
        raise Fault(PROTOCOL_ERROR, "a number has more than 64 bits")

    def string(self, limit: int = MAX_NUMBER) -> bytes:
        length = self.varint()
        if length > limit:
            raise Fault(FIELD_OUT_OF_RANGE, "a string is too long")
        return self.raw(length)


def _read(item: Field, reader: _Reader) -> Any:
    if item.kind == "raw":
        return reader.raw(item.size)
    if item.kind == "bytes":
        return reader.string(item.limit)
    if item.kind == "text":
        return reader.string(item.limit).decode(errors="replace")  # [FRM-007]
    if item.kind == "reasons":
        return [(reader.varint(), reader.varint()) for _ in range(reader.varint())]
    value = reader.raw(1)[0] if item.kind == "byte" else reader.varint()
    if not item.minimum <= value <= item.maximum:
        raise Fault(FIELD_OUT_OF_RANGE, f"{item.name} is out of its range")
    return value


def decode_frame(kind: int, body: bytes, direction: str = TO_DEVICE) -> Optional[Frame]:
    """What a frame says; None when its type is unknown and to be skipped [FRM-015]."""
    layout = BY_TYPE.get(kind)
    if layout is None:
        if kind >= 0x80:
            raise Fault(PROTOCOL_ERROR, f"type {kind:02x} is not known")
        return None
    if layout.direction not in (direction, BOTH):
        raise Fault(PROTOCOL_ERROR, f"{layout.name} goes the other way")
    tail = None
    if layout.signed:
        if len(body) < PROOF_BYTES:
            raise Fault(PROTOCOL_ERROR, f"{layout.name} has no proof")
        body, tail = body[:-PROOF_BYTES], body[-PROOF_BYTES:]
    reader = _Reader(body)
    values = {item.name: _read(item, reader) for item in layout.fields}
    extensions = []
    while not reader.at_end():
        tag = reader.varint()
        extensions.append((tag, reader.string()))
    return Frame(layout.name, values, extensions, tail, body)


def inflated(payload: bytes) -> bytes:
    """The original of a compressed payload; its length is judged before anything is inflated [CMP-004...CMP-006]."""
    reader = _Reader(payload)
    length = reader.varint()
    if length > PAYLOAD_BYTES:
        raise Fault(FIELD_OUT_OF_RANGE, "a compressed payload is too long")
    stream = zlib.decompressobj()
    try:
        original = stream.decompress(reader.rest(), length + 1)  # one more, so that more shows
    except zlib.error as error:
        raise Fault(PROTOCOL_ERROR, f"a compressed payload is damaged: {error}") from error
    if len(original) != length or not stream.eof or stream.unused_data:
        raise Fault(PROTOCOL_ERROR, "a compressed payload is not as long as it says")
    return original


TEXT, NUMBER, MARK = "text", "number", "mark"
CONTENT_FIELDS = {
    NOTIFICATION: {
        1: ("title", TEXT), 2: ("body", TEXT), 3: ("bigText", TEXT), 4: ("bigImage", TEXT), 5: ("logo", TEXT),
        6: ("logoUrl", TEXT), 7: ("channelId", TEXT), 8: ("channelName", TEXT), 9: ("channelLevel", NUMBER),
        10: ("clickType", TEXT), 11: ("clickTarget", TEXT), 12: ("notifyId", NUMBER), 13: ("ringName", TEXT),
        14: ("badgeAddition", NUMBER), 15: ("threadId", TEXT), 16: ("redisplayFrequency", NUMBER),
        17: ("redisplayDuration", NUMBER), 18: ("category", TEXT), 19: ("shownFrom", NUMBER),
        20: ("shownUntil", NUMBER), 21: ("wifiOnly", MARK)},
    REVOKE: {1: ("taskid", TEXT), 2: ("force", MARK)},
}


def kind_of(flags: int) -> int:
    """The kind of a push's payload [TYP-002]."""
    return flags >> 2 & 3


def content(kind: int, payload: bytes) -> dict[str, Any]:
    """The fields of a typed content, up to the first that is cut short [TYP-006...TYP-008]."""
    found: dict[str, Any] = {}
    seen = set()
    reader = _Reader(payload)
    while not reader.at_end():
        try:
            tag, data = reader.varint(), reader.string()
        except Fault:
            break
        if tag in seen or tag not in CONTENT_FIELDS[kind]:
            continue
        seen.add(tag)
        name, form = CONTENT_FIELDS[kind][tag]
        if form == TEXT:
            found[name] = data.decode(errors="replace")
        elif form == MARK:
            found[name] = True
        else:
            inner = _Reader(data)
            try:
                number = inner.varint()
            except Fault:
                continue
            if inner.at_end():
                found[name] = number
    return found


class FrameSplitter:
    """Cuts the stream from the gateway into frames, however it was cut into segments [FRM-022]."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next(self) -> Optional[tuple[int, bytes]]:
        """Type and body of the next whole frame, or None. A bad header is found before its body is there."""
        length = 0
        for index in range(1, min(len(self._buffer), 5)):
            byte = self._buffer[index]
            length |= (byte & 0x7F) << (7 * (index - 1))
            if byte < 0x80:
                break
            if index == 4:
                raise Fault(PROTOCOL_ERROR, "a frame's length has more than four bytes")
        else:
            return None
        if byte == 0 and index > 1:
            raise Fault(PROTOCOL_ERROR, "a frame's length is not in its shortest form")
        if length > MAX_BODY_FROM_GATEWAY:
            raise Fault(FRAME_TOO_LARGE, "a frame is too large")
        end = index + 1 + length
        if len(self._buffer) < end:
            return None
        kind, body = self._buffer[0], bytes(self._buffer[index + 1:end])
        del self._buffer[:end]
        return kind, body
