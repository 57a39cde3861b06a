"""What is measured: scenarios, who takes part in each, which figures are shown, and which bars they have to clear.

A new way in (another protocol, another endpoint) is one more Contestant in a scenario. A bar whose contestant or scenario
is not here yet is listed as not measured.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field

from comparison import machine
from comparison.systems import Ferry, Server, stop


@dataclass
class Figure:
    """One column of a table."""

    name: str
    title: str
    read: Callable[[dict], float]
    digits: int = 0


@dataclass
class Contestant:
    """A system in a scenario, with what is its own there."""

    name: str
    system: str
    about: str = ""
    options: list[object] = field(default_factory=list)
    configuration: dict[str, object] = field(default_factory=dict)


@dataclass
class Scenario:
    name: str
    title: str
    options: list[object]
    contestants: list[Contestant]
    figures: list[Figure]
    ratios: list[str] = field(default_factory=list)
    """Figures that are also shown divided by those of `bases`, round by round."""
    note: str = ""
    rounds: int | None = None
    """Other than the run's; for what hardly varies or takes long."""
    measure: Callable[[Server, list[object]], dict] = lambda server, options: server.measure(options)


@dataclass
class Bar:
    """What a contestant's figure must be, or its ratio to another contestant's of the same round; medians count."""

    what: str
    scenario: str
    contestant: str
    figure: str
    limit: float
    is_least: bool = False
    against: str | None = None


BASES = ["floor", "mosquitto"]


def online_figures(rate: bool = False) -> list[Figure]:
    latency = lambda share: lambda r: r["latency"][share] / 1e3
    return [
        Figure("rate", "delivered per second", lambda r: r["deliveredPerSecond"]),
        Figure("cpu", "server CPU-s per million", lambda r: r["gateway"]["cpuSecondsPerMillion"], 1),
        *([] if rate else [Figure("cores", "server cores", lambda r: r["gateway"]["cores"], 2)]),
        Figure("p50", "p50, ms", latency("p50"), 2),
        *([Figure("p99", "p99, ms", latency("p99"), 2), Figure("p999", "p99.9, ms", latency("p999"), 1)]
          if rate else []),
        LOAD, OTHERS,
    ]


LOAD = Figure("load", "load, % of one core", lambda r: 100 * r["loadCpuSeconds"] / r["seconds"])
OTHERS = Figure("others", "other programs, % of the machine", lambda r: 100 * r["othersShare"])
HTTP_64 = ["--connections", 64, "--pipeline", 16]
# Small segments, of which one is kept: nearly everything goes to the tables while messages still come.
SPILLING = {"segmentBytes": 4 << 20, "keptSegments": 1}


def peers(*names: str) -> list[Contestant]:
    return [Contestant(name, name) for name in names]


def restart(server: Server, options: list[object]) -> dict:
    assert isinstance(server, Ferry)
    filled = server.measure(options)
    return {**server.start_again(), "othersShare": filled["othersShare"]}


def apart(server: Server, options: list[object]) -> dict:
    """Single pushes to the devices of one app, without and with pushes to all of another; each app has a load of its own."""
    assert isinstance(server, Ferry)
    server.end()
    apps = json.loads((server.folder / "data.apps.json").read_text())
    apps.append({**apps[0], "appId": "watched", "appKey": "watched-key"})
    (server.folder / "data.apps.json").write_text(json.dumps(apps))
    server.process.stdout.close()
    server.serve()
    devices, *watched = options
    result = {"without": server.measure([*watched, "--app", "watched"])}
    crowd = [*server.command(), "--app", apps[0]["appId"], "--mode", "broadcast", "--devices", devices, "--messages",
             100_000]
    with subprocess.Popen([str(word) for word in crowd], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          process_group=0) as process:
        for line in process.stderr:
            if " broadcast:" in line:
                break
        result["with"] = server.measure([*watched, "--app", "watched"])
        if process.poll() is not None:
            stop("the pushes to all ended too early:\n" + process.stderr.read()[-2000:])
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
    crowd_result = json.loads(out)
    result["toAllPerSecond"] = crowd_result["deliveredPerSecond"]
    result["othersShare"] = result["without"]["othersShare"]
    return result


def reconnect(server: Server, options: list[object]) -> dict:
    """bench/restart has gateways of its own, on ports that stay; it fails when anything was lost or came twice."""
    before = machine.processor_seconds(server.process.pid)
    done = subprocess.run([machine.ROOT / "bench" / "restart", *map(str, options), "--ferry",
                           server.executables["ferry"]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        stop(f"bench/restart ended with status {done.returncode}:\n{done.stderr[-2000:]}")
    after = machine.processor_seconds(server.process.pid)
    others = (after[0] - before[0]) - (after[1] - before[1])
    return {**json.loads(done.stdout), "othersShare": max(0.0, others) / max(1e-9, after[2] - before[2])}


def scenarios(quick: bool, most_sockets: int) -> list[Scenario]:
    devices = 1_000 if quick else 10_000
    offline = 5_000 if quick else 100_000
    returning = 1_000 if quick else 20_000
    idle = 2_000 if quick else min(19_000, most_sockets)
    seconds = 1 if quick else 3
    online = ["--mode", "online", "--devices", devices, "--seconds", seconds]
    single = Contestant("ferry", "ferry", "64 keep-alive connections, up to 16 requests in the pipe of each", HTTP_64)
    batch = Contestant("ferry-batch", "ferry", "4 keep-alive connections, batches of up to 200", ["--ingress", "batch"])
    link = Contestant("ferry-link", "ferry", "4 backend links", ["--ingress", "link"])
    spilling = Contestant("ferry-spilling", "ferry", "journal segments of 4 MiB, one kept: the rest is in the tables",
                          configuration=SPILLING)
    return [
        Scenario(
            "online", f"Online: one message to one of {devices:,} devices, 256 B, 1,000 on their way", online,
            [*peers("floor"), single, batch, link, *peers("mosquitto", "nats", "redis", "redis-streams")],
            online_figures(),
            ["rate", "cpu"]),
        Scenario(
            "single", "Online, one request at a time on each of 64 connections, 64 on their way", online,
            [Contestant("floor", "floor", "4 connections, 64 on their way",
                        ["--outstanding", 64, "--pipeline", 16]),
             Contestant("ferry", "ferry", "64 keep-alive connections, no pipe",
                        ["--connections", 64, "--pipeline", 1, "--outstanding", 64])],
            online_figures(), ["rate", "cpu"]),
        Scenario(
            "half", "Online at half load: messages are due at even intervals", online,
            [*peers("floor"), single, link, *peers("mosquitto")], online_figures(rate=True),
            ["p50", "p99", "cpu"],
            "Each at half of its own median rate above; the floor at Ferry's, so that both do the same work."),
        Scenario(
            "offline", f"Offline: accepted for {offline:,} devices that are away, three messages each",
            ["--mode", "offline", "--devices", offline, "--messages", 3],
            [*peers("floor", "ferry"), batch, link, *peers("mosquitto", "redis-streams")],
            [Figure("rate", "accepted per second", lambda r: r["acceptedPerSecond"]),
             Figure("cpu", "server CPU-s per million", lambda r: r["gateway"]["cpuSecondsPerMillion"], 1),
             Figure("memory", "server MB after", lambda r: r["gateway"]["rssAnonBytes"] / 1e6), LOAD, OTHERS],
            ["rate", "cpu"]),
        Scenario(
            "flush", f"Flush: {returning:,} devices come back, each takes ten kept messages and goes",
            ["--mode", "flush", "--devices", returning, "--messages", 10],
            [*peers("floor", "ferry"), spilling, *peers("mosquitto", "redis-streams")],
            [Figure("rate", "delivered per second", lambda r: r["deliveredPerSecond"]),
             Figure("cpu", "server CPU-s per million, logins included",
                    lambda r: r["gateway"]["cpuSecondsPerMillion"], 1),
             Figure("fill", "accepting them before: server CPU-s per million",
                    lambda r: r["fill"]["gateway"]["cpuSecondsPerMillion"], 1), LOAD, OTHERS],
            ["rate", "cpu"]),
        Scenario(
            "broadcast", f"Broadcast: five messages, one after the other, each to all of {idle:,} devices that are there",
            ["--mode", "broadcast", "--devices", idle, "--messages", 5],
            [*peers("floor"), Contestant("ferry", "ferry", "`POST /push/all`"), *peers("mosquitto", "redis")],
            [Figure("rate", "delivered per second", lambda r: r["deliveredPerSecond"]),
             Figure("cpu", "server CPU-s per million", lambda r: r["gateway"]["cpuSecondsPerMillion"], 1),
             Figure("last", "until the last has the slowest, ms", lambda r: r["latency"]["max"] / 1e3), LOAD, OTHERS],
            ["rate", "cpu"], rounds=2),
        Scenario(
            "beside", f"Isolation: 5,000 per second to single devices of {devices:,} that are there, without and with broadcasts to "
            "all of them, one after the other",
            ["--mode", "broadcast", "--devices", devices, "--messages", 1, "--rate", 5_000, "--seconds", seconds],
            [Contestant("ferry", "ferry")],
            [Figure("p50", "p50 without, ms", lambda r: r["without"]["latency"]["p50"] / 1e3, 2),
             Figure("p99", "p99 without, ms", lambda r: r["without"]["latency"]["p99"] / 1e3, 2),
             Figure("p50with", "p50 with, ms", lambda r: r["with"]["latency"]["p50"] / 1e3, 2),
             Figure("p99with", "p99 with, ms", lambda r: r["with"]["latency"]["p99"] / 1e3, 2),
             Figure("ping", "ping p99 without, ms", lambda r: r["without"]["pingLatency"]["p99"] / 1e3, 2),
             Figure("pingwith", "ping p99 with, ms", lambda r: r["with"]["pingLatency"]["p99"] / 1e3, 2),
             Figure("broadcasts", "broadcasts meanwhile", lambda r: r["with"]["broadcasts"]), OTHERS],
            note="Broadcasts follow each other without a pause, more than any backend would send; pings are a thousand a second, "
            "from devices drawn at random, until the gateway's answer is read.",
            rounds=1),
        Scenario(
            "apart", f"Isolation: 5,000 per second to 1,000 devices of one app, without and with pushes to all {devices:,} "
            "devices of another, one after the other",
            [devices, "--mode", "online", "--devices", 1_000, "--rate", 5_000, "--seconds", seconds, "--ingress", "link"],
            [Contestant("ferry", "ferry", configuration={"broadcastsPerApp": 1_000})],
            [Figure("p50", "p50 without, ms", lambda r: r["without"]["latency"]["p50"] / 1e3, 2),
             Figure("p99", "p99 without, ms", lambda r: r["without"]["latency"]["p99"] / 1e3, 2),
             Figure("p50with", "p50 with, ms", lambda r: r["with"]["latency"]["p50"] / 1e3, 2),
             Figure("p99with", "p99 with, ms", lambda r: r["with"]["latency"]["p99"] / 1e3, 2),
             Figure("toall", "delivered of pushes to all per second", lambda r: r["toAllPerSecond"]), OTHERS],
            note="As above, but each app has a load of its own, so that no single message waits in a load that reads what was for "
            "all. Gateway and both loads share the cores.",
            rounds=1, measure=apart),
        Scenario(
            "idle", f"Idle: {idle:,} connections that are logged in and silent",
            ["--mode", "idle", "--devices", idle, "--seconds", 1 if quick else 2],
            peers("floor", "ferry", "mosquitto", "nats", "redis"),
            [Figure("bytes", "resident bytes per connection", lambda r: r["rssBytesPerConnection"]),
             Figure("logins", "logins per second", lambda r: r["welcomedPerSecond"]),
             Figure("cores", "CPU when all are there, % of one core", lambda r: 100 * r["idleCores"], 1), OTHERS],
            ["bytes"], rounds=1),
        Scenario(
            "backlog", "Isolation: 5,000 per second to 980 devices, without and with 20 others that collect 10,000 "
            "kept messages each", ["--mode", "backlog", "--devices", 1_000, "--seconds", 2 if quick else 5],
            [Contestant("ferry", "ferry", configuration={"messageCap": 20_000, "byteCap": 1 << 26})],
            [Figure("p50", "p50 without, ms", lambda r: r["without"]["latency"]["p50"] / 1e3, 2),
             Figure("p99", "p99 without, ms", lambda r: r["without"]["latency"]["p99"] / 1e3, 2),
             Figure("p50with", "p50 with, ms", lambda r: r["with"]["latency"]["p50"] / 1e3, 2),
             Figure("p99with", "p99 with, ms", lambda r: r["with"]["latency"]["p99"] / 1e3, 2),
             Figure("collected", "collected meanwhile", lambda r: r["with"]["collected"]), OTHERS],
            rounds=1),
        Scenario(
            "restart", f"Start after `kill -9` with ten kept messages for each of {offline:,} devices",
            ["--mode", "offline", "--devices", offline, "--messages", 10], peers("ferry"),
            [Figure("seconds", "seconds to ready", lambda r: r["secondsToReady"], 2),
             Figure("memory", "resident MB when ready", lambda r: r["rssAnonBytes"] / 1e6), OTHERS],
            rounds=1, measure=restart),
        Scenario(
            "reconnect", f"Restart with {devices:,} devices that all come back in the same moment",
            ["--devices", devices], peers("ferry"),
            [Figure("ready", "seconds to ready", lambda r: r["startSeconds"], 2),
             Figure("attached", "seconds from ready until all are attached", lambda r: r["attachedSeconds"], 2),
             Figure("cpu", "server CPU-s for that", lambda r: r["attachedCpuSeconds"], 2),
             Figure("memory", "peak resident MB", lambda r: r["peakBytes"] / 1e6), OTHERS],
            rounds=1, measure=reconnect),
    ]


BARS = [
    Bar("online by the backend link: CPU per message", "online", "ferry-link", "cpu", 1.25, against="floor"),
    Bar("online by the backend link: CPU per message", "online", "ferry-link", "cpu", 0.4, against="mosquitto"),
    Bar("online by HTTP batches of 200: CPU per message", "online", "ferry-batch", "cpu", 1.35, against="floor"),
    Bar("online by single pushes in a pipe: CPU per message", "online", "ferry", "cpu", 2.2, against="floor"),
    Bar("online by single pushes one at a time: CPU per message", "single", "ferry", "cpu", 2.2, against="floor"),
    Bar("half load: p50", "half", "ferry", "p50", 2, against="floor"),
    Bar("half load: p99", "half", "ferry", "p99", 2, against="floor"),
    Bar("half load by the backend link: p50", "half", "ferry-link", "p50", 2, against="floor"),
    Bar("half load by the backend link: p99", "half", "ferry-link", "p99", 2, against="floor"),
    Bar("offline: accepted per second", "offline", "ferry", "rate", 5, True, "mosquitto"),
    Bar("offline: CPU-s per million, all in the journal", "offline", "ferry", "cpu", 3),
    Bar("offline by the backend link: CPU-s per million, all in the journal", "offline", "ferry-link", "cpu", 3),
    Bar("offline by the backend link: accepted per second", "offline", "ferry-link", "rate", 5, True, "mosquitto"),
    Bar("accepting while the journal spills to the tables: CPU-s per million", "flush", "ferry-spilling", "fill", 7),
    Bar("flush from the journal: messages per second", "flush", "ferry", "rate", 3, True, "mosquitto"),
    Bar("broadcast to 19,000 online devices: rate", "broadcast", "ferry", "rate", 0.8, True, "floor"),
    Bar("idle: own bytes per connection", "idle", "ferry", "bytes", 256),
]
