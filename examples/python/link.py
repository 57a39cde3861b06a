#!/usr/bin/env python3
"""A backend that streams pushes over a link, from the specification's chapter 10 and nothing but the standard library.

    link.py CID < lines      sends each line of stdin to the device and prints what was refused
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import hmac
import os
import random
import secrets
import select
import socket
import sys
import time
from dataclasses import dataclass
from typing import Iterable, Iterator, Optional

VERSION = 1
PROOF_BYTES = 32
FRAME_LIMIT = 66_560  # from a gateway [FRM-003]
LEAST_WINDOW_BYTES = 70_656  # [LNK-006]
REFUSAL_TEXT_BYTES = 256
CLOSE_TEXT_BYTES = 256
PONG_SECONDS = 30.0
HANDSHAKE_SECONDS = 30.0
PUSHES_PER_TURN = 64
HELLO, LINK_LOGIN, LINK_PUSH, CHALLENGE, LINK_WELCOME, LINK_ANSWER = 0x01, 0x21, 0x22, 0x41, 0x61, 0x62
PING, PONG, CLOSE = 0x05, 0x06, 0x4F
LIVE_ONLY, BACKGROUND = 1, 2
FOREIGN = frozenset({0x01, 0x02, 0x03, 0x04, 0x07, 0x08, 0x09, 0x0A, 0x21, 0x22, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47})
PROTOCOL_ERROR, FRAME_TOO_LARGE, OUT_OF_RANGE = 5000, 5004, 5005


class Fault(Exception):
    """The gateway sent what the specification forbids; `code` is the close code that names it."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Closed(Exception):
    """The gateway closed the link."""

    def __init__(self, code: int, text: str, retry_after: float) -> None:
        super().__init__(f"{code}: {text}")
        self.code, self.retry_after = code, retry_after

    @property
    def is_final(self) -> bool:
        """Whether coming back is of no use before something changes [LNK-024]."""
        return 3000 <= self.code <= 5999


# Values [FRM-004]…[FRM-006], [HSK-016]

def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def string(data: bytes) -> bytes:
    return varint(len(data)) + data


def frame(kind: int, body: bytes = b"") -> bytes:
    return bytes([kind]) + string(body)


def proof(key: bytes, label: str, bodies: Iterable[bytes]) -> bytes:
    transcript = label.encode() + b"".join(len(body).to_bytes(4, "big") + body for body in bodies)
    return hmac.new(key, transcript, hashlib.sha256).digest()


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def raw(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise Fault(PROTOCOL_ERROR, "a body ends too early")
        self.at += count
        return self.data[self.at - count:self.at]

    def varint(self) -> int:
        value = 0
        for index in range(10):
            byte = self.raw(1)[0]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                if (byte == 0 and index) or value >= 1 << 64:
                    break
                return value
        raise Fault(PROTOCOL_ERROR, "a number is malformed")

    def string(self, limit: int) -> bytes:
        count = self.varint()
        if count > limit:
            raise Fault(OUT_OF_RANGE, "a string is too long")
        return self.raw(count)

    def end(self) -> None:
        while self.at < len(self.data):
            self.varint()
            self.raw(self.varint())


# Frames

@dataclass(frozen=True)
class Push:
    """A message for one device. The same `id` again is the same push [LNK-013]."""

    cid: bytes
    payload: bytes
    id: bytes
    ttl: int = 0  # milliseconds, 0 for the default
    flags: int = 0
    alert: bytes = b""
    collapse_id: str = ""

    def body(self) -> bytes:
        return (self.id + self.cid + bytes([self.flags]) + varint(self.ttl) + string(self.alert)
                + string(self.collapse_id.encode()) + string(self.payload))


@dataclass(frozen=True)
class Refusal:
    number: int
    code: int
    text: str


def login_body(app_id: str, capabilities: int = 0) -> bytes:
    """Without its proof [LNK-004]."""
    return string(app_id.encode()) + varint(capabilities)


def read_welcome(body: bytes) -> tuple[int, int, int, int]:
    """serverTime, keepAlive, window, windowBytes [LNK-006]; the proof is the caller's."""
    if len(body) < PROOF_BYTES:
        raise Fault(PROTOCOL_ERROR, "no proof")
    reader = Reader(body[:-PROOF_BYTES])
    server_time, keep_alive, window, window_bytes = (reader.varint() for _ in range(4))
    if keep_alive < 1 or window < 1 or window_bytes < LEAST_WINDOW_BYTES:
        raise Fault(OUT_OF_RANGE, "a window or keep-alive is out of its range")
    reader.end()
    return server_time, keep_alive, window, window_bytes


def read_answer(body: bytes) -> tuple[int, list[Refusal]]:
    """upTo and refusals [LNK-015]."""
    reader = Reader(body)
    up_to, count = reader.varint(), reader.varint()
    refusals: list[Refusal] = []
    for _ in range(count):
        number = reader.varint()
        if not (refusals[-1].number if refusals else 0) < number <= up_to:
            raise Fault(OUT_OF_RANGE, "a refusal's number is out of its range")
        code = reader.varint()
        refusals.append(Refusal(number, code, reader.string(REFUSAL_TEXT_BYTES).decode(errors="replace")))
    reader.end()
    return up_to, refusals


def split(buffer: bytearray) -> Optional[tuple[int, bytes]]:
    """Takes the first whole frame off the buffer [FRM-001]…[FRM-003]."""
    length = 0
    for index in range(1, 5):
        if index >= len(buffer):
            return None
        length |= (buffer[index] & 0x7F) << (7 * (index - 1))
        if buffer[index] < 0x80:
            break
    else:
        raise Fault(PROTOCOL_ERROR, "a frame's length has more than four bytes")
    if buffer[index] == 0 and index > 1:
        raise Fault(PROTOCOL_ERROR, "a frame's length is not in its shortest form")
    if length > FRAME_LIMIT:
        raise Fault(FRAME_TOO_LARGE, "a frame is too large")
    end = index + 1 + length
    if len(buffer) < end:
        return None
    kind, body = buffer[0], bytes(buffer[index + 1:end])
    del buffer[:end]
    return kind, body


def is_skipped(kind: int) -> bool:
    """Whether a type that this client has no use for is skipped; a fault if it may not be [LNK-002]."""
    if kind >= 0x80 or kind in FOREIGN:
        raise Fault(PROTOCOL_ERROR, f"type {kind:02x} does not belong here")
    return True


class Link:
    """One link, from its handshake to its end."""

    def __init__(self, address: tuple[str, int], app_id: str, master_secret: str) -> None:
        self._socket = socket.create_connection(address, timeout=HANDSHAKE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()
        self._output = bytearray()
        key = master_secret.encode()
        hello = varint(VERSION) + secrets.token_bytes(32)
        self._socket.sendall(frame(HELLO, hello))
        challenge = self._expect(CHALLENGE)
        unsigned = login_body(app_id)
        login = unsigned + proof(key, "ferry/1 link-login", [hello, challenge, unsigned])
        self._socket.sendall(frame(LINK_LOGIN, login))
        welcome = self._expect(LINK_WELCOME)
        wanted = proof(key, "ferry/1 link-welcome", [hello, challenge, login, welcome[:-PROOF_BYTES]])
        _, self._keep_alive, self.window, self.window_bytes = read_welcome(welcome)
        if not hmac.compare_digest(wanted, welcome[-PROOF_BYTES:]):
            raise Fault(PROTOCOL_ERROR, "the gateway does not know the master secret")
        self._socket.setblocking(False)
        self._heard = self._said = time.monotonic()

    def close(self) -> None:
        self._socket.close()

    def send(self, body: bytes) -> None:
        self._output += frame(LINK_PUSH, body)

    def turn(self, seconds: float) -> list[tuple[int, list[Refusal]]]:
        """Sends what can be sent, waits up to `seconds` for something to happen, and returns the answers that came."""
        now = time.monotonic()
        if now - self._said >= self._keep_alive / 2 and not self._output:
            self._output += frame(PING)
        if now - self._heard > self._keep_alive + PONG_SECONDS:
            raise ConnectionError("the gateway has fallen silent")
        writers = [self._socket] if self._output else []
        readable, writable, _ = select.select([self._socket], writers, [], seconds)
        if writable:
            sent = self._socket.send(self._output)
            del self._output[:sent]
            self._said = time.monotonic()
        if readable:
            self._receive()
        answers = []
        while (found := split(self._buffer)) is not None:
            kind, body = found
            if kind == LINK_ANSWER:
                answers.append(read_answer(body))
            elif kind == PING:
                self._output += frame(PONG)
            elif kind == CLOSE:
                self._raise_close(body)
            elif kind != PONG:
                is_skipped(kind)
        return answers

    def _receive(self) -> None:
        data = self._socket.recv(65_536)
        if not data:
            raise ConnectionError("the gateway ended the link")
        self._buffer += data
        self._heard = time.monotonic()

    def _expect(self, wanted: int) -> bytes:
        while (found := split(self._buffer)) is None:
            data = self._socket.recv(65_536)
            if not data:
                raise ConnectionError("the gateway ended the link")
            self._buffer += data
        kind, body = found
        if kind == CLOSE:
            self._raise_close(body)
        if kind != wanted:
            raise Fault(PROTOCOL_ERROR, f"type {kind:02x} instead of {wanted:02x}")
        return body

    @staticmethod
    def _raise_close(body: bytes) -> None:
        reader = Reader(body)
        code, text = reader.varint(), reader.string(CLOSE_TEXT_BYTES).decode(errors="replace")
        raise Closed(code, text, reader.varint() / 1000)


def stream(address: tuple[str, int], app_id: str, master_secret: str,
           pushes: Iterator[Push]) -> Iterator[tuple[Push, Optional[Refusal]]]:
    """Sends all, over as many links as it takes, and yields each with its refusal, or None when it was accepted.

    `pushes` must not keep anybody waiting for long: nothing is sent or heard meanwhile.
    What has no answer when a link ends is sent again on the next, first and with the same bytes [LNK-022].
    """
    waiting: collections.deque[tuple[Push, bytes]] = collections.deque()  # without an answer, oldest first
    is_over, failures = False, 0
    while waiting or not is_over:
        pause = 0.0
        try:
            link = Link(address, app_id, master_secret)
            try:
                sent = answered = out_bytes = 0
                while waiting or not is_over:
                    for _ in range(PUSHES_PER_TURN):
                        if is_over or len(waiting) >= link.window:
                            break
                        push = next(pushes, None)
                        if push is None:
                            is_over = True
                        else:
                            waiting.append((push, push.body()))
                    # `waiting` begins with what this link has sent [LNK-019].
                    while sent - answered < min(len(waiting), link.window):
                        body = waiting[sent - answered][1]
                        if out_bytes + len(body) > link.window_bytes:
                            break
                        link.send(body)
                        sent, out_bytes = sent + 1, out_bytes + len(body)
                    if not waiting:
                        break
                    has_room = not is_over and len(waiting) < link.window
                    for up_to, refusals in link.turn(0.0 if has_room else 1.0):
                        if not answered < up_to <= sent:
                            raise Fault(PROTOCOL_ERROR, "an answer to what was not asked")
                        told = {refusal.number: refusal for refusal in refusals}
                        while answered < up_to:
                            answered, failures = answered + 1, 0
                            push, body = waiting.popleft()
                            out_bytes -= len(body)
                            yield push, told.get(answered)
            finally:
                link.close()
        except Closed as close:
            if close.is_final:
                raise
            pause = close.retry_after
        except (OSError, Fault) as error:
            print(f"link.py: {error}", file=sys.stderr)
        else:
            continue
        # Back-off with full jitter [CLS-005].
        time.sleep(min(pause, 3600.0) + random.uniform(0, min(2.0 ** failures, 300.0)))
        failures += 1


def main() -> int:
    parser = argparse.ArgumentParser(description="Sends each line of stdin to a device over a link.")
    parser.add_argument("cid", help="the device, 32 hex digits")
    parser.add_argument("--link", default=os.environ.get("FERRY_LINK", "127.0.0.1:7900"), help="HOST:PORT; or FERRY_LINK")
    parser.add_argument("--app", default=os.environ.get("FERRY_APP"), help="the app's id; or FERRY_APP")
    arguments = parser.parse_args()
    secret = os.environ.get("FERRY_MASTER_SECRET")
    if not arguments.app or not secret:
        parser.error("name the app by --app or FERRY_APP, and its secret by FERRY_MASTER_SECRET")
    host, _, port = arguments.link.rpartition(":")
    cid = bytes.fromhex(arguments.cid)
    lines = (Push(cid, line.rstrip("\n").encode(), secrets.token_bytes(16)) for line in sys.stdin)
    refused = accepted = 0
    try:
        for push, refusal in stream((host, int(port)), arguments.app, secret, lines):
            if refusal is None:
                accepted += 1
            else:
                refused += 1
                print(f"{push.payload.decode()!r}: {refusal.text} (code {refusal.code})")
    except Closed as close:
        print(f"link.py: {close}", file=sys.stderr)
        return 1
    print(f"{accepted} accepted, {refused} refused", file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
