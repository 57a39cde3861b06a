"""The real executable, how it is killed, and what a power cut leaves of its journal."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import random
import time
from typing import Optional

from book import MESSAGE_CAP, Violation, World

READY_SECONDS = 60.0
SECTOR = 512
# Lines of the log that say that something is lost or out of order.
GRAVE = ("kept message cannot be read", "store answered out of order")


class Gateway:
    """One data folder and the processes that serve it, one after the other."""

    def __init__(self, world: World, binary: str, home: pathlib.Path, chance: random.Random) -> None:
        self.world, self.binary, self.home, self.chance = world, binary, home, chance
        self.data, self.witness, self.log = home / "data", home / "witness", home / "log"
        self.ghosts = home / "ghosts"
        self.ghosts.mkdir(parents=True)
        (home / "apps.json").write_text(json.dumps([world.app]))
        self.process: Optional[asyncio.subprocess.Process] = None
        self.ready_seconds: list[float] = []

    async def start(self) -> None:
        """Starts a process; segment sizes and threads change from life to life."""
        config = self.home / "config.json"
        config.write_text(json.dumps({
            "segmentBytes": self.chance.choice((65_536, 65_536, 262_144)), "keptSegments": self.chance.choice((1, 2)),
            "messageCap": MESSAGE_CAP, "reattachGraceMs": 300, "stubCooldownMs": 300, "ackDeadlineMs": 1500,
            "progressDeadlineMs": 4000, "drainDeadlineMs": 2000,
        }))
        self._started = time.monotonic()
        self._notes_before = self.witness.stat().st_size if self.witness.exists() else 0
        with open(self.log, "ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                self.binary, "serve", "--config", str(config), "--data", str(self.data), "--apps",
                str(self.home / "apps.json"), "--witness", str(self.witness), "--device-listen", "127.0.0.1:0",
                "--http-listen", "127.0.0.1:0", "--backend-listen", "127.0.0.1:0", "--shards",
                str(self.chance.choice((1, 2, 2, 3))),
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=log)

    async def ready(self) -> None:
        assert self.process and self.process.stdout
        try:
            line = await asyncio.wait_for(self.process.stdout.readline(), READY_SECONDS)
        except asyncio.TimeoutError:
            raise Violation(f"the gateway was not ready after {READY_SECONDS:.0f} s") from None
        if not line:
            await self.process.wait()
            raise Violation(f"the gateway did not start:\n{self._end_of_log()}")
        self.ready_seconds.append(time.monotonic() - self._started)
        event = json.loads(line)
        self.world.device_port = int(event["device"].rpartition(":")[2])
        self.world.http_port = int(event["http"].rpartition(":")[2])
        self.world.link_port = int(event["backend"].rpartition(":")[2])
        self.world.life += 1
        self.world.is_up = True

    def is_alive(self) -> bool:
        return self.process is not None and self.process.returncode is None

    def terminate(self) -> None:
        if self.process and self.is_alive():
            self.process.terminate()

    async def kill(self) -> None:
        assert self.process
        self.world.is_up = False
        if self.process.returncode not in (None, 0):
            raise Violation(f"the gateway ended by itself with {self.process.returncode}:\n{self._end_of_log()}")
        if self.is_alive():
            self.process.kill()
        await self.process.wait()
        self.world.count("kills")
        text = self.log.read_text(errors="replace")
        if grave := [line for line in text.split("\n") if any(words in line for words in GRAVE)]:
            raise Violation("the gateway's log says: " + grave[0])

    def _end_of_log(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").split("\n")[-6:])

    # The disk

    def segments(self) -> set[str]:
        try:
            return {name for name in os.listdir(self.data) if name.startswith("journal-")}
        except FileNotFoundError:
            return set()

    async def noted(self, count: int, seconds: float) -> None:
        """Returns when this life has noted so much, or the time is up: between a write and its sync, as often as not."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            if self.witness.exists():
                with open(self.witness, "rb") as file:
                    file.seek(self._notes_before)
                    if file.read().count(b"\n") >= count:
                        return
            await asyncio.sleep(0.0005)

    def haunt(self) -> None:
        """Holds on to the segments that are there, so that one whose removal is not on the disk can come back."""
        for name in self.segments():
            try:
                os.link(self.data / name, self.ghosts / name)
            except (FileExistsError, FileNotFoundError):
                pass

    def cut_power(self) -> str:
        """Takes away what was not synced, by chance; says what was done."""
        lengths, names = self._read_witness()
        if names is None:
            names = set()
        if not self.data.is_dir():
            return "no folder"
        done: list[str] = []
        present = {name for name in os.listdir(self.data) if name.startswith(("journal-", "FORMAT"))}
        for name in sorted(present - names):
            if self.chance.random() < 0.5:
                continue
            path = self.data / name
            if name == "FORMAT" and "FORMAT.new" not in present and self.chance.random() < 0.5:
                path.rename(self.data / "FORMAT.new")
                lengths["FORMAT.new"] = lengths.get("FORMAT", 0)
                done.append("FORMAT is FORMAT.new again")
            else:
                self.world.count("cut", content_end(path))
                path.unlink()
                done.append(f"{name} was never made")
        for name in sorted(names - present):
            if (self.ghosts / name).exists() and self.chance.random() < 0.5:
                os.link(self.ghosts / name, self.data / name)
                done.append(f"{name} is back")
        for name in sorted(os.listdir(self.data)):
            if name.startswith(("journal-", "FORMAT")):
                done += self._cut(self.data / name, lengths.get(name, 0))
        # From here on this is what the disk holds.
        with open(self.witness, "a") as file:
            left = sorted(n for n in os.listdir(self.data) if n.startswith(("journal-", "FORMAT")))
            file.write("".join(f"S {name} {(self.data / name).stat().st_size}\n" for name in left))
            file.write(" ".join(["N", *left]) + "\n")
        for ghost in self.ghosts.iterdir():
            ghost.unlink()
        return ", ".join(done) or "nothing to take"

    def _cut(self, path: pathlib.Path, synced: int) -> list[str]:
        end = content_end(path)
        size = path.stat().st_size
        if size <= synced:
            return []
        way = self.chance.choice(("cut", "zeroed", "torn", "torn", "shortened", "kept"))
        with open(path, "r+b") as file:
            if way == "cut":
                file.truncate(synced)
            elif way == "zeroed" and end > synced:
                file.seek(synced)
                file.write(bytes(end - synced))
            elif way == "shortened" and end > synced:
                file.truncate(self.chance.randint(synced, end))
            elif way == "torn":
                # Each sector is the old one or the new one.
                start = synced
                while start < end:
                    stop = min(end, (start // SECTOR + 1) * SECTOR)
                    if self.chance.random() < 0.5:
                        file.seek(start)
                        file.write(bytes(stop - start))
                    start = stop
        if end <= synced:
            return []
        lost = end - synced if way in ("cut", "zeroed") else max(0, end - content_end(path))
        self.world.count("cut", lost)
        return [f"{path.name} {way} above {synced} of {end}"]

    def _read_witness(self) -> tuple[dict[str, int], Optional[set[str]]]:
        """Durable lengths, and durable names; later lines count."""
        lengths: dict[str, int] = {}
        names: Optional[set[str]] = None
        if not self.witness.exists():
            return lengths, names
        text = self.witness.read_text()
        whole = text[:text.rfind("\n") + 1]
        if whole != text:
            self.witness.write_text(whole)
        for line in whole.splitlines():
            kind, *words = line.split(" ")
            if kind == "S":
                lengths[words[0]] = int(words[1])
            elif kind == "M":
                lengths[words[1]] = lengths.pop(words[0], 0)
            elif kind == "N":
                names = set(words)
        return lengths, names


def content_end(path: pathlib.Path) -> int:
    """Where the zeros at the end of a file begin."""
    return len(path.read_bytes().rstrip(b"\0"))
