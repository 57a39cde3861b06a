"""Turns what was measured into docs/performance/scale.md."""

from __future__ import annotations

import statistics

from comparison.report import spread, table

# Above this share of the machine, what others did is in rates and latencies.
BUSY = 0.05

HEAD = """# Cost as everything grows

What a message, a login or a connection costs as there is more of everything else. A cost that does not depend on how much
there is besides is a flat line; where a line is not flat, the text says why. `make bench-scale` measures all of it again and
writes this page; `bench/scale --only PART` one part. CPU is user and system time of all threads of the gateway, as on the
page of [comparisons](../performance.md), which also says what limits figures of one machine.
"""


def middle(value: float | list[float]) -> float:
    return statistics.median(value) if isinstance(value, list) else value


def shown(value: float | list[float] | None, digits: int) -> str:
    if value is None:
        return ""
    return spread(value, digits) if isinstance(value, list) and len(set(value)) > 1 else f"{middle(value):,.{digits}f}"


def growth(rows: list[dict], figure: str) -> float:
    """The last row's figure as a multiple of the first's; 0 where there is nothing to compare."""
    first, last = middle(rows[0][figure]), middle(rows[-1][figure])
    return last / first if first > 0 else 0


def slope(rows: list[dict], over: str, figure: str) -> float:
    """What one more of `over` adds, between the first row and the last, where `figure` is for one of them."""
    first, last = rows[0], rows[-1]
    if last[over] == first[over]:
        return 0
    return (last[figure] * last[over] - first[figure] * first[over]) / (last[over] - first[over])


def others(rows: list[dict]) -> float:
    values = [row.get("others", 0) for row in rows]
    return max(max(value) if isinstance(value, list) else value for value in values)


def provenance(part: dict) -> list[str]:
    busy = others(part["rows"])
    lines = [f"Measured {part['at']} at {part['revision']} in {part['seconds']} s; {part['machine']}."]
    if part["isTrial"]:
        lines.append("**A trial with little of everything: these figures mean nothing.**")
    if busy > BUSY:
        lines.append(f"**Other programs took up to {100 * busy:.0f} % of the machine meanwhile: rates and latencies are what "
                     "was left over, and CPU is higher than on a quiet machine. To be measured again.**")
    return [" ".join(lines), ""]


def idle(part: dict) -> list[str]:
    rows = part["rows"]
    own, kernel = slope(rows, "connections", "own"), slope(rows, "connections", "kernel")
    caches: dict[str, float] = rows[-1]["caches"]
    return [
        "## Memory of an idle connection, all in", "", "![bytes per idle connection](idle.png)", "",
        *table(["connections", "gateway's own bytes for each", "kernel's bytes for each, gateway's end", "all in"],
               [[f"{r['connections']:,}", f"{r['own']:,.0f}", f"{r['kernel']:,.0f}", f"{r['own'] + r['kernel']:,.0f}"]
                for r in rows]
               + [["one more, between the first and the last", f"{own:,.0f}", f"{kernel:,.0f}", f"{own + kernel:,.0f}"]]), "",
        "The gateway's own is the growth of its `RssAnon`, from before the first connection until all are there and silent; its",
        "device, timer and index are in it, and what starts with the first connections, of which the last row is free. The kernel's is",
        "what its caches of objects for sockets hold more in `/proc/slabinfo`, with each object's part of its slab, and the sockets'",
        "queues in `/proc/net/sockstat`. Both ends of each connection are on this machine and are of the same kind: a socket with its",
        "inode, file, directory entry and place in a poller, once for the gateway and once for the load. So half of it is the",
        "gateway's end; what the load's end has more is its entry among bound ports, which makes the half a little too large.",
        ("For one end, bytes: " + ", ".join(f"{name} {size:,}" for name, size in caches.items()) + ".") if caches
        else "The caches could not be read, so that all slabs were taken together.", "",
        *provenance(part)]


def sessions(part: dict) -> list[str]:
    by = {system: [row for row in part["rows"] if row["system"] == system] for system in ("ferry", "floor")}
    rows = [[f"{ferry['sessions']:,}", shown(ferry["cpu"], 1), shown(floor["cpu"], 1),
             f"{middle(ferry['cpu']) / middle(floor['cpu']):.2f}", shown(ferry["rate"], 0)]
            for ferry, floor in zip(by["ferry"], by["floor"])]
    return [
        "## A message as sessions grow, over sockets", "", "![CPU per message by sessions](sessions.png)", "",
        *table(["sessions", "CPU-s per million", "the floor's", "ratio", "delivered per second"], rows), "",
        "Messages of 256 B go by backend links to devices drawn at random, 1,000 on their way at once; each is synced, sent and",
        f"acknowledged. From the first row to the last Ferry's cost is × {growth(by['ferry'], 'cpu'):.2f} and the floor's, which looks",
        f"nothing up, × {growth(by['floor'], 'cpu'):.2f}: more sockets are more memory to touch, in the kernel for both. The more devices, the",
        "fewer messages meet in one send to one of them.", "", *provenance(part)]


def own_bytes(row: dict) -> str:
    """Nothing where too few sessions came for their bytes to be seen."""
    return f"{row['ownBytesPerSession']:,.0f}" if row["registering"]["count"] >= 50_000 else ""


def memory(part: dict) -> list[str]:
    rows = part["rows"]
    last = rows[-1]
    lines = [
        "## To a million sessions", "",
        "`ferry bench --mode memory` has the gateway in its own process: the same shard, store and timeline, with their threads,",
        "but connections are lines in memory and take no descriptor. So there is no kernel in these figures but for the disk, and",
        "they do not compare with those over sockets; they show what the gateway itself does as sessions grow.", "",
        *table(["sessions", "own bytes for each", "registrations per second", "CPU-s per million registrations",
                "CPU-s per million messages", "of it the shard"],
               [[f"{r['sessions']:,}", own_bytes(r), f"{r['registering']['perSecond']:,.0f}",
                 f"{r['registering']['gatewayCpuSecondsPerMillion']:.1f}",
                 f"{r['messages']['gatewayCpuSecondsPerMillion']:.2f}", f"{r['messages']['shardCpuSecondsPerMillion']:.2f}"]
                for r in rows]), "",
        "The bytes are the process's growth while the sessions of that row came, without the load's part; below a hundred thousand",
        "they are lost in what starts once. A message costs more among a million than among a thousand because nothing of its",
        "device is in the processor's caches: the entry in the table of names, the device, its connection and its timer are each a",
        "read of main memory, and of a page that the processor has to look up first. What is computed is the same.", "",
        "![CPU of timers and keep-alives](timers.png)", "",
        *table(["sessions", "nobody speaks: shard's CPU, ms per second", "longest turn, ms",
                "all keep alive: shard's CPU, ms per second", "keep-alives per second", "longest turn, ms"],
               [[f"{r['sessions']:,}", f"{r['silent']['shardCpuMillisecondsPerSecond']:.3f}",
                 f"{r['silent']['longestTurnMilliseconds']:.2f}", f"{r['speaking']['shardCpuMillisecondsPerSecond']:.3f}",
                 f"{r['speaking']['keepAlives'] / r['speaking']['seconds']:,.0f}",
                 f"{r['speaking']['longestTurnMilliseconds']:.2f}"] for r in rows]), "",
        "Time is moved by hand here, a tick of the timer wheel at a time. While nobody speaks, all that there is to do is to move",
        "timers to finer levels of the wheel: each session's at most three times before it fires, and a whole slot's at once, which is",
        "the longest turn. Each device is granted 240 seconds and speaks after half of them; the gateway reads, answers, and moves",
        "nothing but a time in the session: its timer is looked at when it fires.", ""]
    if "logins" in last:
        storm, losing = last["logins"], last["losing"]
        lines += [
            f"**Login storm.** All {last['sessions']:,} lose their connection in one moment ({losing['gatewayCpuSecondsPerMillion']:.2f} CPU-s) and come "
            f"back as fast as they get in, 512 in their handshakes at a time: {storm['perSecond']:,.0f} logins per second beside the load on the same thread, {storm['seconds']:.0f} s in all, "
            f"{storm['gatewayCpuSecondsPerMillion']:.1f} µs of the gateway's CPU for each: most of it the proofs of both sides.", ""]
    if "broadcasts" in last:
        cast = last["broadcasts"]
        lines += [f"**Broadcast.** To all {last['sessions']:,}, until the last has acknowledged: {last['slowestBroadcastSeconds']:.1f} s at most, "
                  f"{cast['gatewayCpuSecondsPerMillion']:.2f} CPU-s per million, {cast['perSecond']:,.0f} devices per second.", ""]
    return lines + provenance(part)


def kept(part: dict) -> list[str]:
    rows = part["rows"]
    return [
        "## Accepting as kept messages grow", "", "![CPU per accepted message by kept messages](kept.png)", "",
        *table(["kept then", "accepting: CPU-s per million", "accepted per second", "resident MB", "seconds to ready after a kill"],
               [[f"{r['kept']:,}", shown(r["acceptCpuSecondsPerMillion"], 2), shown(r["acceptPerSecond"], 0),
                 f"{r['rssBytes'] / 1e6:,.0f}", f"{r['readySeconds']:.2f}" if "readySeconds" in r else ""] for r in rows]), "",
        "Messages come by backend links for devices that are away. The first go to the journal only; from when its segments are as",
        "many as are kept, what is still kept of the oldest goes to the tables (RocksDB) while others come, and RocksDB merges",
        "what it has: that is the step, and it does not grow with what is there already. Memory grows with each kept message's",
        "entry in the index, and with request ids, which are remembered for a day within a budget of their own.", "",
        *provenance(part)]


def backlog(part: dict) -> list[str]:
    by = {kind: [row for row in part["rows"] if row["kind"] == kind] for kind in ("journal", "tables")}
    rows = [[f"{journal['backlog']:,}", f"{middle(journal['devices']):,.0f}", shown(journal["cpu"], 2), shown(journal["rate"], 0),
             shown(tables["cpu"], 2), shown(tables["rate"], 0)]
            for journal, tables in zip(by["journal"], by["tables"])]
    return [
        "## Collecting as a device's backlog grows", "", "![CPU per collected message by backlog](backlog.png)", "",
        *table(["backlog of each", "devices", "from the journal: CPU-s per million", "collected per second",
                "from the tables: CPU-s per million", "collected per second"], rows), "",
        "Devices come back, take what was kept, acknowledge and go. Each has its login, about 25 µs with the proofs, and its",
        "connection's beginning and end: at a backlog of one that is nearly all there is, and at ten still the larger part. From a",
        "hundred on it is spread thin, and what is left is a message's own cost, which does not grow with the backlog: the stream",
        "is read from its cursor, a window at a time.", "", *provenance(part)]


def shards(part: dict) -> list[str]:
    names = {"rate": "online at a fixed rate", "most": "online, as much as goes", "offline": "accepted for devices away"}
    return [
        "## One shard and two", "", "![CPU per message by shards](shards.png)", "",
        *table(["what", "shards", "CPU-s per million", "per second", "gateway's cores", "load's share of a core", "p99, ms"],
               [[names[r["mode"]], str(r["shards"]), shown(r["cpu"], 2), shown(r["rate"], 0), shown(r["cores"], 2),
                 f"{100 * middle(r['load']):.0f} %" if "load" in r else "", shown(r.get("p99"), 1)] for r in part["rows"]]), "",
        "With two shards half of the devices belong to the one that did not read the push, so it travels by a mailbox, a batch for",
        "each turn; and each shard has fewer events in a turn over which to spread what a turn costs. That is the difference in CPU.",
        "The load is a thread of its own: where it and the shards together want more than the machine has, a second shard cannot add",
        "what it would on a larger machine.", "", *provenance(part)]


PARTS = {"idle": idle, "sessions": sessions, "memory": memory, "kept": kept, "backlog": backlog, "shards": shards}


def document(measured: dict) -> list[str]:
    lines = HEAD.splitlines() + [""]
    for name, part in PARTS.items():
        if name in measured:
            lines += part(measured[name])
    missing = [name for name in PARTS if name not in measured]
    if missing:
        lines += [f"Not measured yet: {', '.join(missing)}.", ""]
    return lines[:-1]
