"""A network of our own: the gateway's place, and for each device a way to it that can be cut without a word."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import NoReturn

INSIDE = "FERRY_INSIDE_NETNS"
REQUIRED = "FERRY_REQUIRE_NETNS"


def enter(script: pathlib.Path, arguments: list[str]) -> None:
    """Returns inside a network namespace that goes with this process; the machine's own network is never touched."""
    if os.environ.get(INSIDE):
        # A place for named namespaces that nobody else sees.
        run("mount", "-t", "tmpfs", "tmpfs", "/run")
        run("ip", "link", "set", "lo", "up")
        return
    unshare = ["unshare", "--net", "--mount", "--propagation", "private"]
    if os.geteuid() != 0:
        unshare += ["--user", "--map-root-user"]
    probe = "mount -t tmpfs tmpfs /run && ip netns add probe && ip link add probe0 type veth peer name probe1"
    try:
        result = subprocess.run([*unshare, "sh", "-c", probe], capture_output=True, text=True, check=False)
        reason = result.stderr.strip() if result.returncode else ""
    except OSError as error:
        reason = str(error)
    if reason:
        give_up(reason)
    os.environ[INSIDE] = "1"
    os.execvp(unshare[0], [*unshare, sys.executable, str(script), *arguments])


def give_up(reason: str) -> NoReturn:
    print(f"no network namespaces here: {reason}")
    if os.environ.get(REQUIRED) == "1":
        sys.exit(f"half_open.py: {REQUIRED} is 1, so that is a failure (iproute2 and util-linux are needed, and root "
                 "or user namespaces)")
    print("half_open.py: skipped, nothing was tested")
    sys.exit(0)


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


class Path:
    """A device's namespace, behind a router that can stop forwarding: packets are lost, no end is told."""

    def __init__(self, number: int) -> None:
        self._router, self._device = f"router{number}", f"device{number}"
        self.gateway_address = f"10.1.{number}.1"
        for name in (self._router, self._device):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        self._connect("", f"home{number}", f"10.1.{number}.1", self._router, "wan", f"10.1.{number}.2")
        self._connect(self._router, "lan", f"10.2.{number}.1", self._device, "eth", f"10.2.{number}.2")
        run("ip", "route", "add", f"10.2.{number}.0/24", "via", f"10.1.{number}.2")
        run("ip", "-n", self._device, "route", "add", "default", "via", f"10.2.{number}.1")
        self.mend()

    @staticmethod
    def _connect(left: str, left_name: str, left_address: str, right: str, right_name: str, right_address: str) -> None:
        at_left = ["ip", "-n", left] if left else ["ip"]
        run(*at_left, "link", "add", left_name, "type", "veth", "peer", "name", right_name, "netns", right)
        for ip, name, address in ((at_left, left_name, left_address), (["ip", "-n", right], right_name, right_address)):
            run(*ip, "addr", "add", f"{address}/24", "dev", name)
            run(*ip, "link", "set", "dev", name, "up")

    def cut(self) -> None:
        self._forward(False)

    def mend(self) -> None:
        self._forward(True)

    def _forward(self, is_on: bool) -> None:
        run("ip", "netns", "exec", self._router, "sh", "-c", f"echo {int(is_on)} > /proc/sys/net/ipv4/ip_forward")

    def command(self, *command: str) -> list[str]:
        """The command, run where the device is."""
        return ["ip", "netns", "exec", self._device, *command]
