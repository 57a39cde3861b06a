#!/usr/bin/env python3
"""The arithmetic and the judgement of the bench, without measuring anything."""

import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from comparison import report, scenarios  # noqa: E402
from comparison.systems import SYSTEMS  # noqa: E402


def idle(*values: float) -> list[dict]:
    return [{"rssBytesPerConnection": value, "welcomedPerSecond": 1, "idleCores": 0, "othersShare": 0}
            for value in values]


class Comparison(unittest.TestCase):
    def setUp(self) -> None:
        self.every = {scenario.name: scenario for scenario in scenarios.scenarios(False, 19_000)}
        self.bytes = self.every["idle"].figures[0]

    def test_a_ratio_is_of_the_same_round(self) -> None:
        self.assertEqual(report.ratios(idle(10, 40), idle(5, 10), self.bytes), [2, 4])

    def test_nothing_is_divided_by_zero(self) -> None:
        self.assertEqual(report.ratios(idle(10, 40), idle(0, 10), self.bytes), [4])

    def test_a_figure_of_one_round_claims_no_spread(self) -> None:
        self.assertEqual(report.spread([1234.5], 1), "**1,234.5**")
        self.assertEqual(report.spread([3, 1, 2], 0), "1 / **2** / 3")

    def test_the_median_decides_about_a_bar(self) -> None:
        bar = scenarios.Bar("own bytes", "idle", "ferry", "bytes", 256)
        for values, verdict in (((100, 256, 900), "met"), ((100, 257, 300), "**missed**")):
            self.assertEqual(report.judged(bar, self.every, {"idle": {"ferry": idle(*values)}})[-1], verdict)

    def test_a_bar_may_ask_for_at_least(self) -> None:
        bar = scenarios.Bar("", "idle", "ferry", "bytes", 3, True, "mosquitto")
        for mine, verdict in ((30, "met"), (29, "**missed**")):
            results = {"idle": {"ferry": idle(mine), "mosquitto": idle(10)}}
            self.assertEqual(report.judged(bar, self.every, results)[-1], verdict)

    def test_what_is_not_measured_is_not_judged(self) -> None:
        bar = scenarios.Bar("", "idle", "ferry", "bytes", 3, against="floor")
        for results in ({}, {"idle": {}}, {"idle": {"ferry": idle(1)}}, {"idle": {"floor": idle(1)}}):
            self.assertIsNone(report.judged(bar, self.every, results))
        self.assertIn("Not measured yet:", report.bars_part(self.every, {}))

    def test_bars_and_ratios_name_figures_that_exist(self) -> None:
        for scenario in self.every.values():
            names = {figure.name for figure in scenario.figures}
            self.assertLessEqual(set(scenario.ratios), names, scenario.name)
            self.assertLessEqual({c.system for c in scenario.contestants}, SYSTEMS.keys())
            bars = {bar.figure for bar in scenarios.BARS if bar.scenario == scenario.name}
            self.assertLessEqual(bars, names, scenario.name)
        self.assertLessEqual({bar.scenario for bar in scenarios.BARS}, self.every.keys())


if __name__ == "__main__":
    unittest.main()
