"""The machine under the bench: what it is, what its processes used, and where executables are."""

from __future__ import annotations

import os
import pathlib
import resource
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = ROOT / ".build" / "bench"
STRICT = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror"]


def compile_c(name: str, folder: str) -> str:
    """Builds all of `bench/FOLDER` unless it is older than what was built before."""
    target = BUILT / name
    sources = sorted((ROOT / "bench" / folder).glob("*.c"))
    inputs = sources + sorted((ROOT / "bench" / folder).glob("*.h")) + [pathlib.Path(__file__)]
    if not target.exists() or any(path.stat().st_mtime > target.stat().st_mtime for path in inputs):
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            sys.exit("bench/run: there is no gcc: bench/setup installs it")
        BUILT.mkdir(parents=True, exist_ok=True)
        subprocess.run([compiler, *STRICT, "-o", str(target), *map(str, sources)], check=True)
    return str(target)


def build_ferry() -> str:
    build = ["swift", "build", "-c", "release", "--product", "ferry"]
    subprocess.run(build, cwd=ROOT, check=True, stdout=sys.stderr)
    where = subprocess.run(build[:4] + ["--show-bin-path"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return str(pathlib.Path(where.stdout.strip()) / "ferry")


def executable(name: str) -> str:
    """Of a peer; Debian has some servers where a user's PATH does not look."""
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    if found is None:
        sys.exit(f"bench/run: there is no {name}: bench/setup installs it; or leave it out with --only")
    return found


def processor_seconds(server: int) -> tuple[float, float, float]:
    """Of the whole machine, of the server and ended loads, and what the machine could have given; in seconds."""
    tick = os.sysconf("SC_CLK_TCK")
    times = [int(field) for field in open("/proc/stat").readline().split()[1:9]]
    idle = times[3] + times[4]
    stat = open(f"/proc/{server}/stat").read().rsplit(")", 1)[1].split()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    ours = (int(stat[11]) + int(stat[12])) / tick + children.ru_utime + children.ru_stime
    return (sum(times) - idle) / tick, ours, sum(times) / tick


def resident(process: int) -> int:
    """Bytes of memory, files that it has mapped not counted."""
    for line in open(f"/proc/{process}/status"):
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def description() -> str:
    def first(path: str, key: str) -> str:
        for line in open(path):
            if line.startswith(key):
                return line.split(":", 1)[1].strip()
        return "unknown"

    system = "Linux"
    for line in open("/etc/os-release"):
        if line.startswith("PRETTY_NAME="):
            system = line.split("=", 1)[1].strip().strip('"')
    memory = int(first("/proc/meminfo", "MemTotal").split()[0]) / 1_048_576
    release = open("/proc/sys/kernel/osrelease").read().strip()
    return f"{os.cpu_count()} cores {first('/proc/cpuinfo', 'model name')}, {memory:.0f} GiB, {system}, Linux {release}"


def revision() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip() or "unknown"
