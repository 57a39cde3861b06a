"""Backends that push, lose answers, and repeat with the same request id until they have one."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import secrets
import time
from typing import Any, Optional

from book import Message, Violation, World, now
from devices import Device

BUSY = 30019
ANSWER_SECONDS = 10.0


class Backend:
    """One connection's worth of a backend, a request at a time."""

    def __init__(self, world: World, devices: list[Device], number: int, chance: random.Random) -> None:
        self.world, self.devices, self.chance = world, devices, chance
        self._prefix, self._count = f"{number}", 0
        self._link: Optional[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = None
        self._link_life = 0
        self._token = ""
        self.is_idle = True
        # Calls that were answered some time ago, for late repeats: body, device, task.
        self._answered: list[tuple[bytes, Device, str]] = []

    async def run(self) -> None:
        while not self.world.is_over:
            device = self._choose()
            if self.world.is_draining or device is None:
                self.is_idle = True
                await asyncio.sleep(0.01)
                continue
            self.is_idle = False
            await self._push(device)
            if self.chance.random() < 0.05:
                await asyncio.sleep(self.chance.uniform(0.0, 0.1))

    def _choose(self) -> Optional[Device]:
        device = self.chance.choice(self.devices)
        return device if device.cid and device.box.has_room else None

    async def _push(self, device: Device) -> None:
        """One message, until it is answered; then now and then the same call once more."""
        self._count += 1
        ttl = self.chance.choices([None, self.chance.randint(200, 2000), 0], [94, 4, 2])[0]
        message = Message(f"{self._prefix}-{self._count}", ttl)
        device.box.post(message)
        size = self.chance.choice((10, 100, 100, 400, 1500, 3000))
        body = json.dumps({
            "request_id": secrets.token_hex(12), "audience": {"cid": [device.cid.hex()]},
            "settings": {"ttl": 259_200_000 if ttl is None else ttl},
            "push_message": {"transmission": f"{message.uid} {'x' * size}"},
        }).encode()
        message.first_sent = now()
        message.task = await self._until_answered(body, device)
        message.answered, message.answered_life = now(), self._link_life
        self.world.count("accepted")
        self._answered.append((body, device, message.task))
        if self.chance.random() < 0.05:
            await self._repeat(*self.chance.choice([self._answered[-1], self.chance.choice(self._answered)]))

    async def _repeat(self, body: bytes, device: Device, task: str) -> None:
        """The same call once more, at once or long after: in the journal, or in the tables by now."""
        again = await self._until_answered(body, device)
        if again != task:
            raise Violation(f"{device.box.name}: a repeat was answered as task {again}, the first as {task}")

    async def _until_answered(self, body: bytes, device: Device) -> str:
        while True:
            answer = await self._call("push/single/cid", body)
            if answer is None:
                self.world.count("retries")
                await asyncio.sleep(self.chance.uniform(0.0, 0.05))
            elif answer["code"] == BUSY:
                self.world.count("busy")
                await asyncio.sleep(0.1)
            elif answer["code"] == 0:
                return next(iter(answer["data"]))
            else:
                raise Violation(f"{device.box.name}: a push was answered {answer}")

    async def _call(self, path: str, body: bytes) -> Optional[dict[str, Any]]:
        """None when there was no answer."""
        while not self.world.is_up:
            await asyncio.sleep(0.01)
            if self.world.is_over:
                raise asyncio.CancelledError
        try:
            if self._link is None or self._link_life != self.world.life:
                self._drop()
                self._link_life = self.world.life
                self._link = await asyncio.open_connection("127.0.0.1", self.world.http_port)
            if not self._token and path != "auth":
                await self._authenticate()
            return await asyncio.wait_for(self._exchange(path, body), ANSWER_SECONDS)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.TimeoutError):
            self._drop()
            return None

    async def _authenticate(self) -> None:
        """Once: a token is good over restarts."""
        stamp = str(int(time.time() * 1000))
        app = self.world.app
        sign = hashlib.sha256(f"{app['appKey']}{stamp}{app['masterSecret']}".encode()).hexdigest()
        answer = await self._exchange(
            "auth", json.dumps({"sign": sign, "timestamp": stamp, "appkey": app["appKey"]}).encode())
        if answer["code"] != 0:
            raise Violation(f"/auth was answered {answer}")
        self._token = answer["data"]["token"]

    async def _exchange(self, path: str, body: bytes) -> dict[str, Any]:
        assert self._link is not None
        reader, writer = self._link
        writer.write((f"POST /v2/{self.world.app['appId']}/{path} HTTP/1.1\r\nHost: ferry\r\ntoken: {self._token}\r\n"
                      f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body)
        if path != "auth" and self.chance.random() < 0.02:
            await asyncio.sleep(self.chance.uniform(0.0, 0.005))
            raise ConnectionResetError("this backend lost its network")
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
        return json.loads(await reader.readexactly(length))

    def _drop(self) -> None:
        if self._link:
            self._link[1].transport.abort()
        self._link = None
