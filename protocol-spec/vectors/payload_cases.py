"""What a compressed payload holds, and what a client makes of it. The streams are written out, since compressors differ."""

import dataclasses
import zlib

import cases
from codec import varint

TEXT = (b'{"type":"chat","from":"anna","text":"see you at eight, at the usual place"},'
        b'{"type":"chat","from":"ben","text":"see you at eight"}')
BODY = bytes.fromhex(
    "75cc410e80200c05d1ab345df704dea692af982010298984707771afbb799be96c2d8317765e8d85b72b9d531aa34e196e9b2a00b554498d"
    "70ecdee42df3a05aaa06ca411d7848ff7ead88ff2b1e0f")
SUM = zlib.adler32(TEXT).to_bytes(4, "big")
STREAM = b"\x78\x01" + BODY + SUM
# Of 65,536 and of 100,000 zero bytes.
ZEROS = bytes.fromhex("78daedc101010000008090feafee080a") + bytes(63) + bytes.fromhex("6a000f0001")
BOMB = bytes.fromhex("78daedc13101000000c2a0f54f6d0d0fa0") + bytes(96) + bytes.fromhex("80570386af0001")
WITH_DICTIONARY = bytes.fromhex(
    "78f93db8062dab562aa92c4855b2524ace482c51d2514a2bcacf05f212f3f21281bc92d48a1220af18431b90559291aa505a5c9a98a3509093"
    "989caa54ab83c3aca4d43cdc4629d50200d49d2a93")


@dataclasses.dataclass
class PayloadCase:
    name: str
    spec: list
    payload: bytes
    expected: object  # the original, or a close code


def stored(data):
    """A stream of one block that is not compressed."""
    return (b"\x78\x01\x01" + len(data).to_bytes(2, "little") + (len(data) ^ 0xFFFF).to_bytes(2, "little") + data
            + zlib.adler32(data).to_bytes(4, "big"))


def good():
    whole = varint(len(TEXT)) + STREAM
    return [
        ("text", ["CMP-004"], whole, TEXT),
        ("of-the-smallest-window", ["CMP-004"], varint(len(TEXT)) + b"\x18\xd3" + BODY + SUM, TEXT),
        ("of-another-level", ["CMP-004"], varint(len(TEXT)) + b"\x78\xda" + BODY + SUM, TEXT),
        ("not-compressed-inside", ["CMP-004"], varint(len(TEXT)) + stored(TEXT), TEXT),
        ("longer-than-its-original", ["CMP-004"], varint(1) + stored(b"x"), b"x"),
        ("empty", ["CMP-004"], b"\x00" + bytes.fromhex("78da030000000001"), b""),
        ("empty-in-a-stored-block", ["CMP-004"], b"\x00" + stored(b""), b""),
        ("of-65536-zeros", ["CMP-004", "CMP-005"], varint(65536) + ZEROS, bytes(65536)),
    ]


def bad():
    length, end = varint(len(TEXT)), 5000
    yield from [
        ("original-of-65537-bytes", ["CMP-005"], varint(65537) + ZEROS, 5005),
        ("original-of-2-64-less-1-bytes", ["CMP-005"], varint(cases.TOP) + STREAM, 5005),
        ("original-length-of-65-bits", ["CMP-004", "FRM-004"], b"\xff" * 9 + b"\x02" + STREAM, end),
        ("original-length-not-shortest", ["CMP-004", "FRM-004"], b"\x82\x81\x00" + STREAM, end),
        ("original-length-cut-short", ["CMP-004", "FRM-004"], b"\x82", end),
        ("no-bytes-at-all", ["CMP-004", "FRM-004"], b"", end),
        ("no-stream", ["CMP-006"], length, end),
        ("no-stream-and-no-original", ["CMP-006"], b"\x00", end),
        ("makes-more-than-it-says", ["CMP-006"], varint(len(TEXT) - 1) + STREAM, end),
        ("makes-something-for-nothing", ["CMP-006"], b"\x00" + STREAM, end),
        ("makes-less-than-it-says", ["CMP-006"], varint(len(TEXT) + 1) + STREAM, end),
        ("bomb-for-64-bytes", ["CMP-006"], varint(64) + BOMB, end),
        ("bomb-for-65536-bytes", ["CMP-006"], varint(65536) + BOMB, end),
        ("byte-behind-the-stream", ["CMP-006"], length + STREAM + b"\x00", end),
        ("two-streams", ["CMP-006"], varint(2 * len(TEXT)) + STREAM + STREAM, end),
        ("preset-dictionary", ["CMP-004", "CMP-006"], length + WITH_DICTIONARY, end),
        ("method-7", ["CMP-004", "CMP-006"], length + b"\x77\x09" + BODY + SUM, end),
        ("window-too-large", ["CMP-006"], length + b"\x88\x1c" + BODY + SUM, end),
        ("header-check-wrong", ["CMP-006"], length + b"\x78\x02" + BODY + SUM, end),
        ("without-header", ["CMP-004", "CMP-006"], length + BODY, end),
        ("checksum-wrong", ["CMP-006"], length + STREAM[:-1] + bytes([STREAM[-1] ^ 1]), end),
        ("checksum-of-the-compressed-bytes", ["CMP-006"],
         length + STREAM[:-4] + zlib.adler32(BODY).to_bytes(4, "big"), end),
        ("block-of-type-3", ["CMP-006"], length + b"\x78\x01\x07" + bytes(8) + SUM, end),
        ("stored-length-wrong", ["CMP-006"], b"\x01\x78\x01\x01\x01\x00\xff\xffx" + zlib.adler32(b"x").to_bytes(4, "big"),
         end),
        ("refers-to-before-its-start", ["CMP-006", "CMP-009"],
         b"\x03\x78\x01\x03\x02\x00" + zlib.adler32(bytes(3)).to_bytes(4, "big"), end),
        ("not-compressed", ["CMP-006"], b'{"hello":"world"}', end),
    ]
    for cut in (1, 4, 5, 40, len(STREAM) - 2, len(STREAM) - 1):
        yield f"cut-by-{cut}", ["CMP-006"], length + STREAM[:-cut], end


def all():
    return [PayloadCase(f"payload-{name}", spec, payload, expected)
            for name, spec, payload, expected in [*good(), *bad()]]
