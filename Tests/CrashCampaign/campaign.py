#!/usr/bin/env python3
"""Kills a real gateway under load again and again, takes from its disk what was not synced, and compares what backends
were answered with what devices were handed.

    campaign.py FERRY [--rounds N] [--seed N] [--seconds N]

The seed fixes every choice of the campaign, not the moments at which the machine comes to them: a failing seed fails
soon again, not at the same byte.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import pathlib
import random
import secrets
import shutil
import statistics
import sys
import tempfile
import time

from backends import Backend
from book import Violation, World
from devices import Device
from gateway import Gateway
from links import LinkBackend

KINDS = {"acking": 16, "slow": 10, "silent": 10, "reconnecting": 12, "background": 8, "absent": 8}
BACKENDS = 24
ROUNDS_A_FOLDER = 8
DRAIN_SECONDS = 30.0
QUIET_SECONDS = 0.25


class Campaign:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="ferry-crash-"))
        self.world = World({"appId": "crash", "appKey": "key", "appSecret": "secret", "masterSecret": "master"})
        self.cuts: list[str] = []
        self.ready_seconds: list[float] = []
        self.rounds = 0
        # The last kill left what was not synced in the kernel's hands.
        self.is_tail_doubtful = False

    async def run(self) -> int:
        started = time.monotonic()
        while self.rounds < self.options.rounds and time.monotonic() - started < self.options.seconds:
            folder = self.home / f"folder-{self.rounds + 1}"
            try:
                await self._folder(folder, started)
            except Violation as violation:
                print(f"VIOLATION seed {self.options.seed} round {self.rounds + 1}: {violation}")
                for line in self.cuts[-6:]:
                    print(f"  before: {line}")
                print(f"  the folder is kept: {folder}")
                print(f"  again: make crash-test ROUNDS={self.options.rounds} SEED={self.options.seed}", flush=True)
                return 1
            shutil.rmtree(folder)
        self._summary(time.monotonic() - started)
        shutil.rmtree(self.home, ignore_errors=True)
        return 0

    async def _folder(self, folder: pathlib.Path, started: float) -> None:
        """Some rounds on one data folder, from its making on."""
        seed = f"{self.options.seed}/{self.rounds}"
        self.world = World(self.world.app, figures=self.world.figures)
        gateway = Gateway(self.world, self.options.ferry, folder, random.Random(f"{seed}/gateway"))
        devices = [Device(self.world, kind, index, random.Random(f"{seed}/{kind}/{index}"),
                          flooded=kind == "absent" and index < 2)
                   for kind, count in KINDS.items() for index in range(count)]
        backends = [(LinkBackend if index % 4 == 3 else Backend)(
            self.world, devices, index, random.Random(f"{seed}/backend/{index}")) for index in range(BACKENDS)]
        tasks = [asyncio.create_task(self.world.guard(one.run)) for one in [*devices, *backends]]
        try:
            await self._make(gateway, random.Random(f"{seed}/make"))
            for _ in range(ROUNDS_A_FOLDER):
                if self.rounds >= self.options.rounds or time.monotonic() - started >= self.options.seconds:
                    break
                await self._round(gateway, devices, backends, random.Random(f"{seed}/round/{self.rounds}"))
                self.rounds += 1
        finally:
            self.world.is_over, self.world.is_up = True, False
            if gateway.process and gateway.is_alive():
                gateway.process.kill()
                await gateway.process.wait()
            # A cancellation that meets the end of a wait can get lost.
            while not all(task.done() for task in tasks):
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks, timeout=0.2)
            results = await asyncio.gather(*tasks, return_exceptions=True)
            self.ready_seconds += gateway.ready_seconds
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _make(self, gateway: Gateway, chance: random.Random) -> None:
        """Starts the gateway, mostly after some that were killed while they made the folder, or when it was empty."""
        for _ in range(chance.choice((0, 3, 6))):
            await gateway.start()
            await gateway.noted(chance.randint(1, 8), 0.3)
            await asyncio.sleep(chance.choice((0.0, 0.0, 0.004)))
            await gateway.kill()
            self.cuts.append(f"round {self.rounds + 1}, while it was made: {gateway.cut_power()}")
        await gateway.start()

    async def _round(self, gateway: Gateway, devices: list[Device], backends: list[Backend],
                     chance: random.Random) -> None:
        before = dict(self.world.figures)
        started = time.monotonic()
        self.world.is_draining = False
        styles = [chance.choice(("load", "load", "files", "startup", "stop"))
                  for _ in range(chance.choice((1, 2, 2, 3)))]
        for style in styles:
            await self._live(gateway, style, chance)
            await gateway.kill()
            self.is_tail_doubtful = chance.random() < 0.3
            cut = "power stays on" if self.is_tail_doubtful else gateway.cut_power()
            self.cuts.append(f"round {self.rounds + 1}, {style}: {cut}")
            self._judge()
            await gateway.start()
        await self._until_ready(gateway)
        await self._pause(chance.uniform(0.0, 0.5), gateway)
        await self._drain(gateway, devices, backends)
        self._judge()
        for device in devices:
            device.box.close_round()
        did = {name: value - before[name] for name, value in self.world.figures.items()}
        print(f"round {self.rounds + 1}: {'+'.join(styles)}: accepted {did['accepted']}, handed {did['handed']}, "
              f"repeats {did['repeats']}, gaps {did['gaps']}, cut {did['cut']} bytes, ready in "
              f"{gateway.ready_seconds[-1] * 1000:.0f} ms, took {time.monotonic() - started:.1f} s", flush=True)

    async def _live(self, gateway: Gateway, style: str, chance: random.Random) -> None:
        """Returns when it is time to kill."""
        if style == "startup" and not self.world.is_up:
            await asyncio.sleep(chance.uniform(0.0, 0.08))
            if chance.random() < 0.5:
                await gateway.noted(chance.randint(1, 10), 0.5)
            return
        await self._until_ready(gateway)
        if style == "startup" or self.is_tail_doubtful:
            # Soon, before the segment that the last life left retires.
            await asyncio.sleep(chance.uniform(0.0, 0.05))
            return
        await self._pause(chance.uniform(0.05, 0.9), gateway)
        if style == "files":
            # The moment at which a segment is made or goes.
            was, deadline = gateway.segments(), time.monotonic() + 1.0
            while gateway.segments() == was and time.monotonic() < deadline:
                await asyncio.sleep(0.0005)
            gateway.haunt()
            await asyncio.sleep(chance.choice((0.0, 0.0, 0.001, 0.005)))
        if style == "stop":
            gateway.terminate()
            await asyncio.sleep(chance.uniform(0.0, 0.1))

    async def _until_ready(self, gateway: Gateway) -> None:
        if not self.world.is_up:
            await gateway.ready()

    async def _pause(self, seconds: float, gateway: Gateway) -> None:
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0 and not self.world.violation:
            gateway.haunt()
            await asyncio.sleep(min(left, 0.02))

    async def _drain(self, gateway: Gateway, devices: list[Device], backends: list[Backend]) -> None:
        """Waits until every call is answered and every device has what it must get."""
        self.world.is_draining = True
        deadline = time.monotonic() + DRAIN_SECONDS
        while not all(backend.is_idle for backend in backends):
            await self._wait(gateway, deadline, "a push is still without an answer")
        for device in devices:
            device.start_to_drain()
        quiet_since, handed = time.monotonic(), -1
        while True:
            waiting = [device for device in devices if device.box.open_ends() > 0 or not device.cid]
            if waiting or handed != self.world.figures["handed"]:
                quiet_since, handed = time.monotonic(), self.world.figures["handed"]
            elif time.monotonic() - quiet_since >= QUIET_SECONDS:
                return
            who = ", ".join(f"{d.box.name} {d.cid.hex()} lacks {d.box.open_ends()}" for d in waiting[:5])
            await self._wait(gateway, deadline, f"accepted and not handed over: {who}")

    async def _wait(self, gateway: Gateway, deadline: float, what: str) -> None:
        self._judge()
        if not gateway.is_alive():
            await gateway.kill()
        if time.monotonic() > deadline:
            raise Violation(f"after {DRAIN_SECONDS:.0f} s: {what}")
        await asyncio.sleep(0.02)

    def _judge(self) -> None:
        if self.world.violation:
            raise Violation(self.world.violation)

    def _summary(self, seconds: float) -> None:
        figures, ready = self.world.figures, self.ready_seconds or [0.0]
        print(f"{self.rounds} rounds in {seconds:.0f} s, {figures['kills']} kills, all is well: "
              f"{figures['accepted']} messages accepted, {figures['handed']} handed over, {figures['repeats']} repeats "
              f"dropped by devices, {figures['gaps']} gaps told, {figures['retries']} calls without an answer repeated, "
              f"{figures['busy']} answered busy, {figures['logins']} logins, {figures['cut']} bytes cut; ready after a start in "
              f"{min(ready) * 1000:.0f}/{statistics.median(ready) * 1000:.0f}/{max(ready) * 1000:.0f} ms "
              "(least/median/most)")
        if self.rounds == 0:
            sys.exit("no round was finished in the time given")


def main() -> int:
    parser = argparse.ArgumentParser(description="Crash campaign on a real gateway.")
    parser.add_argument("ferry", help="the executable")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=None, help="default: by chance")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no round after so many seconds")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = secrets.randbelow(1_000_000)
    print(f"seed {options.seed}", flush=True)
    gc.freeze()
    return asyncio.run(Campaign(options).run())


if __name__ == "__main__":
    sys.exit(main())
