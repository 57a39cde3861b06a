"""proofs.json: whole handshakes with fixed keys and nonces, and each input of each proof."""

import cases
import codec
import link_cases

HELLO, CHALLENGE = cases.HELLO, cases.CHALLENGE


def step(label, key, bodies):
    return {
        "label": label,
        "key": key.hex(),
        "bodies": [item.hex() for item in bodies],
        "input": codec.transcript(label, bodies).hex(),
        "proof": codec.proof(key, label, bodies).hex(),
    }


def sealed(entry):
    """The signed body: its part without the proof stands last in the transcript."""
    return bytes.fromhex(entry["bodies"][-1]) + bytes.fromhex(entry["proof"])


def handshake(name, spec, secrets, frames, proofs):
    return {
        "name": name, "spec": spec, **secrets,
        "frames": [
            {"direction": codec.BY_NAME[kind]["direction"], "type": kind, "hex": codec.frame(kind, data).hex()}
            for kind, data in frames
        ],
        "proofs": proofs,
    }


def login(name, spec, capabilities, flags):
    secret = cases.SECRET
    unsigned = codec.body("login", cases.LOGIN | {"capabilities": capabilities})
    first = step("ferry/1 login", secret, [HELLO, CHALLENGE, unsigned])
    whole = sealed(first)
    answer = codec.body("welcome", cases.WELCOME | {"flags": flags})
    second = step("ferry/1 welcome", secret, [HELLO, CHALLENGE, whole, answer])
    frames = [("hello", HELLO), ("challenge", CHALLENGE), ("login", whole), ("welcome", sealed(second))]
    return handshake(name, ["HSK-016", "HSK-017", "HSK-020", *spec], {"deviceSecret": secret.hex()},
                     frames, [first, second])


def registration(name, app_secret, extensions):
    key, secret = app_secret.encode(), cases.SECRET
    unsigned = codec.body("register", cases.REGISTER, extensions)
    first = step("ferry/1 register", key, [HELLO, CHALLENGE, unsigned])
    whole = sealed(first)
    given = codec.body("registered", {"cid": cases.CID, "generation": 1, "secret": secret})
    second = step("ferry/1 registered", key, [HELLO, CHALLENGE, whole, given])
    granted = {"keepAlive": 120, "window": 128, "keptMessages": 0, "keptBytes": 0}
    answer = codec.body("welcome", cases.WELCOME | granted)
    third = step("ferry/1 welcome", secret, [HELLO, CHALLENGE, whole, answer])
    frames = [("hello", HELLO), ("challenge", CHALLENGE), ("register", whole), ("registered", sealed(second)),
              ("welcome", sealed(third))]
    return handshake(name, ["HSK-016", "HSK-018", "HSK-019", "HSK-020"],
                     {"appSecret": app_secret, "deviceSecret": secret.hex()}, frames, [first, second, third])


def link(name, master_secret):
    key = master_secret.encode()
    first = step("ferry/1 link-login", key, [HELLO, CHALLENGE, codec.body("link-login", link_cases.LOGIN)])
    whole = sealed(first)
    second = step("ferry/1 link-welcome", key,
                  [HELLO, CHALLENGE, whole, codec.body("link-welcome", link_cases.WELCOME)])
    frames = [("hello", HELLO), ("challenge", CHALLENGE), ("link-login", whole), ("link-welcome", sealed(second))]
    case = handshake(name, ["LNK-004", "LNK-006", "HSK-016"], {"masterSecret": master_secret}, frames, [first, second])
    for entry in case["frames"]:
        entry["direction"] = codec.SHARED.get(entry["type"], entry["direction"])
    return case


def links():
    return [link("link-handshake", "correct horse battery staple"),
            link("link-handshake-secret-beyond-ascii", "schl\u00fcssel-\u5bc6\u94a5")]


def all():
    return [
        login("login-handshake", [], 0, 1),
        login("login-handshake-compressed-payloads", ["CMP-001", "CMP-002"], 1, 3),
        registration("register-handshake", "correct horse battery staple", []),
        registration("register-handshake-with-extensions", "correct horse battery staple",
                     [(1, b"\x01" + bytes(range(32))), (2, b"example/1.0")]),
        registration("register-handshake-secret-beyond-ascii", "schl\u00fcssel-\u5bc6\u94a5", []),
        registration("register-handshake-secret-longer-than-a-block", "long " * 20, []),
    ]
