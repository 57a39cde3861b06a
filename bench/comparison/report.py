"""Turns results into the generated part of docs/performance.md."""

from __future__ import annotations

import statistics

from comparison.scenarios import BARS, BASES, Bar, Figure, Scenario
from comparison.systems import SYSTEMS

# By scenario, by contestant, in the order of rounds.
Results = dict[str, dict[str, list[dict]]]


def spread(values: list[float], digits: int) -> str:
    """Min / **median** / max; one value alone when there is one."""
    middle = f"**{statistics.median(values):,.{digits}f}**"
    if len(values) == 1:
        return middle
    return f"{min(values):,.{digits}f} / {middle} / {max(values):,.{digits}f}"


def ratios(mine: list[dict], base: list[dict], figure: Figure) -> list[float]:
    """Of figures of the same round; what is 0 in the base has no ratio."""
    pairs = [(figure.read(one), figure.read(other)) for one, other in zip(mine, base)]
    return [one / other for one, other in pairs if other > 0]


def digits_for(value: float) -> int:
    return 0 if value >= 100 else 1 if value >= 10 else 2


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head), *("| " + " | ".join(row) + " |" for row in rows)]


def scenario_part(scenario: Scenario, results: dict[str, list[dict]]) -> list[str]:
    lines = [f"### {scenario.title}", ""]
    if scenario.note:
        lines += [scenario.note, ""]
    rows = []
    for contestant in scenario.contestants:
        runs = results.get(contestant.name)
        if runs:
            rows.append([contestant.name, *(spread([f.read(r) for r in runs], f.digits) for f in scenario.figures)])
    lines += table(["system", *(figure.title for figure in scenario.figures)], rows)
    bases = [base for base in BASES if base in results]
    chosen = [figure for name in scenario.ratios for figure in scenario.figures if figure.name == name]
    rows = []
    for name, runs in results.items():
        cells, is_any = [], False
        for figure in chosen:
            for base in bases:
                values = ratios(runs, results[base], figure) if name != base else []
                cells.append(spread(values, digits_for(statistics.median(values))) if values else "")
                is_any = is_any or bool(values)
        if is_any:
            rows.append([name, *cells])
    if rows:
        head = ["ratios"] + [f"{figure.title} ÷ {base}'s" for figure in chosen for base in bases]
        lines += ["", *table(head, rows)]
    notes = [f"`{c.name}`: {c.about}" for c in scenario.contestants if c.about and c.name in results]
    if notes:
        lines += ["", "; ".join(notes) + "."]
    return [*lines, ""]


def judged(bar: Bar, scenarios: dict[str, Scenario], results: Results) -> list[str] | None:
    """The bar's row; None when what it asks for was not measured."""
    runs = results.get(bar.scenario, {}).get(bar.contestant)
    base = results.get(bar.scenario, {}).get(bar.against) if bar.against else None
    if not runs or (bar.against and not base):
        return None
    figure = next(figure for figure in scenarios[bar.scenario].figures if figure.name == bar.figure)
    values = ratios(runs, base, figure) if base else [figure.read(run) for run in runs]
    if not values:
        return None
    middle = statistics.median(values)
    is_met = middle >= bar.limit if bar.is_least else middle <= bar.limit
    digits = 2 if bar.against else digits_for(middle)
    return [bar.what, bar.contestant, wanted(bar), spread(values, digits), "met" if is_met else "**missed**"]


def wanted(bar: Bar) -> str:
    return f"{'≥' if bar.is_least else '≤'} {bar.limit:g}" + (f" × {bar.against}'s" if bar.against else "")


def bars_part(scenarios: dict[str, Scenario], results: Results) -> list[str]:
    rows = [row for bar in BARS if (row := judged(bar, scenarios, results))]
    missing = [[bar.what, bar.contestant, wanted(bar)] for bar in BARS if judged(bar, scenarios, results) is None]
    lines = ["### Bars", ""]
    if rows:
        lines += table(["what", "system", "wanted", "measured, min / **median** / max", ""], rows) + [""]
    if missing:
        lines += ["Not measured yet:", "", *table(["what", "system", "wanted"], missing), ""]
    return lines


def document(heading: list[str], scenarios: list[Scenario], results: Results) -> list[str]:
    by_name = {scenario.name: scenario for scenario in scenarios}
    named = {c.system for s in scenarios for c in s.contestants if c.name in results.get(s.name, {})}
    systems = [[name, SYSTEMS[name].about] for name in SYSTEMS if name in named]
    lines = [*heading, "", *bars_part(by_name, results), "### Systems", "", *table(["system", "how it is used"], systems), ""]
    for scenario in scenarios:
        if results.get(scenario.name):
            lines += scenario_part(scenario, results[scenario.name])
    return lines[:-1]
