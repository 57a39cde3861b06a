"""What happens to a peer that goes without a word. Each scenario has a gateway and paths of its own."""

from __future__ import annotations

import pathlib
import shutil
import signal
import threading
import time
from typing import Any, Callable, Union

from net import Path
from parts import (
    ACK_DEADLINE, GRACE, KEEP_ALIVE, PATIENCE, PROGRESS_DEADLINE, SLACK, Device, Failure, Gateway, expect, until)


# Nothing else would notice in time.
ACK_DEADLINE_ONLY = {"progressDeadlineMs": 60_000, "keepAliveDefaultSeconds": 60}


class Scene:
    """One scenario's gateway, paths and devices; all end with it."""

    def __init__(self, binary: str, home: pathlib.Path, paths: list[Path], is_ours: bool) -> None:
        self._binary, self._home, self._paths, self._is_ours = binary, home, paths, is_ours
        self.parts: list[Union[Gateway, Device]] = []

    def gateway(self, **settings: int) -> Gateway:
        self.parts.append(Gateway(self._binary, self._home, **settings))
        self._gateway = self.parts[-1]
        return self._gateway

    def path(self, index: int = 0) -> Path:
        return self._paths[index]

    def device(self, name: str = "device", *options: str, path: int = 0, **times: float) -> Device:
        self.parts.append(
            Device(self._gateway, self._paths[path], name, *options, is_ours=self._is_ours, **times))
        return self.parts[-1]

    def close(self) -> None:
        for part in reversed(self.parts):
            part.close()


def vanishes_idle(scene: Scene) -> None:
    """A device that vanishes while nothing is in flight is offline after its keep-alive, and gets what came when it is back."""
    gateway, device = scene.gateway(), scene.device()
    cid = device.online()
    scene.path().cut()
    began = time.monotonic()
    time.sleep(KEEP_ALIVE * 0.4)
    expect(gateway.status(cid) == "online", "nobody can know yet that the device is gone")
    # Its last ping may have left just before the cut, or be due just then.
    gateway.offline_after(cid, KEEP_ALIVE * 0.5 + GRACE, KEEP_ALIVE * 1.5 + GRACE, began)
    gateway.stubs(0)
    expect(gateway.push(cid, "a") == "offline", "it is offline")
    gateway.stubs(1)
    scene.path().mend()
    device.has([("a", True)])
    until(lambda: gateway.status(cid) == "online", SLACK, "online again")
    expect(gateway.push(cid, "b") == "online", "it is online")
    device.has([("a", True), ("b", False)])
    gateway.stubs(1)


def vanishes_with_messages_in_flight(scene: Scene) -> None:
    """Messages sent to a device that has vanished are noticed by the ack deadline, kept, and come once, marked offLine."""
    gateway, device = scene.gateway(**(ACK_DEADLINE_ONLY | {"keepAliveDefaultSeconds": 6})), scene.device()
    cid = device.online()
    gateway.push(cid, "before")
    device.has([("before", False)])
    time.sleep(0.3)  # and acknowledged
    scene.path().cut()
    texts = ["a", "b", "c"]
    began = time.monotonic()
    for text in texts:
        expect(gateway.push(cid, text) == "online", "nobody can know yet that the device is gone")
    gateway.offline_after(cid, ACK_DEADLINE + GRACE, ACK_DEADLINE + GRACE, began)
    gateway.stubs(1)
    expect(gateway.outbox()[0]["payload"]["aps"]["badge"] == 3, "the badge counts what is kept")
    # It gives its old connection up before the way is free, so that nothing late comes over that.
    device.event("offline")
    scene.path().mend()
    device.has([("before", False)] + [(text, True) for text in texts])
    gateway.push(cid, "after")
    device.has([("before", False)] + [(text, True) for text in texts] + [("after", False)])
    gateway.stubs(1)


def never_noticed_that_it_was_away(scene: Scene) -> None:
    """A device that is cut off and back before it notices gets all once, although its old connection is a ghost's by then."""
    gateway, device = scene.gateway(**ACK_DEADLINE_ONLY), scene.device()
    cid = device.online()
    scene.path().cut()
    began = time.monotonic()
    texts = ["a", "b", "c"]
    for text in texts[:2]:
        expect(gateway.push(cid, text) == "online", "nobody can know yet that the device is gone")
    gateway.offline_after(cid, ACK_DEADLINE + GRACE, ACK_DEADLINE + GRACE, began)
    gateway.stubs(1)
    expect(gateway.push(cid, texts[2]) == "offline", "it is offline")
    scene.path().mend()
    until(lambda: len(device.payloads) >= 3, PATIENCE, "messages")
    # The kernel still brings what had left before the gateway gave up, as it was marked then, and the close behind it.
    expect([text for text, _ in device.payloads] == texts, f"each once, in order, and not {device.payloads}")
    expect(device.payloads[2] == ("c", True), "what came while it was away is marked")
    until(lambda: gateway.status(cid) == "online", PATIENCE, "online again")
    gateway.push(cid, "d")
    until(lambda: device.payloads[3:] == [("d", False)], PATIENCE, "the next message")
    gateway.stubs(2)


def comes_back_within_the_grace(scene: Scene) -> None:
    """A connection that is lost and replaced within the grace leaves no trace: no stub, no mark, nothing twice."""
    gateway, device = scene.gateway(reattachGraceMs=8_000), scene.device(PONG_SECONDS=0.5)
    cid = device.online()
    scene.path().cut()
    for text in ("a", "b"):
        expect(gateway.push(cid, text) == "online", "it counts as online")
    device.event("offline", KEEP_ALIVE + SLACK)
    expect(gateway.push(cid, "c") == "online", "it counts as online")
    scene.path().mend()
    device.online()
    device.has([("a", False), ("b", False), ("c", False)])
    gateway.stubs(0)


def returns_by_another_way(scene: Scene) -> None:
    """A device that comes by another way before its ghost is noticed takes over: it gets all once, the ghost learns that."""
    gateway = scene.gateway(ackDeadlineMs=60_000, keepAliveDefaultSeconds=60)
    ghost = scene.device("ghost")
    cid = ghost.online()
    gateway.push(cid, "before")
    ghost.has([("before", False)])
    # The state with the number of that message must be on disk before it is copied.
    until(lambda: '"lastSeq": 0' not in ghost.state.read_text(), SLACK, "the state is stored")
    time.sleep(0.3)
    scene.path().cut()
    for text in ("a", "b"):
        expect(gateway.push(cid, text) == "online", "it counts as online")
    shutil.copy(ghost.state, gateway.home / "heir.json")
    heir = scene.device("heir", path=1)
    expect(heir.online() == cid, "it is the same device")
    heir.has([("a", False), ("b", False)])
    scene.path().mend()
    # Whatever was still under way to the ghost comes now, the last of it that it was replaced.
    until(lambda: ghost.process.poll() is not None, PATIENCE, "the ghost stops")
    expect(gateway.push(cid, "c") == "online", "the heir is online")
    heir.has([("a", False), ("b", False), ("c", False)])
    expect(heir.count("offline") == 0, "the heir was left alone")
    gateway.stubs(0)


def is_stopped_with_a_full_window(scene: Scene) -> None:
    """A stopped process, whose kernel goes on acknowledging, is noticed all the same; every message comes once, in order."""
    gateway, device = scene.gateway(**ACK_DEADLINE_ONLY, stubCooldownMs=60_000), scene.device()
    cid = device.online()
    device.signal(signal.SIGSTOP)
    texts = [f"message {number}" for number in range(100)]
    began = time.monotonic()
    for text in texts[:70]:
        expect(gateway.push(cid, text) == "online", "nobody can know yet that the process does not run")
    gateway.offline_after(cid, ACK_DEADLINE + GRACE, ACK_DEADLINE + GRACE, began)
    for text in texts[70:]:
        expect(gateway.push(cid, text) == "offline", "it is offline")
    gateway.stubs(1)
    device.signal(signal.SIGCONT)
    until(lambda: len(device.payloads) >= 100, PATIENCE, "all messages")
    expect([text for text, _ in device.payloads] == texts, "each once, in order")
    # What had left before the gateway knew bears no mark; what had not been sent does.
    expect(all(is_offline for _, is_offline in device.payloads[64:]), "what was not sent is marked")
    until(lambda: gateway.status(cid) == "online", PATIENCE, "online again")
    gateway.push(cid, "after")
    until(lambda: device.payloads[-1:] == [("after", False)], PATIENCE, "the next message")
    gateway.stubs(1)


def gateway_is_stopped(scene: Scene) -> None:
    """While the gateway's process is stopped its clients give up and try again; then all go on, and nobody was away."""
    gateway = scene.gateway(reattachGraceMs=8_000, keepAliveDefaultSeconds=1)
    device = scene.device(PONG_SECONDS=1.0, HANDSHAKE_SECONDS=1.5)
    cid = device.online()
    gateway.process.send_signal(signal.SIGSTOP)
    answers: list[Any] = []
    backend = threading.Thread(target=lambda: answers.append(gateway.push(cid, "a")))
    backend.start()
    device.event("offline", 1.0 + 1.0 + SLACK)
    # Its next try reaches a kernel that accepts and a process that says nothing.
    device.event("offline", 1.5 + SLACK)
    expect(not answers, "a stopped gateway answers nothing")
    gateway.process.send_signal(signal.SIGCONT)
    backend.join(PATIENCE)
    expect(answers in (["online"], ["offline"]), f"the push was answered {answers}")
    device.has([("a", answers == ["offline"])])
    until(lambda: gateway.status(cid) == "online", PATIENCE, "online again")
    gateway.push(cid, "b")
    device.has([("a", answers == ["offline"]), ("b", False)])
    gateway.stubs(0)


def handles_slowly(scene: Scene) -> None:
    """An app that takes twice the ack deadline for a message stays attached, since its client answers probes."""
    gateway, device = scene.gateway(), scene.device(ACK_DELAY_SECONDS=2.4)
    cid = device.online()
    for number in range(2):
        expect(gateway.push(cid, f"{number}") == "online", "it is online")
        time.sleep(2.6)
    device.has([("0", False), ("1", False)])
    expect(device.count("offline") == 0 and gateway.status(cid) == "online", "it stayed attached")
    gateway.stubs(0)


def never_acknowledges(scene: Scene) -> None:
    """A client that answers probes and acknowledges nothing is closed after the progress deadline, with the code for it."""
    gateway, device = scene.gateway(), scene.device("device", "--no-ack")
    cid = device.online()
    began = time.monotonic()
    gateway.push(cid, "a")
    reason = device.event("offline", PROGRESS_DEADLINE + SLACK)["reason"]
    seconds = time.monotonic() - began
    expect("1005" in reason or "acknowledged" in reason, f"the connection ended with {reason!r}")
    expect(seconds > PROGRESS_DEADLINE - 0.1, f"closed after {seconds:.2f} s")
    device.online()
    device.has([("a", False)])
    gateway.stubs(0)


def trickles(scene: Scene, habit: str, least: float, **settings: int) -> None:
    gateway = scene.gateway(stubCooldownMs=60_000, **settings)
    slow = scene.device("slow", f"--{habit}", PONG_SECONDS=60)
    cid = slow.online()
    other = scene.device("other", "--device-token", "cd" * 32, path=1)
    neighbour = other.online()
    time.sleep(0.6)
    began = time.monotonic()
    for number in range(60):
        gateway.push(cid, f"{number} " + "x" * 3_000)
        gateway.push(neighbour, f"{number}")
    until(lambda: len(other.payloads) == 60, 2.0, "the neighbour has all its messages at once")
    gateway.offline_after(cid, least, least, began)
    gateway.stubs(1)
    expect(gateway.push(neighbour, "after") == "online", "the neighbour is still there")
    slow.close()
    # Another program with its state takes all of it in: nothing was lost.
    heir = scene.device("slow")
    heir.online()
    try:
        until(lambda: len(heir.payloads) >= 60, PATIENCE, "what the slow one did not take in")
    except Failure as failure:
        raise Failure(f"{failure}: {len(heir.payloads)} of 60 came") from None
    expect([text.split()[0] for text, _ in heir.payloads] == [str(n) for n in range(60)], "each once, in order")
    expect(all(is_offline for _, is_offline in heir.payloads), "all marked offLine")


def trickles_in_silence(scene: Scene) -> None:
    """A device that reads a byte a second and says nothing is closed at the ack deadline; its neighbours notice nothing."""
    trickles(scene, "trickle", ACK_DEADLINE + GRACE, **ACK_DEADLINE_ONLY)


def trickles_and_talks(scene: Scene) -> None:
    """A device that reads a byte a second and pings is closed at the progress deadline; its neighbours notice nothing."""
    trickles(scene, "trickle-and-talk", PROGRESS_DEADLINE + GRACE, keepAliveDefaultSeconds=60)


def is_killed_and_started(scene: Scene) -> None:
    """A killed device that is started within the grace was never away; one that is not gets its stub."""
    gateway = scene.gateway(reattachGraceMs=4_000)
    first = scene.device()
    cid = first.online()
    time.sleep(0.3)
    first.close()
    expect(gateway.push(cid, "a") == "online", "the grace is not over")
    second = scene.device()
    second.has([("a", False)])
    gateway.stubs(0)
    time.sleep(1.0)  # a client stores its place and acknowledges within a second
    second.close()
    began = time.monotonic()
    expect(gateway.push(cid, "b") == "online", "the grace is not over")
    gateway.offline_after(cid, 4.0, 4.0, began)
    gateway.stubs(1)
    third = scene.device()
    third.has([("b", True)])
    gateway.stubs(1)


# Each with the number of paths that it needs.
SCENARIOS: list[tuple[Callable[[Scene], None], int]] = [
    (vanishes_with_messages_in_flight, 1), (is_stopped_with_a_full_window, 1), (gateway_is_stopped, 1),
    (trickles_and_talks, 2), (vanishes_idle, 1), (comes_back_within_the_grace, 1), (is_killed_and_started, 1),
    (trickles_in_silence, 2), (handles_slowly, 1), (never_acknowledges, 1), (returns_by_another_way, 2),
    (never_noticed_that_it_was_away, 1),
]
# Those that need no shorter times of the device are also played with our own client.
WITH_OURS = (
    is_stopped_with_a_full_window, is_killed_and_started, never_acknowledges, never_noticed_that_it_was_away)
