"""What connections take of the kernel's memory. Both ends of each are on this machine."""

from __future__ import annotations

import subprocess
import time

from comparison import machine
from comparison.systems import Ferry, stop

# What the kernel has of these for a connection, or for its place in a poller. Others grow for other reasons.
CACHES = ("TCP", "sock_inode_cache", "filp", "dentry", "eventpoll_epi", "eventpoll_pwq", "tcp_bind_bucket",
          "tcp_bind2_bucket", "ep_head", "lsm_file_cache", "lsm_inode_cache", "fasync_cache")
PAGE = 4096


def meminfo(text: str, name: str) -> int:
    """Bytes."""
    for line in text.splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    return 0


def socket_pages(text: str) -> int:
    """Of /proc/net/sockstat: pages in the queues of TCP sockets."""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["TCP:"]:
            return int(words[words.index("mem") + 1])
    return 0


def slabs(text: str) -> dict[str, tuple[int, float]]:
    """Of /proc/slabinfo, by cache: objects in use, and bytes that one takes with its part of what is left over in its slab.
    Pages that sockets of a former run left empty are not counted so, nor missed when new ones fill them."""
    found = {}
    for line in text.splitlines()[2:]:
        words = line.split()
        found[words[0]] = (int(words[1]), int(words[5]) * PAGE / int(words[4]))
    return found


def read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def sample(process: int) -> dict:
    info = read("/proc/meminfo")
    return {"slab": meminfo(info, "Slab"), "stacks": meminfo(info, "KernelStack"),
            "queues": socket_pages(read("/proc/net/sockstat")) * PAGE, "slabs": slabs(read("/proc/slabinfo")),
            "own": machine.resident(process)}


def grown(before: dict, after: dict, connections: int) -> dict:
    """For one connection: the gateway's own bytes; the kernel's for one end, which is half of what both took."""
    caches = {}
    for name in CACHES:
        if name in after["slabs"]:
            count, size = after["slabs"][name]
            caches[name] = (count - before["slabs"].get(name, (0, size))[0]) * size / connections / 2
    slab = (after["slab"] - before["slab"]) / connections / 2
    queues = max(0, after["queues"] - before["queues"]) / connections / 2
    largest = sorted(caches.items(), key=lambda entry: -entry[1])
    # Only root may look into the caches; all slabs together are more than connections.
    return {"own": (after["own"] - before["own"]) / connections, "kernel": (sum(caches.values()) or slab) + queues,
            "slab": slab, "queues": queues, "caches": {name: round(size) for name, size in largest if size >= 1}}


def settle() -> None:
    """Waits until sockets of a former run have gone, which the kernel does in its own time; ten seconds at most."""
    before = None
    for _ in range(20):
        now = slabs(read("/proc/slabinfo")).get("TCP", (0, 0))[0]
        if before is not None and abs(now - before) < 50:
            return
        before = now
        time.sleep(0.5)


def watch(server: Ferry, connections: int) -> dict:
    """Looks before the load comes, and while all connections are there and silent."""
    pid = server.process.pid
    settle()
    before_processor = machine.processor_seconds(pid)
    before = sample(pid)
    load = subprocess.Popen(
        [str(word) for word in [*server.command(), "--mode", "idle", "--devices", connections, "--seconds", 5]],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    after, holding, output = None, 0, []
    # Its answer is one line and fits into the pipe; what it reports each second is read here.
    for line in load.stderr:
        output.append(line)
        if "holding" in line:
            holding += 1
            if holding == 2:
                after = sample(pid)
    result = load.stdout.read()
    if load.wait() != 0 or after is None:
        stop(f"the load ended with status {load.returncode}:\n{''.join(output)[-2000:]}{result}")
    after_processor = machine.processor_seconds(pid)
    others = (after_processor[0] - before_processor[0]) - (after_processor[1] - before_processor[1])
    return {**grown(before, after, connections),
            "others": max(0.0, others) / max(1e-9, after_processor[2] - before_processor[2])}
