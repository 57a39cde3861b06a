"""The real executable and real devices, and what can be seen of them from outside."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import pathlib
import secrets
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Optional

from net import Path

HERE = pathlib.Path(__file__).resolve().parent
# How much later than it should something may be seen on a busy machine.
SLACK = 3.0
PATIENCE = 20.0
# Short, so that every scenario takes seconds; milliseconds where the gateway's keys are.
ACK_DEADLINE, PROGRESS_DEADLINE, GRACE, KEEP_ALIVE = 1.2, 3.0, 1.0, 2
SETTINGS = {
    "ackDeadlineMs": 1200, "progressDeadlineMs": 3000, "slowDeadlineMs": 2000, "reattachGraceMs": 1000,
    "stubCooldownMs": 300, "keepAliveDefaultSeconds": KEEP_ALIVE, "keepAliveMinimumSeconds": 1,
}


class Failure(Exception):
    """What was promised did not happen."""


def expect(is_right: bool, text: str) -> None:
    if not is_right:
        raise Failure(text)


def until(condition: Callable[[], bool], within: float, what: str) -> float:
    """Waits for it and answers how long that took."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > within:
            raise Failure(f"not within {within:.1f} s: {what}")
        time.sleep(0.02)
    return time.monotonic() - began


def end(process: subprocess.Popen) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


class Gateway:
    """A gateway of a scenario's own, its API and its outbox."""

    def __init__(self, binary: str, home: pathlib.Path, **settings: int) -> None:
        self.binary, self.home = binary, home
        config = home / "config.json"
        config.write_text(json.dumps({**SETTINGS, **settings}))
        self._log = open(home / "gateway.log", "wb")
        self.process = subprocess.Popen(
            [binary, "serve", "--config", str(config), "--data", str(home / "data"), "--insecure-plain",
             "--device-listen", "0.0.0.0:0", "--http-listen", "127.0.0.1:0", "--backend-listen", "none"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._log)
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise Failure("the gateway did not start: " + (home / "gateway.log").read_text())
        ready = json.loads(line)
        self.device_port = int(ready["device"].rpartition(":")[2])
        self._http = ready["http"]
        self._thread = threading.local()
        self.app = json.loads((home / "data.apps.json").read_text())[0]
        stamp = str(int(time.time() * 1000))
        sign = hashlib.sha256((self.app["appKey"] + stamp + self.app["masterSecret"]).encode()).hexdigest()
        self._token = self._call("POST", "auth", {"sign": sign, "timestamp": stamp, "appkey": self.app["appKey"]})[
            "data"]["token"]

    def _call(self, method: str, path: str, body: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        if not hasattr(self._thread, "connection"):
            self._thread.connection = http.client.HTTPConnection(self._http, timeout=PATIENCE)
        headers = {"Content-Type": "application/json"}
        if path != "auth":
            headers["token"] = self._token
        # Once more over a new connection if this one was idle for too long; a push has its request id.
        for attempt in (1, 2):
            try:
                self._thread.connection.request(
                    method, f"/v2/{self.app['appId']}/{path}", json.dumps(body) if body else None, headers)
                return json.loads(self._thread.connection.getresponse().read())
            except (http.client.HTTPException, ConnectionError):
                self._thread.connection.close()
                if attempt == 2:
                    raise
        raise AssertionError

    def push(self, cid: str, payload: str) -> str:
        """`online` or `offline`, as the device was at acceptance."""
        answer = self._call("POST", "push/single/cid", {
            "request_id": secrets.token_hex(12), "audience": {"cid": [cid]}, "push_message": {"transmission": payload}})
        expect(answer["code"] == 0, f"a push was answered {answer}")
        (status,) = next(iter(answer["data"].values())).values()
        return status.removeprefix("successed_")

    def status(self, cid: str) -> str:
        return self._call("GET", f"user/status/{cid}")["data"][cid]["status"]

    def offline_after(self, cid: str, least: float, most: float, since: float) -> None:
        """The device must go offline that many seconds after `since`, and neither sooner nor, with some slack, later."""
        until(lambda: self.status(cid) == "offline", since + most + SLACK - time.monotonic(), "the device is offline")
        seconds = time.monotonic() - since
        expect(seconds > least - 0.1, f"offline after {seconds:.2f} s, which is sooner than {least:.2f} s")

    def outbox(self) -> list[dict[str, Any]]:
        path = self.home / "data/outbox.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def stubs(self, count: int) -> None:
        """So many wake-ups were asked for, and no more come in a while."""
        until(lambda: len(self.outbox()) >= count, SLACK, f"{count} wake-ups, there are {len(self.outbox())}")
        time.sleep(0.5)
        expect(len(self.outbox()) == count, f"{len(self.outbox())} wake-ups were asked for, not {count}")

    def close(self) -> None:
        end(self.process)
        self._log.close()


class Device:
    """A device's process, and all that its app was handed: the example in Python, or our own client as `ferry listen`."""

    def __init__(
        self, gateway: Gateway, path: Path, name: str, *options: str, is_ours: bool = False, **times: float
    ) -> None:
        self.state = gateway.home / f"{name}.json"
        sets = [f"--set={key}={value}" for key, value in times.items()]
        program = [gateway.binary, "listen"] if is_ours else [sys.executable, "-B", str(HERE / "subject.py"), *sets]
        self._errors = open(gateway.home / f"{name}.log", "wb")
        self.process = subprocess.Popen(
            path.command(
                *program, "--server", f"{path.gateway_address}:{gateway.device_port}", "--app", gateway.app["appId"],
                "--state", str(self.state), "--device-token", "ab" * 32, "--environment", "sandbox", *options),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._errors, text=True,
            env={**os.environ, "FERRY_APP_SECRET": gateway.app["appSecret"]})
        self._seen: list[dict[str, Any]] = []
        self._next = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._seen.append(json.loads(line))

    def event(self, name: str, within: float = PATIENCE) -> dict[str, Any]:
        """The next event of this name; others before it are passed over."""
        def found() -> bool:
            while self._next < len(self._seen):
                self._next += 1
                if self._seen[self._next - 1]["event"] == name:
                    return True
            return False
        until(found, within, f"the device says {name}; it said {self._seen}")
        return self._seen[self._next - 1]

    def online(self, within: float = PATIENCE) -> str:
        """Waits until it is; answers its cid."""
        return self.event("online", within)["cid"]

    @property
    def payloads(self) -> list[tuple[str, bool]]:
        """What the app was handed, in order: text and `offLine`."""
        return [(e["payload"], e["offLine"]) for e in list(self._seen) if e["event"] == "payload"]

    def count(self, name: str) -> int:
        return sum(1 for e in list(self._seen) if e["event"] == name)

    def has(self, wanted: list[tuple[str, bool]], within: float = PATIENCE) -> None:
        """The app gets exactly this, in this order, each once."""
        try:
            until(lambda: len(self.payloads) >= len(wanted), within, "messages")
        except Failure:
            pass
        expect(self.payloads == wanted, f"the app was handed {self.payloads} and not {wanted}")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def close(self) -> None:
        end(self.process)
        self._errors.close()
