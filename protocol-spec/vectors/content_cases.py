"""Payloads of typed contents, and what a reader takes from each."""

from codec import string, varint

TITLE, BODY = (1, b"Hi"), (2, "Tea at eight \u2615".encode())


def fields(*items):
    return b"".join(varint(tag) + string(data) for tag, data in items)


def all():
    """Name, requirements, kind, payload."""
    plain = fields(TITLE, BODY)
    every = fields(
        TITLE, BODY, (3, b"long"), (4, b"https://example.org/i.png"), (5, b"logo.png"), (6, b"https://example.org/l.png"),
        (7, b"news"), (8, b"News"), (9, varint(3)), (10, b"url"), (11, b"https://example.org/"), (12, varint(2147483647)),
        (13, b"bell"), (14, varint(1)), (15, b"thread"), (16, varint(3)), (17, varint(86400000)), (18, b"IM"),
        (19, varint(1796050000000)), (20, varint(1796057200000)), (21, b""))
    return [
        ("notification-plain", ["TYP-006", "TYP-009"], 1, plain),
        ("notification-with-every-field", ["TYP-006", "TYP-009"], 1, every),
        ("notification-in-another-order", ["TYP-006"], 1, fields(BODY, TITLE)),
        ("notification-with-an-unknown-tag", ["TYP-006"], 1, fields(TITLE, (9999, b"later"), BODY)),
        ("notification-with-a-tag-twice", ["TYP-006"], 1, fields(TITLE, (1, b"No"), BODY)),
        ("notification-with-a-number-that-is-none", ["TYP-007"], 1, plain + fields((9, b"\x03\x00"), (12, b""))),
        ("notification-with-ill-formed-text", ["TYP-007"], 1, fields((1, b"a\xffb"), BODY)),
        ("notification-cut-short", ["TYP-008"], 1, plain + b"\x03\x05four"),
        ("notification-of-no-fields", ["TYP-008"], 1, b""),
        ("revoke-plain", ["TYP-006", "TYP-010"], 2, fields((1, b"RASS_1130_00112233445566778899aabbccddeeff"))),
        ("revoke-forced", ["TYP-006", "TYP-010"], 2,
         fields((1, b"RASS_1130_00112233445566778899aabbccddeeff"), (2, b""))),
    ]
