"""Devices that behave in many ways, all in one process."""

from __future__ import annotations

import asyncio
import pathlib
import random
import secrets
import sys
from typing import Any, Optional

from book import Mailbox, Violation, World, now

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples/device-python"))
import ferry_wire as wire  # noqa: E402

HANDSHAKE_SECONDS = 12.0
# How a connection behaves, and how often each device picks it: prompt acknowledges at once; slow late; silent hands over
# and never acknowledges; deaf takes nothing in at all; mute is deaf and does not even answer a ping.
HABITS = {
    "acking": {"prompt": 1},
    "slow": {"slow": 1},
    "silent": {"silent": 3, "deaf": 2, "mute": 1},
    "reconnecting": {"prompt": 3, "slow": 2, "deaf": 1},
    "background": {"prompt": 2, "slow": 1},
    "absent": {"prompt": 1, "silent": 1},
}


class Ended(Exception):
    """The connection is over."""


class Device:
    """One installation; what it keeps outlives every connection and every gateway."""

    def __init__(self, world: World, kind: str, number: int, chance: random.Random, flooded: bool) -> None:
        self.world, self.kind, self.chance = world, kind, chance
        self.box = Mailbox(f"{kind}-{number}", flooded)
        self.cid = b""
        self._key, self._secret, self._generation = secrets.token_bytes(32), b"", 0
        self._epoch = wire.NO_EPOCH
        self._push_token = secrets.token_bytes(32) if number % 2 else b""
        # The greatest number that the gateway was told; one at a login lies between this and what the app has.
        self.acknowledged = 0
        self._writer: Optional[asyncio.StreamWriter] = None
        self._mode = "prompt"

    async def run(self) -> None:
        while not self.world.is_over:
            if not self.world.is_up:
                await asyncio.sleep(0.01)
                continue
            if self.kind == "absent" and self.cid and not self.world.is_draining and self.chance.random() < 0.8:
                await asyncio.sleep(0.1)
                continue
            try:
                await self._connection()
            except (Ended, OSError, asyncio.IncompleteReadError, asyncio.TimeoutError):
                pass
            except wire.Fault as fault:
                raise Violation(f"{self.box.name}: the gateway broke the protocol: {fault}") from fault
            finally:
                if self._writer:
                    self._writer.transport.abort()
                    self._writer = None
            await asyncio.sleep(self.chance.uniform(0.0, 0.05 if self.world.is_draining else 0.25))

    def start_to_drain(self) -> None:
        """What a connection did not take in must be asked for once more, by another one."""
        if self._writer and (self._mode != "prompt" or self.kind == "background"):
            self._writer.transport.abort()

    # The handshake

    async def _connection(self) -> None:
        life = self.world.life
        reader, self._writer = await asyncio.open_connection("127.0.0.1", self.world.device_port, limit=1 << 20)
        stream = Stream(reader, self._writer, self.box.name)
        welcome = await asyncio.wait_for(self._handshake(stream), HANDSHAKE_SECONDS)
        self.world.count("logins")
        if not welcome["flags"] & wire.FLAG_RESUMED:
            if self._epoch != wire.NO_EPOCH:
                raise Violation(f"{self.box.name}: the stream was not resumed after seq {self.box.last_seq}")
            self._epoch = welcome["epoch"]
        await Session(self, stream, life).run()

    async def _handshake(self, stream: "Stream") -> wire.Frame:
        hello = wire.encode_body("hello", {"version": wire.VERSION, "nonce": secrets.token_bytes(32)})
        stream.send("hello", hello)
        bodies = [hello, (await stream.expect("challenge")).unsigned]
        values: dict[str, Any] = {"appId": self.world.app["appId"], "keepAlive": 0, "window": 0, "capabilities": 0}
        if self.cid:
            name, key = "login", self._secret
            values |= {"cid": self.cid, "generation": self._generation, "epoch": self._epoch,
                       "lastSeq": self._stored_seq()}
        else:
            name, key = "register", self.world.app["appSecret"].encode()
            values |= {"installationKey": self._key}
        extensions = [(wire.EXTENSION_DEVICE_TOKEN, b"\x02" + self._push_token)] if self._push_token else []
        unsigned = wire.encode_body(name, values, extensions)
        bodies.append(unsigned + wire.proof(key, f"ferry/1 {name}", [*bodies, unsigned]))
        stream.send(name, bodies[-1])
        if name == "register":
            registered = await stream.expect("registered")
            check_proof(key, registered, bodies)
            self._secret, self._generation = registered["secret"], registered["generation"]
            self.cid = registered["cid"]
        welcome = await stream.expect("welcome")
        check_proof(self._secret, welcome, bodies)
        return welcome

    def _stored_seq(self) -> int:
        """Sometimes the app has more than the client had stored when it was ended: then messages come again."""
        if self.chance.random() < 0.3:
            self.acknowledged = max(self.acknowledged, self.chance.randint(self.acknowledged, self.box.last_seq))
        else:
            self.acknowledged = self.box.last_seq
        return self.acknowledged

    def next_mode(self) -> str:
        habits = HABITS[self.kind]
        mode = self.chance.choices(list(habits), list(habits.values()))[0]
        self._mode = "prompt" if self.world.is_draining else mode
        return self._mode


def check_proof(key: bytes, frame: wire.Frame, bodies: list[bytes]) -> None:
    if frame.proof != wire.proof(key, f"ferry/1 {frame.name}", [*bodies, frame.unsigned]):
        raise Violation(f"the proof of {frame.name} is wrong")


class Stream:
    """Frames over one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str) -> None:
        self._reader, self._writer, self._name = reader, writer, name
        self._splitter = wire.FrameSplitter()

    def send(self, name: str, body: bytes = b"") -> None:
        self._writer.write(wire.encode_frame(name, body))

    async def read(self, seconds: Optional[float] = None) -> list[wire.Frame]:
        """The frames that the next bytes complete; none when the time is up."""
        try:
            data = await asyncio.wait_for(self._reader.read(65_536), seconds)
        except asyncio.TimeoutError:
            return []
        if not data:
            raise Ended
        self._splitter.feed(data)
        return self.buffered()

    def buffered(self) -> list[wire.Frame]:
        frames = []
        while (raw := self._splitter.next()) is not None:
            frames.append(wire.decode_frame(*raw))
        return [frame for frame in frames if frame]

    async def expect(self, name: str) -> wire.Frame:
        if not hasattr(self, "_early"):
            self._early: list[wire.Frame] = []
        while not self._early:
            self._early = await self.read()
        frame = self._early.pop(0)
        if frame.name == "close":
            self.judge_close(frame)
        if frame.name != name:
            raise Violation(f"{self._name}: {frame.name} came where {name} was due")
        return frame

    def rest(self) -> list[wire.Frame]:
        """What came in one piece with the last expected frame."""
        early, self._early = self._early, []
        return early

    def judge_close(self, frame: wire.Frame) -> None:
        if frame["code"] >= 3000:
            raise Violation(f"{self._name}: closed with {frame['code']} {frame['text']}")
        raise Ended


class Session:
    """What a device does between its welcome and the end of the connection."""

    def __init__(self, device: Device, stream: Stream, life: int) -> None:
        self.device, self.box, self.world, self.stream, self.life = device, device.box, device.world, stream, life
        self.mode = device.next_mode()
        self.attached_since: Optional[float] = now()
        # Of this session: an acknowledgement must not go beyond what came in it.
        self.reached = device.acknowledged
        self.ack_due = float("inf")
        self.in_background = False

    async def run(self) -> None:
        chance = self.device.chance
        ends = now() + chance.uniform(0.0, 1.0) if self.device.kind in ("reconnecting", "absent") else float("inf")
        turn = now() + chance.uniform(0.1, 0.6) if self.device.kind == "background" else float("inf")
        frames = self.stream.rest()
        while True:
            for frame in frames:
                self._take(frame)
            at = now()
            if self.reached > self.device.acknowledged and self.mode in ("prompt", "slow"):
                self.ack_due = min(self.ack_due, at + (chance.uniform(0.05, 0.8) if self.mode == "slow" else 0.0))
            if at >= self.ack_due:
                self.stream.send("ack", wire.encode_body("ack", {"seq": self.reached}))
                self.device.acknowledged, self.ack_due = self.reached, float("inf")
            if at >= ends and not self.world.is_draining:
                raise Ended
            if at >= turn:
                self._turn()
                turn = at + chance.uniform(0.1, 0.6)
            wait = min(self.ack_due, ends if not self.world.is_draining else at + 60, turn, at + 60) - now()
            frames = await self.stream.read(max(wait, 0.001))

    def _turn(self) -> None:
        if self.in_background:
            self.device.acknowledged = self.reached
            self.stream.send("foreground", wire.encode_body("foreground", {"lastSeq": self.reached}))
        elif not self.world.is_draining:
            self.stream.send("background")
            self.attached_since = None
        else:
            return
        self.in_background = not self.in_background

    def _take(self, frame: wire.Frame) -> None:
        if frame.name == "close":
            self.stream.judge_close(frame)
        elif frame.name == "ping" and self.mode != "mute":
            self.stream.send("pong")
        elif frame.name == "resumed":
            self.attached_since = now()
            if not frame["flags"] & wire.FLAG_RESUMED:
                raise Violation(f"{self.box.name}: foreground did not resume after seq {self.box.last_seq}")
        elif frame.name in ("push", "gap") and self.mode not in ("deaf", "mute"):
            self._take_entry(frame)

    def _take_entry(self, frame: wire.Frame) -> None:
        seq = frame["seq"]
        if seq <= self.reached and self.attached_since is not None:
            raise Violation(f"{self.box.name}: seq {seq} comes in a session that had reached {self.reached}")
        self.reached = max(self.reached, seq)
        if self.box.is_repeat(seq, frame["msgid"].hex() if frame.name == "push" else "gap"):
            self.world.count("repeats")
            return
        if frame.name == "gap":
            self.world.count("gaps")
            self.box.hear_of_gap(seq, frame["count"], frame["reasons"])
            return
        self.world.count("handed")
        uid = frame["payload"].partition(b" ")[0].decode(errors="replace")
        self.box.hand(seq, frame["msgid"].hex(), uid, frame["taskid"], bool(frame["flags"] & wire.FLAG_OFFLINE),
                      self.life, self.attached_since)
