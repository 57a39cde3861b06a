"""Backends that stream over a link, and send again what has no answer."""

from __future__ import annotations

import asyncio
import pathlib
import random
import secrets
import sys
from typing import Optional

from backends import ANSWER_SECONDS, BUSY, Backend
from book import Message, Violation, World, now
from devices import Device

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples/python"))
import link as wire  # noqa: E402

BATCH = 12


class LinkBackend(Backend):
    """The same pushes, some at a time: whatever of them has no answer comes again first, under its id."""

    def __init__(self, world: World, devices: list[Device], number: int, chance: random.Random) -> None:
        super().__init__(world, devices, number, chance)
        self._sent: list[wire.Push] = []
        self._numbered = 0
        self._buffer = bytearray()

    async def _push(self, device: Device) -> None:
        batch = [self._make(device)]
        for _ in range(self.chance.randrange(BATCH)):
            if (other := self._choose()) is not None:
                batch.append(self._make(other))
        waiting = list(batch)
        for _, message in waiting:
            message.first_sent = now()
        while waiting:
            waiting = await self._stream(waiting)
        self.world.count("accepted", len(batch))
        # Now and then something once more, at once or long after.
        self._sent += [push for push, _ in batch]
        if self.chance.random() < 0.1:
            again: list[tuple[wire.Push, Optional[Message]]] = [(self.chance.choice(self._sent), None)]
            while again:
                again = await self._stream(again)

    def _make(self, device: Device) -> tuple[wire.Push, Message]:
        self._count += 1
        ttl = self.chance.choices([None, self.chance.randint(200, 2000), 0], [94, 4, 2])[0]
        message = Message(f"{self._prefix}-{self._count}", ttl)
        device.box.post(message)
        size = self.chance.choice((10, 100, 100, 400, 1500, 3000))
        push = wire.Push(
            cid=device.cid, payload=f"{message.uid} {'x' * size}".encode(), id=secrets.token_bytes(16),
            ttl=259_200_000 if ttl is None else ttl, flags=wire.LIVE_ONLY if ttl == 0 else 0)
        return push, message

    async def _stream(self, batch: list) -> list:
        """Sends all over the link and answers what of it has no answer."""
        while not self.world.is_up:
            await asyncio.sleep(0.01)
            if self.world.is_over:
                raise asyncio.CancelledError
        done = 0
        busy = []
        try:
            if self._link is None or self._link_life != self.world.life:
                self._drop()
                self._link_life = self.world.life
                await asyncio.wait_for(self._open(), ANSWER_SECONDS)
            _, writer = self._link
            writer.write(b"".join(wire.frame(wire.LINK_PUSH, push.body()) for push, _ in batch))
            if self.chance.random() < 0.02:
                await asyncio.sleep(self.chance.uniform(0.0, 0.005))
                raise ConnectionResetError("this backend lost its network")
            while done < len(batch):
                kind, body = await asyncio.wait_for(self._frame(), ANSWER_SECONDS)
                if kind == wire.CLOSE:
                    raise ConnectionResetError("the gateway closed the link")
                up_to, refusals = wire.read_answer(body)
                for refusal in refusals:
                    if refusal.code != BUSY:
                        raise Violation(f"a push over a link was refused: {refusal.text}")
                    busy.append(batch[refusal.number - self._numbered - 1])
                    self.world.count("busy")
                for one in batch[done:up_to - self._numbered]:
                    if one not in busy and one[1] is not None:
                        one[1].answered, one[1].answered_life = now(), self._link_life
                done = up_to - self._numbered
            self._numbered += done
            if busy:
                await asyncio.sleep(0.1)
            return busy
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError):
            self._drop()
            self.world.count("retries")
            await asyncio.sleep(self.chance.uniform(0.0, 0.05))
            return busy + batch[done:]

    async def _open(self) -> None:
        self._link = await asyncio.open_connection("127.0.0.1", self.world.link_port)
        self._numbered, self._buffer = 0, bytearray()
        _, writer = self._link
        app = self.world.app
        key = app["masterSecret"].encode()
        hello = wire.varint(wire.VERSION) + secrets.token_bytes(32)
        writer.write(wire.frame(wire.HELLO, hello))
        challenge = await self._expect(wire.CHALLENGE)
        unsigned = wire.login_body(app["appId"])
        login = unsigned + wire.proof(key, "ferry/1 link-login", [hello, challenge, unsigned])
        writer.write(wire.frame(wire.LINK_LOGIN, login))
        welcome = await self._expect(wire.LINK_WELCOME)
        wanted = wire.proof(key, "ferry/1 link-welcome", [hello, challenge, login, welcome[:-wire.PROOF_BYTES]])
        if wanted != welcome[-wire.PROOF_BYTES:]:
            raise Violation("a link's welcome has a wrong proof")

    async def _expect(self, wanted: int) -> bytes:
        kind, body = await self._frame()
        if kind == wire.CLOSE:
            raise ConnectionResetError("the gateway closed the link")
        if kind != wanted:
            raise Violation(f"type {kind:02x} on a link instead of {wanted:02x}")
        return body

    async def _frame(self) -> tuple[int, bytes]:
        assert self._link is not None
        while (found := wire.split(self._buffer)) is None:
            data = await self._link[0].read(65_536)
            if not data:
                raise ConnectionResetError("the link ended")
            self._buffer += data
        return found
