"""What `bench/scale` measures. Each part answers rows; a figure that was measured in several rounds is a list."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from comparison import machine
from comparison.systems import SYSTEMS, Ferry, stop
from scaling import kernel


@dataclass
class Setting:
    executables: dict[str, str]
    quick: bool
    most_sockets: int
    say: Callable[[str], None]

    @property
    def rounds(self) -> int:
        return 1 if self.quick else 3


def rounds(setting: Setting, name: str, cases: list, play: Callable[[object], dict]) -> list[dict]:
    """All cases once, then all again, so that what else the machine does meets each; figures become lists."""
    rows: list[dict] = [{} for _ in cases]
    for number in range(1, setting.rounds + 1):
        for row, case in zip(rows, cases):
            figures = play(case)
            for figure, value in figures.items():
                row.setdefault(figure, []).append(value)
            setting.say(f"{name} {number}/{setting.rounds} {case}: " + ", ".join(
                f"{figure} {value:,.6g}" for figure, value in figures.items()))
    return rows


def online(result: dict) -> dict:
    return {"cpu": result["gateway"]["cpuSecondsPerMillion"], "rate": result["deliveredPerSecond"],
            "cores": result["gateway"]["cores"], "others": result["othersShare"]}


def sessions(setting: Setting) -> list[dict]:
    """Server CPU for a message to a device that is there, as there are more of them; by links, over sockets."""
    most = 2_000 if setting.quick else min(19_000, setting.most_sockets)
    counts = sorted({min(count, most) for count in ([500, 2_000] if setting.quick else [1_000, 2_000, 5_000, 10_000, 19_000])})
    cases = [(system, count) for count in counts for system in ("ferry", "floor")]

    def play(case: tuple[str, int]) -> dict:
        system, count = case
        options = ["--mode", "online", "--devices", count, "--seconds", 1 if setting.quick else 3]
        with SYSTEMS[system](setting.executables) as server:
            return online(server.measure([*options, *(["--ingress", "link"] if system == "ferry" else [])]))

    rows = rounds(setting, "sessions", cases, play)
    return [{"system": system, "sessions": count, **row} for (system, count), row in zip(cases, rows)]


def memory(setting: Setting) -> list[dict]:
    """A million sessions in one process; one run."""
    count = 20_000 if setting.quick else 1_000_000
    before = machine.processor_seconds(os.getpid())
    command = [setting.executables["ferry"], "bench", "--mode", "memory", "--sessions", str(count)]
    if folder := os.environ.get("FERRY_BENCH_DIR"):
        command += ["--folder", folder]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        stop(f"ferry bench --mode memory ended with status {done.returncode}:\n{done.stderr[-2000:]}")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    after = machine.processor_seconds(os.getpid())
    others = (after[0] - before[0]) - (after[1] - before[1])
    for row in rows:
        row["others"] = max(0.0, others) / max(1e-9, after[2] - before[2])
        setting.say(f"memory {row['sessions']:,}: {row['messages']['gatewayCpuSecondsPerMillion']} CPU-s per million, "
                    f"{row['ownBytesPerSession']} bytes per session")
    return rows


def kept(setting: Setting) -> list[dict]:
    """As more and more is kept: by bench/reopen where it is there, which also starts again at each step; else loads, one after
    the other, on one gateway, each for new devices, and one start after a kill at the end."""
    script = machine.ROOT / "bench" / "reopen"
    before = machine.processor_seconds(os.getpid())
    if script.exists():
        devices, steps = (15_000, 3) if setting.quick else (1_000_000, 10)
        done = subprocess.run([script, "--devices", str(devices), "--messages", "10", "--steps", str(steps), "--ferry",
                               setting.executables["ferry"]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            stop(f"bench/reopen ended with status {done.returncode}:\n{done.stderr[-2000:]}")
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        after = machine.processor_seconds(os.getpid())
        others = (after[0] - before[0]) - (after[1] - before[1])
        return [{**row, "others": max(0.0, others) / max(1e-9, after[2] - before[2])} for row in rows]
    devices, steps = (5_000, 3) if setting.quick else (100_000, 10)
    rows = []
    with Ferry(setting.executables) as server:
        for step in range(steps):
            result = server.measure(["--mode", "offline", "--ingress", "link", "--devices", devices, "--messages", 10])
            rows.append({"kept": (step + 1) * devices * 10,
                         "acceptCpuSecondsPerMillion": result["gateway"]["cpuSecondsPerMillion"],
                         "acceptPerSecond": result["acceptedPerSecond"], "rssBytes": machine.resident(server.process.pid),
                         "others": result["othersShare"]})
            setting.say(f"kept {rows[-1]}")
        again = server.start_again()
        rows[-1] |= {"readySeconds": again["secondsToReady"], "rssBytesWhenReady": again["rssAnonBytes"]}
    return rows


def backlog(setting: Setting) -> list[dict]:
    """Devices come back and collect: in all about as many messages, by more or fewer devices."""
    total = 20_000 if setting.quick else 200_000
    cases = [(kind, each) for each in (1, 10, 100, 1_000, 10_000) for kind in ("journal", "tables")]
    caps = {"messageCap": 20_000, "byteCap": 1 << 26}
    # Small segments, of which one is kept: what is read lies in the tables.
    spilling = {"segmentBytes": 4 << 20, "keptSegments": 1}

    def play(case: tuple[str, int]) -> dict:
        kind, each = case
        # A login for each message would be most of the run.
        devices = max(2, total // 4 if each == 1 else total // each)
        with Ferry(setting.executables, **caps, **(spilling if kind == "tables" else {})) as server:
            result = server.measure(["--mode", "flush", "--ingress", "link", "--devices", devices, "--messages", each])
        return online(result) | {"devices": devices}

    rows = rounds(setting, "backlog", cases, play)
    return [{"kind": kind, "backlog": each, **row} for (kind, each), row in zip(cases, rows)]


def shards(setting: Setting) -> list[dict]:
    """One shard and two: at the same modest rate, at most, and for devices that are away."""
    devices = 1_000 if setting.quick else 10_000
    seconds = ["--seconds", 1 if setting.quick else 3]
    modes = {
        "rate": ["--mode", "online", "--devices", devices, *seconds, "--rate", 5_000 if setting.quick else 20_000],
        "most": ["--mode", "online", "--devices", devices, *seconds],
        "offline": ["--mode", "offline", "--devices", devices, "--messages", 10 if setting.quick else 30],
    }
    cases = [(mode, count) for mode in modes for count in (1, 2)]

    def play(case: tuple[str, int]) -> dict:
        mode, count = case
        with Ferry(setting.executables, shards=count) as server:
            result = server.measure([*modes[mode], "--ingress", "link"])
        if mode == "offline":
            return {"cpu": result["gateway"]["cpuSecondsPerMillion"], "rate": result["acceptedPerSecond"],
                    "cores": result["gateway"]["cores"], "others": result["othersShare"]}
        return online(result) | {"p99": result["latency"]["p99"] / 1e3,
                                 "load": result["loadCpuSeconds"] / result["seconds"]}

    rows = rounds(setting, "shards", cases, play)
    return [{"mode": mode, "shards": count, **row} for (mode, count), row in zip(cases, rows)]


def idle(setting: Setting) -> list[dict]:
    """What a silent connection takes, in the gateway and in the kernel."""
    counts = [500, 1_000, 2_000] if setting.quick else [5_000, 10_000, min(19_000, setting.most_sockets)]
    rows = []
    for count in counts:
        with Ferry(setting.executables) as server:
            row = kernel.watch(server, count)
        rows.append({"connections": count, **row})
        setting.say(f"idle {rows[-1]}")
    return rows


PARTS: dict[str, Callable[[Setting], list[dict]]] = {
    "idle": idle, "sessions": sessions, "memory": memory, "kept": kept, "backlog": backlog, "shards": shards,
}
