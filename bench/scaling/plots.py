#!/usr/bin/env python3
"""Draws the plots of docs/performance/scale.md: plots.py FIGURES FOLDER. Needs matplotlib."""

from __future__ import annotations

import json
import pathlib
import statistics
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.ticker import FuncFormatter  # noqa: E402

COLOURS = {"ferry": "#1f5fa8", "floor": "#8a8a8a", "memory": "#c8641e", "shard": "#e0a96d", "second": "#2f8f5b"}


def middle(value: float | list[float]) -> float:
    return statistics.median(value) if isinstance(value, list) else value


def count(value: float, _: object = None) -> str:
    for step, name in ((1e6, "M"), (1e3, "k")):
        if value >= step:
            return f"{value / step:g}{name}"
    return f"{value:g}"


class Plot:
    """One plot with its axes named; a linear y begins at zero."""

    def __init__(self, title: str, x: str, y: str, log: bool = False) -> None:
        self.figure, self.axes = pyplot.subplots(figsize=(7.2, 4), dpi=110)
        self.axes.set_title(title, fontsize=11, loc="left")
        self.axes.set_xlabel(x)
        self.axes.set_ylabel(y)
        if log:
            self.axes.set_xscale("log")
            self.axes.minorticks_off()
        self.axes.grid(axis="y", color="#dddddd", linewidth=0.8)
        self.axes.set_axisbelow(True)
        for side in ("top", "right"):
            self.axes.spines[side].set_visible(False)

    def line(self, xs: list[float], values: list[float | list[float]], label: str, colour: str, style: str = "-") -> None:
        ys = [middle(value) for value in values]
        spans = [value if isinstance(value, list) else [value] for value in values]
        errors = [[y - min(span) for y, span in zip(ys, spans)], [max(span) - y for y, span in zip(ys, spans)]]
        self.axes.errorbar(xs, ys, yerr=errors, label=label, color=COLOURS[colour], linestyle=style, marker="o",
                           markersize=4.5, linewidth=1.8, capsize=3, elinewidth=1)

    def ticks(self, xs: list[float]) -> None:
        self.axes.set_xticks(xs)
        self.axes.xaxis.set_major_formatter(FuncFormatter(count))

    def save(self, path: pathlib.Path) -> None:
        if self.axes.get_yscale() == "linear":
            self.axes.set_ylim(bottom=0)
            # Room for the legend above what is drawn.
            names = len(self.axes.get_legend_handles_labels()[0])
            self.axes.set_ylim(top=self.axes.get_ylim()[1] * (1.08 if names < 4 else 1.35))
        if len(self.axes.get_legend_handles_labels()[0]) > 1:
            self.axes.legend(frameon=False, fontsize=9)
        self.figure.tight_layout()
        self.figure.savefig(path, metadata={"Software": None})
        pyplot.close(self.figure)


def of(rows: list[dict], **wanted: object) -> list[dict]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def idle(measured: dict, folder: pathlib.Path) -> None:
    rows = measured["idle"]["rows"]
    plot = Plot("Memory of an idle connection, all in", "connections", "bytes for each connection")
    names = [f"{row['connections']:,}" for row in rows]
    own, kernel = [row["own"] for row in rows], [row["kernel"] for row in rows]
    plot.axes.bar(names, kernel, 0.5, label="kernel's, the gateway's end", color=COLOURS["floor"])
    plot.axes.bar(names, own, 0.5, bottom=kernel, label="the gateway's own", color=COLOURS["ferry"])
    for place, (mine, its) in enumerate(zip(own, kernel)):
        plot.axes.text(place, mine + its, f" {its:,.0f} + {mine:,.0f} ", ha="center", va="bottom", fontsize=9)
    plot.axes.set_ylim(top=max(m + k for m, k in zip(own, kernel)) * 1.25)
    plot.save(folder / "idle.png")


def sessions(measured: dict, folder: pathlib.Path) -> None:
    plot = Plot("Server CPU for a message to a device that is online, by backend link", "sessions",
                "CPU-seconds per million messages", log=True)
    marks: set[float] = set()
    if "sessions" in measured:
        rows = measured["sessions"]["rows"]
        for system, label in (("ferry", "Ferry, over sockets"), ("floor", "the floor, over sockets")):
            mine = of(rows, system=system)
            plot.line([row["sessions"] for row in mine], [row["cpu"] for row in mine], label, system)
            marks |= {row["sessions"] for row in mine}
    if "memory" in measured:
        rows = measured["memory"]["rows"]
        xs = [row["sessions"] for row in rows]
        plot.line(xs, [row["messages"]["gatewayCpuSecondsPerMillion"] for row in rows],
                  "Ferry without the kernel's sockets: lines in memory", "memory")
        plot.line(xs, [row["messages"]["shardCpuSecondsPerMillion"] for row in rows], "of it the shard's thread", "shard", "--")
        marks |= set(xs)
    # Neighbours whose names would lie over one another share one.
    spread: list[float] = []
    for mark in sorted(marks):
        if not spread or mark / spread[-1] > 1.6:
            spread.append(mark)
    plot.ticks(spread)
    plot.save(folder / "sessions.png")


def timers(measured: dict, folder: pathlib.Path) -> None:
    rows = measured["memory"]["rows"]
    plot = Plot("Shard's CPU for timers and keep-alives as sessions grow", "sessions", "ms of CPU per second")
    xs = [row["sessions"] for row in rows]
    for name, label, colour in (("speaking", "all keep their session alive (240 s)", "ferry"),
                                ("silent", "nobody speaks: timers alone", "memory")):
        plot.line(xs, [row[name]["shardCpuMillisecondsPerSecond"] for row in rows], label, colour)
    plot.axes.set_xlim(left=0)
    plot.axes.xaxis.set_major_formatter(FuncFormatter(count))
    plot.save(folder / "timers.png")


def kept(measured: dict, folder: pathlib.Path) -> None:
    rows = measured["kept"]["rows"]
    plot = Plot("CPU for an accepted message as kept messages grow", "kept messages", "CPU-seconds per million accepted")
    xs = [row["kept"] for row in rows]
    plot.line(xs, [row["acceptCpuSecondsPerMillion"] for row in rows], "CPU", "ferry")
    memory = plot.axes.twinx()
    memory.plot(xs, [row["rssBytes"] / 1e6 for row in rows], color=COLOURS["memory"], linestyle="--", marker="s", markersize=4)
    memory.set_ylabel("resident MB (dashed)", color=COLOURS["memory"])
    memory.set_ylim(bottom=0)
    memory.spines["top"].set_visible(False)
    plot.axes.set_xlim(left=0)
    plot.axes.xaxis.set_major_formatter(FuncFormatter(count))
    plot.save(folder / "kept.png")


def backlog(measured: dict, folder: pathlib.Path) -> None:
    rows = measured["backlog"]["rows"]
    plot = Plot("CPU for a collected message as each device's backlog grows, logins included", "kept messages of each device",
                "CPU-seconds per million messages", log=True)
    xs = sorted({row["backlog"] for row in rows})
    for kind, label, colour in (("tables", "from the tables", "memory"), ("journal", "from the journal", "ferry")):
        mine = of(rows, kind=kind)
        plot.line([row["backlog"] for row in mine], [row["cpu"] for row in mine], label, colour)
    costs = [middle(row["cpu"]) for row in of(rows, kind="journal")]
    plot.axes.plot(xs, [costs[-1] + (costs[0] - costs[-1]) / x for x in xs], color=COLOURS["floor"], linestyle=":",
                   label="a message's own cost and a login for all of a backlog")
    plot.ticks(xs)
    # A login is fifty times a message: on one linear scale only it would be seen.
    plot.axes.set_yscale("log")
    plot.axes.yaxis.set_major_formatter(FuncFormatter(count))
    plot.save(folder / "backlog.png")


def shards(measured: dict, folder: pathlib.Path) -> None:
    rows = measured["shards"]["rows"]
    plot = Plot("CPU for a message with one shard and with two", "", "CPU-seconds per million messages")
    names = {"rate": "online,\nfixed rate", "most": "online,\nas much as goes", "offline": "accepted for\ndevices away"}
    for offset, number, colour in ((-0.18, 1, "ferry"), (0.18, 2, "memory")):
        mine = [of(rows, shards=number, mode=mode)[0] for mode in names]
        places = [place + offset for place in range(len(names))]
        values = [middle(row["cpu"]) for row in mine]
        plot.axes.bar(places, values, 0.34, label=f"{number} shard{'s' * (number > 1)}", color=COLOURS[colour])
        for place, value in zip(places, values):
            plot.axes.text(place, value, f"{value:.1f}", ha="center", va="bottom", fontsize=9)
    plot.axes.set_xticks(range(len(names)))
    plot.axes.set_xticklabels(names.values())
    plot.save(folder / "shards.png")


# By the parts that each needs, one of them at least.
PLOTS = [(idle, {"idle"}), (sessions, {"sessions", "memory"}), (timers, {"memory"}), (kept, {"kept"}),
         (backlog, {"backlog"}), (shards, {"shards"})]


def main() -> None:
    measured = json.loads(pathlib.Path(sys.argv[1]).read_text())
    for draw, parts in PLOTS:
        if parts & measured.keys():
            draw(measured, pathlib.Path(sys.argv[2]))


if __name__ == "__main__":
    main()
