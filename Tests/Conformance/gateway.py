"""A gateway of its own for tests of its HTTP API: two apps, and a few devices in every state that the API tells apart."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading
import time
from types import TracebackType
from typing import Any, Optional

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 30.0
APPS: list[dict[str, Any]] = [
    {"appId": "shop", "appKey": "key-of-shop", "appSecret": "secret-of-shop", "masterSecret": "master-of-shop",
     "apns": {"topic": "com.example.shop", "environment": "sandbox"}},
    {"appId": "news", "appKey": "key-of-news", "appSecret": "secret-of-news", "masterSecret": "master-of-news"},
]


class Failure(Exception):
    """What was expected did not happen."""


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
        """The next line that is this event; others before it are skipped."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty as error:
                raise Failure(f"{self.name} did not say {name} within {PATIENCE_SECONDS:.0f} s") from error
            if line is None:
                raise Failure(f"{self.name} ended; expected: {name}")
            event: dict[str, Any] = json.loads(line)
            if event.get("event") == name:
                return event

    def is_alive(self) -> bool:
        return self._child.poll() is None

    def stop(self) -> int:
        """By TERM; answers the exit status."""
        self._child.terminate()
        return self._child.wait(timeout=PATIENCE_SECONDS)

    def end(self) -> None:
        if self.is_alive():
            self._child.kill()
            self._child.wait()


class Gateway:
    """A gateway in a temporary folder. Use it in a `with`."""

    def __init__(self, ferry: str, configuration: Optional[dict[str, Any]] = None) -> None:
        self._ferry = str(pathlib.Path(ferry).resolve())
        self._configuration = configuration or {}
        self._room = tempfile.TemporaryDirectory(prefix="ferry-conformance-")
        self.folder = pathlib.Path(self._room.name)
        self.log = self.folder / "stderr.log"
        self._processes: list[Process] = []
        self.http = ""
        self._device_address = ""

    def __enter__(self) -> Gateway:
        (self.folder / "apps.json").write_text(json.dumps(APPS), encoding="utf-8")
        (self.folder / "config.json").write_text(json.dumps(self._configuration), encoding="utf-8")
        self.process = self._start("ferry serve", [
            self._ferry, "serve", "--config", str(self.folder / "config.json"), "--data", str(self.folder / "data"),
            "--apps", str(self.folder / "apps.json"), "--device-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0",
            "--backend-listen", "127.0.0.1:0", "--shards", "2"])
        try:
            ready = self.process.event("ready")
        except Failure as failure:
            raise Failure(f"{failure}\n{self.words_of_log()}") from failure
        self.http, self._device_address = ready["http"], ready["device"]
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        for process in self._processes:
            process.end()
        self._room.cleanup()

    def _start(self, name: str, command: list[str], environment: Optional[dict[str, str]] = None) -> Process:
        process = Process(name, command, self.log, environment or {})
        self._processes.append(process)
        return process

    @property
    def host(self) -> str:
        return self.http.rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self.http.rpartition(":")[2])

    def device(self, state: str, *options: str, app: int = 0) -> tuple[str, Process]:
        """A device that registers, or comes back when its state is there; answers its cid once it is online."""
        command = [
            sys.executable, "-B", str(ROOT / "examples/device-python/device.py"), "--server", self._device_address,
            "--app", APPS[app]["appId"], "--state", str(self.folder / f"{state}.json"), *options]
        process = self._start(f"device {state}", command, {"FERRY_APP_SECRET": APPS[app]["appSecret"]})
        return str(process.event("online")["cid"]), process

    def devices(self) -> dict[str, str]:
        """The cids of one device online, one offline with a push token, one offline without, one of another app."""
        cids = {}
        cids["cid"], self.online = self.device("online")
        cids["offline"], process = self.device("offline", "--device-token", "ab" * 32, "--environment", "sandbox")
        process.stop()
        cids["tokenless"], process = self.device("tokenless")
        process.stop()
        cids["foreign"], process = self.device("foreign", app=1)
        process.stop()
        return cids

    @staticmethod
    def sign(timestamp: str, app: int = 0) -> str:
        signed = f"{APPS[app]['appKey']}{timestamp}{APPS[app]['masterSecret']}"
        return hashlib.sha256(signed.encode()).hexdigest()

    def words_of_log(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")
