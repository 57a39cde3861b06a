#!/usr/bin/env python3
"""The arithmetic and the judgement of the bench, without measuring anything."""

import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from comparison import report, scenarios  # noqa: E402
from comparison.systems import SYSTEMS  # noqa: E402
from scaling import kernel, page, parts  # noqa: E402


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


SLABINFO = """slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables …
TCP                 %d  900 2368 13 8 : tunables 0 0 0 : slabdata 1 1 0
filp                %d  900 192 21 1 : tunables 0 0 0 : slabdata 1 1 0
buffer_head         %d  900 104 39 1 : tunables 0 0 0 : slabdata 1 1 0
"""


class Scale(unittest.TestCase):
    def sample(self, own: int, slab: int, sockets: int, files: int, buffers: int, queues: int = 0) -> dict:
        return {"own": own, "slab": slab, "queues": queues, "slabs": kernel.slabs(SLABINFO % (sockets, files, buffers))}

    def test_one_end_is_half_of_what_the_kernel_took_for_both(self) -> None:
        before, after = self.sample(1_000, 0, 10, 10, 10), self.sample(201_000, 9_000_000, 2_010, 2_010, 99_000, 8_192)
        grown = kernel.grown(before, after, 1_000)
        self.assertEqual(grown["own"], 200)
        # 2,000 more of each for 1,000 connections: one of each for an end. Buffers of files are not connections'.
        self.assertAlmostEqual(grown["kernel"], 8 * 4096 / 13 + 4096 / 21 + 8_192 / 2_000)
        self.assertEqual(grown["caches"], {"TCP": 2_521, "filp": 195})

    def test_all_slabs_stand_in_where_caches_cannot_be_read(self) -> None:
        before = {"own": 0, "slab": 0, "queues": 0, "slabs": {}}
        self.assertEqual(kernel.grown(before, {**before, "slab": 8_000_000}, 1_000)["kernel"], 4_000)

    def test_the_kernel_s_files_are_read_by_name(self) -> None:
        self.assertEqual(kernel.meminfo("MemTotal: 5 kB\nSlab:   7 kB\nSlabX: 9 kB\n", "Slab"), 7 * 1024)
        self.assertEqual(kernel.socket_pages("sockets: used 9\nTCP: inuse 3 orphan 0 tw 0 alloc 4 mem 12\n"), 12)

    def test_one_more_costs_what_is_added_and_not_what_starts_once(self) -> None:
        rows = [{"connections": 100, "own": 1_000}, {"connections": 300, "own": 400}]
        self.assertEqual(page.slope(rows, "connections", "own"), 100)
        self.assertEqual(page.slope(rows[:1], "connections", "own"), 0)

    def test_growth_is_from_the_first_row_to_the_last_by_medians(self) -> None:
        self.assertEqual(page.growth([{"cpu": [1, 2, 9]}, {"cpu": 5}, {"cpu": [3]}], "cpu"), 1.5)

    def test_a_part_says_when_others_were_busy_or_it_was_a_trial(self) -> None:
        part = {"at": "now", "revision": "r", "machine": "m", "seconds": 1, "isTrial": False, "rows": [{"others": [0.01, 0.02]}]}
        self.assertNotIn("**", page.provenance(part)[0])
        self.assertIn("30 % of the machine", page.provenance({**part, "rows": [{"others": 0.01}, {"others": [0, 0.3]}]})[0])
        self.assertIn("mean nothing", page.provenance({**part, "isTrial": True})[0])

    def test_every_part_has_its_place_on_the_page(self) -> None:
        self.assertEqual(set(page.PARTS), set(parts.PARTS))
        self.assertIn("Not measured yet: idle, sessions", "\n".join(page.document({})))

    def test_rounds_take_turns_and_keep_each_figure(self) -> None:
        played = []
        setting = parts.Setting({}, False, 0, lambda text: None)
        rows = parts.rounds(setting, "x", ["a", "b"], lambda case: played.append(case) or {"cpu": len(played)})
        self.assertEqual(played, ["a", "b"] * 3)
        self.assertEqual(rows, [{"cpu": [1, 3, 5]}, {"cpu": [2, 4, 6]}])


if __name__ == "__main__":
    unittest.main()
