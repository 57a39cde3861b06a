#!/usr/bin/env python3
"""Runs every example against a gateway of its own.

    test.py PATH-OF-FERRY

The gateway listens on ports that are free and keeps its data in a temporary folder. Exits 0 when all went well.
"""

from __future__ import annotations

import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Optional

EXAMPLES = pathlib.Path(__file__).resolve().parent
PATIENCE_SECONDS = 30.0
TEXT = 'A "quoted" \\ text,\nsecond line, 你好 \U0001f680'
LONG = "see you at eight, 你好; " * 60


class Failure(Exception):
    """What was expected did not happen."""


def expect(right: bool, text: str) -> None:
    if not right:
        raise Failure(text)


class Process:
    """A child whose lines on stdout are JSON objects, one each."""

    def __init__(self, name: str, command: list[str], log: pathlib.Path, environment: dict[str, str]) -> None:
        self.name = name
        with open(log, "ab") as errors:
            self._child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
                env={**os.environ, **environment})
        self._lines: queue.Queue[Optional[str]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def event(self, name: str) -> dict[str, Any]:
        """The next line, which must be this event."""
        try:
            line = self._lines.get(timeout=PATIENCE_SECONDS)
        except queue.Empty as error:
            raise Failure(f"{self.name} said nothing for {PATIENCE_SECONDS:.0f} s; expected: {name}") from error
        if line is None:
            raise Failure(f"{self.name} ended; expected: {name}")
        event = json.loads(line)
        expect(event.get("event") == name, f"{self.name} said {event}; expected: {name}")
        return event

    def stop(self) -> None:
        """By TERM, which every one of them answers with status 0."""
        self._child.send_signal(signal.SIGTERM)
        status = self._child.wait(timeout=PATIENCE_SECONDS)
        expect(status == 0, f"{self.name} ended with status {status} after TERM")

    def end(self) -> None:
        if self._child.poll() is None:
            self._child.kill()
            self._child.wait()


class Run:
    """A gateway in a folder, and the examples around it."""

    def __init__(self, ferry: str, folder: pathlib.Path) -> None:
        self._ferry, self._folder = ferry, folder
        self.log = folder / "stderr.log"
        self.processes: list[Process] = []
        self.app: dict[str, str] = {}
        self._device_address = ""
        self._environment: dict[str, str] = {}

    def begin(self) -> None:
        self.gateway = self._start("ferry serve", [
            self._ferry, "serve", "--data", str(self._folder / "data"), "--device-listen", "127.0.0.1:0",
            "--http-listen", "127.0.0.1:0", "--backend-listen", "127.0.0.1:0"])
        ready = self.gateway.event("ready")
        self._device_address = ready["device"]
        self.app = json.loads((self._folder / "data.apps.json").read_text(encoding="utf-8"))[0]
        self._environment = {
            "FERRY_HTTP": f"http://{ready['http']}", "FERRY_APP": self.app["appId"],
            "FERRY_LINK": ready["backend"], "FERRY_APP_KEY": self.app["appKey"], "FERRY_MASTER_SECRET": self.app["masterSecret"],
        }

    def _start(self, name: str, command: list[str], environment: Optional[dict[str, str]] = None) -> Process:
        process = Process(name, command, self.log, environment or {})
        self.processes.append(process)
        return process

    def device(self, *options: str) -> Process:
        command = [
            sys.executable, "-B", str(EXAMPLES / "device-python/device.py"), "--server", self._device_address,
            "--app", self.app["appId"], "--state", str(self._folder / "device.json"), *options]
        return self._start("device.py", command, {"FERRY_APP_SECRET": self.app["appSecret"]})

    def backend(
            self, command: list[str], environment: Optional[dict[str, str]] = None, given: str = "") -> tuple[int, str]:
        """Status and output of a backend's call."""
        result = subprocess.run(
            command, input=given, env={**os.environ, **self._environment, **(environment or {})}, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, timeout=PATIENCE_SECONDS, check=False)
        return result.returncode, result.stdout + result.stderr

    def by_sh(self, *arguments: str, **environment: str) -> tuple[int, str]:
        return self.backend([str(EXAMPLES / "backend-sh/push.sh"), *arguments], environment)

    def by_python(self, *arguments: str, **environment: str) -> tuple[int, str]:
        return self.backend([sys.executable, "-B", str(EXAMPLES / "python/push.py"), *arguments], environment)

    def by_link(self, cid: str, lines: str) -> tuple[int, str]:
        return self.backend([sys.executable, "-B", str(EXAMPLES / "python/link.py"), cid], given=lines)

    def by_stream(self, lines: str) -> tuple[int, str]:
        return self.backend([
            self._ferry, "push", "--stream", "--link", self._environment["FERRY_LINK"], "--app", self.app["appId"]],
            given=lines)

    def by_ferry(self, cid: str, payload: str) -> tuple[int, str]:
        return self.backend([
            self._ferry, "push", "--http", self._environment["FERRY_HTTP"], "--app", self.app["appId"], "--cid", cid,
            "--payload", payload])

    def outbox(self) -> list[dict[str, Any]]:
        text = (self._folder / "data/outbox.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]


def check_payload(device: Process, payload: str, is_offline: bool, is_compressed: bool = False) -> int:
    event = device.event("payload")
    expect(event.get("compressed", False) is is_compressed, f"{payload[:40]!r}… came {event.get('compressed')}")
    expect(event["payload"] == payload, f"device.py got {event['payload']!r} instead of {payload!r}")
    expect(event["offLine"] is is_offline, f"offLine is {event['offLine']} for {payload!r}")
    return event["seq"]


def online(run: Run) -> str:
    """A new device gets what three backends send."""
    device = run.device("--device-token", "ab" * 32, "--environment", "sandbox")
    cid = device.event("registered")["cid"]
    expect(device.event("online")["kept"] == 0, "something is kept for a new device")
    status, output = run.by_sh(cid, TEXT)
    expect(status == 0 and "successed_online" in output, f"push.sh: status {status}, {output}")
    status, output = run.by_python("push", cid, TEXT, "--request-id", "example-request-1")
    expect(status == 0 and json.loads(output)["online"] is True, f"push.py: status {status}, {output}")
    first = json.loads(output)["taskId"]
    status, output = run.by_python("push", cid, TEXT, "--request-id", "example-request-1")
    expect(status == 0 and json.loads(output)["taskId"] == first, f"push.py, repeated: status {status}, {output}")
    status, output = run.by_python("all", "to everybody", "--request-id", "example-request-all")
    expect(status == 0 and json.loads(output)["taskId"].startswith("RASA_"), f"push.py all: status {status}, {output}")
    status, output = run.by_ferry(cid, "from ferry push")
    expect(status == 0, f"ferry push: status {status}, {output}")
    status, output = run.by_link(cid, "".join(f"by link {number}\n" for number in range(300)))
    expect(status == 0 and "300 accepted, 0 refused" in output, f"link.py: status {status}, {output}")
    status, output = run.by_stream(json.dumps({"cid": cid, "payload": "from a stream"}))
    expect(status == 0, f"ferry push --stream: status {status}, {output}")
    linked = [f"by link {number}" for number in range(300)]
    for payload in (TEXT, TEXT, "to everybody", "from ferry push", *linked, "from a stream"):
        check_payload(device, payload, is_offline=False)
    status, output = run.by_python("status", cid, "0" * 32)
    expect(status == 0 and [json.loads(line)["online"] for line in output.splitlines()] == [True],
           f"push.py status: status {status}, {output}")
    device.stop()
    device.event("offline")
    return cid


def offline(run: Run, cid: str) -> None:
    """What is sent while the device is away wakes its owner, and waits for it, in order."""
    status, output = run.by_sh(cid, "first, while away")
    expect(status == 0 and "successed_offline" in output, f"push.sh: status {status}, {output}")
    status, output = run.by_python("push", cid, "second, while away", "--title", "News", "--body", "Come and see")
    expect(status == 0 and json.loads(output)["online"] is False, f"push.py: status {status}, {output}")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(stubs := run.outbox()) < 2:
        expect(time.monotonic() < deadline, f"the outbox holds {stubs} instead of two wake-ups")
        time.sleep(0.05)
    expect({stub["token"] for stub in stubs} == {"ab" * 32}, f"a wake-up for another token: {stubs}")
    expect("while away" not in json.dumps(stubs), f"a payload is in the outbox: {stubs}")
    expect([stub for stub in stubs if "Come and see" in json.dumps(stub["payload"])] != [], f"no own alert: {stubs}")
    device = run.device()
    expect(device.event("online") == {"event": "online", "cid": cid, "kept": 2}, "the device came back as another")
    one = check_payload(device, "first, while away", is_offline=True)
    two = check_payload(device, "second, while away", is_offline=True)
    expect(one < two, f"seq {two} came after {one}")
    status, output = run.by_sh(cid, "back again")
    expect(status == 0, f"push.sh: status {status}, {output}")
    check_payload(device, "back again", is_offline=False)
    status, output = run.by_sh(cid, LONG)
    expect(status == 0, f"push.sh, long: status {status}, {output}")
    check_payload(device, LONG, is_offline=False, is_compressed=True)
    device.stop()
    device.event("offline")
    device = run.device("--no-compression")
    device.event("online")
    status, output = run.by_sh(cid, LONG)
    expect(status == 0, f"push.sh, long: status {status}, {output}")
    check_payload(device, LONG, is_offline=False)
    device.stop()
    device.event("offline")
    device = run.device()
    expect(device.event("online")["kept"] == 0, "what was acknowledged is still kept")
    device.stop()


def refused(run: Run, cid: str) -> None:
    """Backends say that they were refused, by status and in words."""
    for name, call in (("push.sh", run.by_sh), ("push.py", lambda *given, **set: run.by_python("push", *given, **set))):
        status, output = call(cid, "x", FERRY_MASTER_SECRET="wrong")
        expect(status == 1 and "sign is invalid" in output, f"{name}, wrong secret: status {status}, {output}")
        status, output = call("0" * 32, "x")
        expect(status == 1 and "target user is invalid" in output, f"{name}, no such device: status {status}, {output}")
        status, output = call(cid, "x", FERRY_HTTP="http://127.0.0.1:9")
        expect(status == 1 and "no answer" in output, f"{name}, no gateway: status {status}, {output}")
    status, output = run.by_link("0" * 32, "x\n")
    expect(status == 1 and "target user is invalid" in output, f"link.py, no such device: status {status}, {output}")


def main() -> int:
    if len(sys.argv) != 2 or shutil.which(sys.argv[1]) is None:
        print("usage: test.py PATH-OF-FERRY", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="ferry-examples-") as name:
        run = Run(str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(name))
        try:
            run.begin()
            cid = online(run)
            print("examples: a device that is online gets its messages", file=sys.stderr)
            offline(run, cid)
            print("examples: a device that was away is woken, and gets them later", file=sys.stderr)
            refused(run, cid)
            print("examples: backends tell when they are refused", file=sys.stderr)
            run.gateway.stop()
        except (Failure, subprocess.TimeoutExpired) as failure:
            print(f"examples/test.py: {failure}", file=sys.stderr)
            print(run.log.read_text(encoding="utf-8", errors="replace"), file=sys.stderr)
            return 1
        finally:
            for process in run.processes:
                process.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
