#!/usr/bin/env python3
"""Peers that go without a word, over a real network with the real executable.

    half_open.py PATH-OF-FERRY [NAME …]

Makes a network namespace of its own, and in it a path for each device that can be cut so that no end is told. Where that
is not permitted it says so and tests nothing; with FERRY_REQUIRE_NETNS=1 that is a failure. Exits 0 when all went well.
"""

from __future__ import annotations

import concurrent.futures
import pathlib
import sys
import tempfile
import time
import traceback

import net
from net import Path
from parts import Failure
from scenarios import SCENARIOS, WITH_OURS, Scene

AT_ONCE = 8


def play(scenario, binary: str, home: pathlib.Path, paths: list[Path], is_ours: bool) -> str:
    """Empty when all was well, else what was not."""
    scene = Scene(binary, home, paths, is_ours)
    began = time.monotonic()
    problem = ""
    try:
        scenario(scene)
    except Failure as failure:
        problem = str(failure)
    except Exception:  # noqa: BLE001, a scenario that breaks is a failure with its place
        problem = traceback.format_exc()
    finally:
        scene.close()
    if problem:
        for log in sorted(home.glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()[-8:]
            problem += "".join(f"\n  {log.name}: {line}" for line in lines if line and not line.startswith(" "))
    seconds = time.monotonic() - began
    who = " (our client)" if is_ours else ""
    print(f"{'FAILED' if problem else 'ok'} after {seconds:.1f} s: {scenario.__doc__.strip()}{who}", flush=True)
    return problem


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    if not pathlib.Path(binary).exists():
        sys.exit(f"half_open.py: there is no {sys.argv[1]}; build it first")
    net.enter(pathlib.Path(__file__).resolve(), sys.argv[1:])
    wanted = [(s, count, False) for s, count in SCENARIOS]
    wanted += [(s, count, True) for s, count in SCENARIOS if s in WITH_OURS]
    wanted = [play for play in wanted if not sys.argv[2:] or play[0].__name__ in sys.argv[2:]]
    if not wanted:
        sys.exit("half_open.py: no such scenario; there are " + ", ".join(s.__name__ for s, _ in SCENARIOS))
    began = time.monotonic()
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="ferry-network-") as folder, \
            concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        plays = []
        number = 0
        for scenario, count, is_ours in wanted:
            home = pathlib.Path(folder) / f"{len(plays)}-{scenario.__name__}"
            home.mkdir()
            paths = [Path(number + index + 1) for index in range(count)]
            number += count
            plays.append(pool.submit(play, scenario, binary, home, paths, is_ours))
        for (scenario, _, _), done in zip(wanted, plays):
            if problem := done.result():
                problems.append(f"{scenario.__name__}: {problem}")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(wanted)} scenarios, {len(problems)} failed, {time.monotonic() - began:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
