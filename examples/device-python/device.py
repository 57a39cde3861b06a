#!/usr/bin/env python3
"""A device for the Ferry protocol: it registers or logs in, stays connected, and prints what it is sent.

Each line on stdout is a JSON object. A message counts as handed over when its line is flushed; then the number that
the device reached is stored, and only then is it acknowledged. Names in brackets are requirements of the
specification. The connection is plain TCP: use it on a loopback or otherwise trusted path [SEC-001].
"""
# Long because: a client that is to be read, and copied, as one piece; its bytes are in ferry_wire.py.

from __future__ import annotations

import argparse
import base64
import hmac
import json
import os
import random
import secrets
import select
import signal
import socket
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any, Iterable, Iterator, Optional

import ferry_wire as wire

CLIENT_INFO = b"ferry-device-py/1"
HANDSHAKE_SECONDS = 30.0
PONG_SECONDS = 30.0
ACK_DELAY_SECONDS = 0.9  # at most one second [DLV-008]; the rest is for the way to the socket
ACK_EVERY_MESSAGES = 32
BACK_OFF_FIRST_SECONDS = 1.0
BACK_OFF_MAXIMUM_SECONDS = 300.0
BACK_OFF_RESET_SECONDS = 60.0
AT_ONCE_AGAIN_SECONDS = 60.0
RETRY_AFTER_MAXIMUM_MILLISECONDS = 3_600_000
BYE_SECONDS = 2.0
LONGEST_WAIT_SECONDS = 3600.0


class Lost(Exception):
    """The connection could not be made, ended without a close, or was given up [CLS-009]."""


class Closed(Exception):
    """The gateway sent a close."""

    def __init__(self, code: int, text: str, retry_after: int) -> None:
        super().__init__(f"close {code}: {harmless(text)}")
        self.code, self.retry_after = code, retry_after


class Refused(Exception):
    """The device cannot go on before somebody changes something; its text is a sentence for people."""


def harmless(text: str) -> str:
    """Text of the peer without control characters [SEC-006]."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def emit(event: str, **fields: Any) -> None:
    """Prints one event. When this returns, the reader of stdout has it."""
    print(json.dumps({"event": event, **fields}), flush=True)


@dataclass
class Saved:
    """What survives a restart; bytes are kept as hex. Empty text means that there is none yet."""

    app: str
    installationKey: str = ""
    cid: str = ""
    generation: int = 0
    secret: str = ""
    epoch: str = wire.NO_EPOCH.hex()
    lastSeq: int = 0
    savedToken: str = ""  # environment and token that the gateway said it has stored

    def check(self) -> None:
        """Raises ValueError unless this can be what the program wrote."""
        sizes = [len(bytes.fromhex(text)) for text in (self.installationKey, self.cid, self.secret, self.epoch)]
        if sizes not in ([0, 0, 0, 8], [32, 0, 0, 8], [32, 16, 32, 8]):
            raise ValueError("a value has the wrong size")
        if not all(type(n) is int and 0 <= n <= wire.MAX_NUMBER for n in (self.generation, self.lastSeq)):
            raise ValueError("a number is out of its range")


class Store:
    """Keeps `Saved` in a file, or in memory only when there is no path."""

    def __init__(self, path: Optional[str], app: str) -> None:
        self._path = path
        self.saved = Saved(app)
        if path is None:
            return
        try:
            with open(path, encoding="utf-8") as file:
                self.saved = Saved(**json.load(file))
            self.saved.check()
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise Refused(f"The state file cannot be used: {error}.") from error
        if self.saved.app != app:
            raise Refused("The state file belongs to another app.")

    def write(self) -> None:
        """Replaces the file as one step, readable by its owner only [DLV-017, HSK-029]."""
        if self._path is None:
            return
        temporary = self._path + ".new"
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with open(handle, "w", encoding="utf-8") as file:
                os.fchmod(handle, 0o600)
                json.dump(asdict(self.saved), file)
                file.flush()
                os.fsync(handle)
            os.replace(temporary, self._path)
            folder = os.open(os.path.dirname(self._path) or ".", os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        except OSError as error:
            raise Refused(f"The state file cannot be written: {error}.") from error

    def forget(self) -> None:
        """Discards the identity and all that goes with it [HSK-026]."""
        self.saved = Saved(self.saved.app)
        self.write()


class Link:
    """One TCP connection: sends frames, receives bytes, and remembers when."""

    def __init__(self, sock: socket.socket, wake: socket.socket) -> None:
        self._sock, self._wake = sock, wake
        self._splitter = wire.FrameSplitter()
        self.next_frame = self._splitter.next
        self.broken = False
        self.last_sent = time.monotonic()
        self.pong_deadline = float("inf")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(PONG_SECONDS)

    def send(self, name: str, body: bytes = b"") -> None:
        """Sends a frame. After a failure it only waits for the end, since a close may still be there to read."""
        self.last_sent = time.monotonic()
        if self.broken:
            return
        try:
            self._sock.sendall(wire.encode_frame(name, body))
        except socket.timeout as error:
            raise Lost("the gateway takes no bytes") from error
        except OSError:
            self.broken = True

    def ping(self) -> None:
        self.send("ping")
        self.pong_deadline = min(self.pong_deadline, self.last_sent + PONG_SECONDS)

    def receive(self, until: float) -> None:
        """Waits for bytes, a signal or a moment, whichever is first."""
        seconds = min(max(until - time.monotonic(), 0.0), LONGEST_WAIT_SECONDS)
        readable, _, _ = select.select([self._sock, self._wake], [], [], seconds)
        if self._sock not in readable:
            return
        try:
            data = self._sock.recv(65_536)
        except OSError as error:
            raise Lost(f"the connection was lost: {error.strerror or error}") from error
        if not data:
            raise Lost("the gateway ended the connection")
        self.pong_deadline = float("inf")  # any byte is a sign of life [KAL-002]
        self._splitter.feed(data)

    def drain(self, seconds: float) -> None:
        """Waits for the end of the connection and ignores whatever comes before it [KAL-015]."""
        deadline = time.monotonic() + seconds
        try:
            while (left := deadline - time.monotonic()) > 0:
                self._sock.settimeout(left)
                if not self._sock.recv(65_536):
                    return
        except OSError:
            return

    def close(self) -> None:
        self._sock.close()


class Device:
    """The life of a device over all its connections."""

    def __init__(self, options: argparse.Namespace, store: Store) -> None:
        self._options, self._store = options, store
        self._handed = store.saved.lastSeq  # highest seq handed over; stored before it is acknowledged
        self._payloads = 0
        self._token = options.device_token and f"{options.environment}:{options.device_token.hex()}"
        self._tries = 0
        self._last_at_once = float("-inf")
        self._online_since: Optional[float] = None
        self._stopping = self._interruptible = False
        self._compression = not options.no_compression  # off after a payload that could not be read [CMP-007]
        self._wake, self._wake_end = socket.socketpair()
        # Of the present session:
        self._window = self._window_bytes = self._keep_alive = 1
        self._compressed = False  # agreed [CMP-002]
        self._waiting = self._waiting_bytes = 0
        self._ack_deadline = float("inf")

    # Signals and duties

    def catch_signals(self) -> None:
        self._wake_end.setblocking(False)
        signal.set_wakeup_fd(self._wake_end.fileno())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, *_: object) -> None:
        self._stopping = True
        if self._interruptible:
            raise Lost("interrupted")

    def run(self) -> int:
        """Connects again and again as the duties tell; returns the exit status."""
        delay = 0.0
        while True:
            select.select([self._wake], [], [], delay)
            if self._stopping:
                return 0
            duty, retry_after = wire.BACK_OFF, 0
            try:
                self._connection()
                emit("offline", reason="bye")
                return 0
            except Lost as error:
                reason = str(error)
            except wire.Fault as error:
                reason = f"fault {error.code}: {error}"  # only a name for the log [FRM-021]
            except Closed as error:
                reason, duty, retry_after = str(error), wire.duty_of(error.code), error.retry_after
            if not self._stopping or self._online_since is not None:
                emit("offline", reason=reason)
            if duty == wire.REGISTER_ANEW:
                self._store.forget()
                self._handed = 0
            if self._stopping:
                return 0
            if duty == wire.STOP:
                raise Refused(f"The gateway wants no more tries before software or configuration change ({reason}).")
            if duty == wire.WAIT_FOR_FOREGROUND:
                raise Refused(f"The device stops until it is started again ({reason}).")
            delay = self._delay(duty, retry_after)

    def _delay(self, duty: str, retry_after: int) -> float:
        """Seconds before the next try [CLS-005, CLS-006, CLS-007, CLS-011, CLS-012]."""
        now = time.monotonic()
        if self._online_since is not None and now - self._online_since >= BACK_OFF_RESET_SECONDS:
            self._tries = 0
        delay = min(retry_after, RETRY_AFTER_MAXIMUM_MILLISECONDS) / 1000
        if duty != wire.BACK_OFF:
            first = now - self._last_at_once >= AT_ONCE_AGAIN_SECONDS
            self._last_at_once = now
            if first:
                return delay
        most = min(BACK_OFF_FIRST_SECONDS * 2 ** min(self._tries, 30), BACK_OFF_MAXIMUM_SECONDS)
        self._tries += 1
        return delay + random.uniform(0.0, most)

    # One connection

    def _connection(self) -> None:
        """One connection from start to bye; any other end is an exception."""
        self._online_since = None
        deadline = time.monotonic() + HANDSHAKE_SECONDS
        link = self._connect()
        try:
            welcome = self._handshake(link, deadline)
            self._online_since = time.monotonic()
            self._session(link, welcome)
        finally:
            link.close()
            self._store_progress()

    def _connect(self) -> Link:
        try:
            self._interruptible = True
            if self._stopping:
                raise Lost("interrupted")
            return Link(socket.create_connection(self._options.server, HANDSHAKE_SECONDS), self._wake)
        except (OSError, UnicodeError) as error:
            raise Lost(f"could not connect: {getattr(error, 'strerror', None) or error}") from error
        finally:
            self._interruptible = False

    def _expect(self, link: Link, name: str, deadline: float) -> wire.Frame:
        """The next frame of the handshake; nothing but the expected one and a close is allowed [HSK-014]."""
        while (raw := link.next_frame()) is None:
            if self._stopping:
                raise Lost("interrupted")
            if time.monotonic() >= deadline:
                raise Lost("the handshake took too long")
            link.receive(deadline)
        kind, body = raw
        if kind not in (wire.BY_NAME[name].type, wire.BY_NAME["close"].type):
            raise wire.Fault(wire.PROTOCOL_ERROR, f"type {kind:02x} came where {name} was due")
        frame = wire.decode_frame(kind, body)
        assert frame is not None
        if frame.name == "close":
            raise Closed(frame["code"], frame["text"], frame["retryAfter"])
        return frame

    def _handshake(self, link: Link, deadline: float) -> wire.Frame:
        """From hello to a welcome whose proof is right; a new identity is stored on the way."""
        saved = self._store.saved
        hello = wire.encode_body("hello", {"version": wire.VERSION, "nonce": secrets.token_bytes(32)})
        link.send("hello", hello)
        challenge = self._expect(link, "challenge", deadline)
        if challenge["version"] != wire.VERSION:
            raise wire.Fault(wire.VERSION_NOT_SUPPORTED, "the gateway chose a version that was not offered")
        opening = [hello, challenge.unsigned]
        if saved.cid:
            values = {"cid": bytes.fromhex(saved.cid), "generation": saved.generation,
                      "epoch": bytes.fromhex(saved.epoch), "lastSeq": saved.lastSeq}
            opening.append(self._introduce(link, "login", values, bytes.fromhex(saved.secret), opening))
        else:
            key = self._app_secret()
            values = {"installationKey": self._installation_key()}
            opening.append(self._introduce(link, "register", values, key, opening))
            registered = self._expect(link, "registered", deadline)
            self._check_proof(key, registered, opening)
            saved.cid, saved.generation = registered["cid"].hex(), registered["generation"]
            saved.secret = registered["secret"].hex()
            self._store.write()  # before welcome is acted on [HSK-025]
            emit("registered", cid=saved.cid)
        welcome = self._expect(link, "welcome", deadline)
        self._check_proof(bytes.fromhex(saved.secret), welcome, opening)
        return welcome

    def _introduce(self, link: Link, name: str, values: dict[str, Any], key: bytes, opening: list[bytes]) -> bytes:
        """Sends `login` or `register`; returns its whole body."""
        values = {**values, "appId": self._options.app, "keepAlive": 0, "window": 0,
                  "capabilities": wire.CAPABILITY_TYPED_CONTENTS | (
                      wire.CAPABILITY_COMPRESSED_PAYLOADS if self._compression else 0)}
        extensions = [(wire.EXTENSION_CLIENT_INFO, CLIENT_INFO)]
        if self._token and self._token != self._store.saved.savedToken:
            data = bytes([self._options.environment]) + self._options.device_token
            extensions.insert(0, (wire.EXTENSION_DEVICE_TOKEN, data))
        unsigned = wire.encode_body(name, values, extensions)
        body = unsigned + wire.proof(key, f"ferry/1 {name}", [*opening, unsigned])
        link.send(name, body)
        return body

    @staticmethod
    def _check_proof(key: bytes, frame: wire.Frame, opening: Iterable[bytes]) -> None:
        """The gateway must know the secret, else nothing that it said counts [HSK-022]."""
        right = wire.proof(key, f"ferry/1 {frame.name}", [*opening, frame.unsigned])
        if not hmac.compare_digest(right, frame.proof or b""):
            raise wire.Fault(wire.PROTOCOL_ERROR, f"the proof of {frame.name} is wrong")

    def _app_secret(self) -> bytes:
        if not self._options.app_secret:
            raise Refused("The app secret is needed to register this device.")
        return self._options.app_secret.encode()

    def _installation_key(self) -> bytes:
        """The key of this installation, in lasting storage before it is sent [HSK-024]."""
        saved = self._store.saved
        if not saved.installationKey:
            saved.installationKey = secrets.token_bytes(32).hex()
            self._store.write()
        return bytes.fromhex(saved.installationKey)

    # One session

    def _session(self, link: Link, welcome: wire.Frame) -> None:
        """From welcome to bye."""
        if not welcome["flags"] & wire.FLAG_RESUMED:  # [DLV-016]
            self._store.saved.epoch, self._store.saved.lastSeq = welcome["epoch"].hex(), 0
            self._store.write()
            self._handed = 0
        self._keep_alive, self._window = welcome["keepAlive"], welcome["window"]
        self._window_bytes = welcome["windowBytes"]
        self._compressed = self._compression and bool(welcome["flags"] & wire.FLAG_COMPRESSED_PAYLOADS)
        self._waiting, self._waiting_bytes, self._ack_deadline = 0, 0, float("inf")
        emit("online", cid=self._store.saved.cid, kept=welcome["keptMessages"])
        while not self._done():
            for frame in self._frames(link):
                self._handle(link, frame)
                if self._done():
                    break
            else:
                self._read_ended(link)
                self._keep_time(link)
                link.receive(min(self._ack_deadline, link.pong_deadline, link.last_sent + self._keep_alive))
        self._acknowledge(link)
        link.send("bye")
        if link.broken and not self._stopping:
            raise Lost("the connection was lost before the last acknowledgement was sent")
        link.drain(BYE_SECONDS)

    def _done(self) -> bool:
        count = self._options.count
        return self._stopping or (count is not None and self._payloads >= count)

    @staticmethod
    def _frames(link: Link) -> Iterator[wire.Frame]:
        """The whole frames that are there, without those to skip."""
        while (raw := link.next_frame()) is not None:
            frame = wire.decode_frame(*raw)
            if frame is not None:
                yield frame

    def _keep_time(self, link: Link) -> None:
        """Does what is due: the ack, the end of patience, the ping."""
        now = time.monotonic()
        if now >= link.pong_deadline:
            raise Lost("nothing came after a ping")
        if now >= self._ack_deadline:
            self._acknowledge(link)
        if now - link.last_sent >= self._keep_alive:
            link.ping()

    def _handle(self, link: Link, frame: wire.Frame) -> None:
        if frame.name == "push":
            self._unpack(frame)
            self._take(link, frame, len(frame["payload"]))
        elif frame.name == "gap":
            self._take(link, frame, 0)
        elif frame.name == "ping":
            link.send("pong")
        elif frame.name == "close":
            raise Closed(frame["code"], frame["text"], frame["retryAfter"])
        elif frame.name == "token-saved":
            if self._token and frame["environment"] == self._options.environment:
                self._store.saved.savedToken = self._token
                self._store.write()
        elif frame.name != "pong":
            # This device never sends foreground, so `resumed` is as misplaced as the frames of the handshake.
            raise wire.Fault(wire.PROTOCOL_ERROR, f"{frame.name} came in a session")  # [FRM-017]

    def _unpack(self, frame: wire.Frame) -> None:
        """Puts the original of a compressed payload in its place. What cannot be read is not taken [CMP-003, CMP-007]."""
        if not frame["flags"] & wire.FLAG_COMPRESSED:
            return
        try:
            if not self._compressed:
                raise wire.Fault(wire.PROTOCOL_ERROR, "a payload is compressed, and that was not agreed")
            frame.values["payload"] = wire.inflated(frame["payload"])
        except wire.Fault:
            self._compression = False
            raise

    def _take(self, link: Link, frame: wire.Frame, size: int) -> None:
        """Hands a message or gap over unless it is a repeat, and sees to its ack [DLV-005, DLV-006, DLV-008]."""
        if frame["seq"] > self._handed:
            self._hand_over(frame)
            self._handed = frame["seq"]
        self._waiting += 1
        self._waiting_bytes += size
        self._ack_deadline = min(self._ack_deadline, time.monotonic() + ACK_DELAY_SECONDS)
        if (self._waiting >= max(1, self._window // 2) or 2 * self._waiting_bytes >= self._window_bytes
                or time.monotonic() >= self._ack_deadline):
            self._acknowledge(link)

    def _read_ended(self, link: Link) -> None:
        """One ack for many messages of one read, when all of them are handed over [DLV-024]."""
        if self._waiting >= ACK_EVERY_MESSAGES:
            self._acknowledge(link)

    def _hand_over(self, frame: wire.Frame) -> None:
        if frame.name == "gap":
            reasons = dict.fromkeys(wire.GAP_REASONS.values(), 0)
            for code, count in frame["reasons"]:
                name = wire.GAP_REASONS.get(code, "other")
                reasons[name] = reasons.get(name, 0) + count
            emit("gap", count=frame["count"], reasons=reasons)
            return
        kind = wire.kind_of(frame["flags"])
        if kind == wire.NOTIFICATION:
            event, says = "notification", {"notification": wire.content(kind, frame["payload"])}
        elif kind == wire.REVOKE:
            revoke = wire.content(kind, frame["payload"])
            event, says = "revoke", {"oldTaskId": revoke.get("taskid", ""), "force": revoke.get("force", False)}
        elif kind != wire.TRANSMISSION:
            return  # of a later version: acknowledged and not handed over [TYP-004]
        else:
            event, says = "payload", self._payload(frame["payload"])
        emit(event, seq=frame["seq"], msgId=frame["msgid"].hex(), taskId=frame["taskid"],
             offLine=bool(frame["flags"] & wire.FLAG_OFFLINE), appId=self._options.app,
             **({"compressed": True} if frame["flags"] & wire.FLAG_COMPRESSED else {}), **says)
        self._payloads += 1

    @staticmethod
    def _payload(data: bytes) -> dict[str, str]:
        try:
            return {"payload": data.decode()}
        except UnicodeDecodeError:
            return {"payloadBase64": base64.b64encode(data).decode()}

    def _acknowledge(self, link: Link) -> None:
        """Stores the place in the stream, then acknowledges all up to it [DLV-006]."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, 0, 0
        self._ack_deadline = float("inf")
        if waiting and not self._options.no_ack:
            self._store_progress()
            link.send("ack", wire.encode_body("ack", {"seq": self._handed}))

    def _store_progress(self) -> None:
        """Stores what was handed over. With --no-ack it does not, since a login would acknowledge it [DLV-013]."""
        if not self._options.no_ack and self._store.saved.lastSeq != self._handed:
            self._store.saved.lastSeq = self._handed
            self._store.write()


# Command line


def server(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not 0 < int(port) < 65_536:
        raise ValueError
    return host.strip("[]"), int(port)


def parse(arguments: Optional[list[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A device for the Ferry protocol: prints what it is sent.")
    parser.add_argument("--server", type=server, required=True, metavar="HOST:PORT")
    parser.add_argument("--app", required=True, metavar="ID")
    parser.add_argument("--app-secret", default=os.environ.get("FERRY_APP_SECRET"), metavar="S",
                        help="default: the environment's FERRY_APP_SECRET; only needed to register")
    parser.add_argument("--state", metavar="FILE", help="where identity and progress are kept; default: memory only")
    parser.add_argument("--device-token", type=bytes.fromhex, metavar="HEX")
    parser.add_argument("--environment", choices=("sandbox", "production"), help="the environment of the device token")
    parser.add_argument("--count", type=int, metavar="N", help="leave after so many payloads")
    parser.add_argument("--no-compression", action="store_true", help="want all payloads uncompressed")
    parser.add_argument("--no-ack", action="store_true", help="acknowledge nothing, and do not store what was reached")
    options = parser.parse_args(arguments)
    if (options.device_token is None) != (options.environment is None):
        parser.error("--device-token and --environment go together")
    if options.device_token is not None and not 1 <= len(options.device_token) <= wire.PUSH_TOKEN_BYTES:
        parser.error("a device token has 1 to 128 bytes")
    if not 1 <= len(options.app) <= wire.APP_ID_BYTES or not set(options.app) <= wire.APP_ID_SIGNS:  # [HSK-008]
        parser.error("an app's name is 1 to 64 letters, digits, dots, hyphens and underscores")
    if options.count is not None and options.count < 1:
        parser.error("--count must be at least 1")
    options.environment = {None: 0, "sandbox": 1, "production": 2}[options.environment]
    return options


def main() -> int:
    options = parse()
    try:
        device = Device(options, Store(options.state, options.app))
        device.catch_signals()
        return device.run()
    except Refused as error:
        print(error, file=sys.stderr)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print("Nobody reads what the device prints.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
