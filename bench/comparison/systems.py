"""The systems that are compared: how each is started, stopped, and put under load. Each run has a fresh one."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from comparison import machine


def stop(message: str) -> None:
    sys.exit("bench/run: " + message)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server of its own for one run; its data folder goes with it.

    A subclass sets `device` and `publisher`, the ports, and starts `process`.
    """

    name = ""
    about = ""

    def __init__(self, executables: dict[str, str], **configuration: object) -> None:
        self.executables = executables
        self.configuration = configuration
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ferry-bench-", dir=os.environ.get("FERRY_BENCH_DIR")))
        self.log = open(self.folder / "log", "w+")
        self.process: subprocess.Popen | None = None
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise

    def start(self) -> None:
        raise NotImplementedError

    def spawn(self, *command: object) -> None:
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)

    def failed(self) -> None:
        self.log.seek(0)
        stop(f"{self.name} did not start:\n" + self.log.read())

    def ready_line(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            self.failed()
        return json.loads(line)

    def spawn_listening(self, command) -> None:
        """For servers that cannot choose a free port themselves: another program may take it first, then once more."""
        for _ in range(5):
            self.device = self.publisher = free_port()
            self.log.truncate(0)
            self.process = subprocess.Popen([str(word) for word in command(self.device)], stdin=subprocess.DEVNULL,
                                            stdout=self.log, stderr=self.log)
            for _ in range(500):
                if self.process.poll() is not None:
                    break
                try:
                    socket.create_connection(("127.0.0.1", self.device), 1).close()
                    return
                except OSError:
                    time.sleep(0.01)
            self.end()
        self.failed()

    def end(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        if self.process is not None and self.process.stdout is not None:
            self.process.stdout.close()
        self.log.close()
        shutil.rmtree(self.folder)

    def command(self) -> list[str]:
        return [self.executables["load"], "--system", self.name, "--device-port", self.device, "--publisher-port",
                self.publisher, "--server-pid", self.process.pid]

    def measure(self, options: list[object]) -> dict:
        """What one run of the load says; stops the bench when it lost something."""
        pid = self.process.pid
        before = machine.processor_seconds(pid)
        done = subprocess.run([str(word) for word in [*self.command(), *options]], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            stop(f"the load of {self.name} ended with status {done.returncode}:\n{done.stderr[-2000:]}")
        after = machine.processor_seconds(pid)
        result = json.loads(done.stdout)
        parts = [result[part] for part in ("without", "with", "fill") if part in result] or [result]
        if result["lost"] or result["devicesLost"] or any(part.get("refused") for part in parts):
            stop(f"{self.name} lost something and the run is not a measurement: {done.stdout}{done.stderr[-2000:]}")
        others = (after[0] - before[0]) - (after[1] - before[1])
        result["othersShare"] = max(0.0, others) / max(1e-9, after[2] - before[2])
        return result


class Floor(Server):
    name = "floor"
    about = "bench/floor: append and sync of each batch, then send; no protocol"

    def start(self) -> None:
        # Room for the devices of any scenario, and for all that one keeps: only what has been delivered is written over.
        self.spawn(self.executables["floor"], self.folder / "log.data", 100_000, 128)
        ready = self.ready_line()
        self.device, self.publisher = (ready[port].rsplit(":", 1)[1] for port in ("device", "publisher"))


class Ferry(Server):
    name = "ferry"
    about = "single pushes over HTTP; synced, acknowledged"

    def start(self) -> None:
        (self.folder / "config.json").write_text(json.dumps(self.configuration))
        self.serve()

    def serve(self) -> float:
        """Seconds from the command to its ready line."""
        began = time.monotonic()
        self.spawn(self.executables["ferry"], "serve", "--config", self.folder / "config.json", "--data",
                   self.folder / "data", "--device-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--backend-listen", "127.0.0.1:0")
        self.ready = self.ready_line()
        return time.monotonic() - began

    def start_again(self) -> dict:
        """After `kill -9`: seconds to ready, and bytes of memory then."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        seconds = self.serve()
        return {"secondsToReady": seconds, "rssAnonBytes": machine.resident(self.process.pid)}

    def command(self) -> list[str]:
        return [self.executables["ferry"], "bench", "--server", self.ready["device"], "--http",
                "http://" + self.ready["http"], "--apps", self.folder / "data.apps.json", "--gateway-pid",
                self.process.pid, "--link", self.ready["backend"]]


class Mosquitto(Server):
    name = "mosquitto"
    about = "MQTT 3.1.1, QoS 1, persistent sessions; nothing synced: memory until its autosave"

    def start(self) -> None:
        program = machine.executable("mosquitto")
        # Started as root it would become another user, who may not write here.
        user = "user root\n" if os.getuid() == 0 else ""

        def command(port: int) -> list[object]:
            (self.folder / "mosquitto.conf").write_text(
                f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence true\nset_tcp_nodelay true\n"
                f"persistence_location {self.folder}/\nlog_type error\n{user}")
            return [program, "-c", self.folder / "mosquitto.conf"]

        self.spawn_listening(command)


class Nats(Server):
    name = "nats"
    about = "core NATS; devices reply to the backend; nothing kept"

    def start(self) -> None:
        program = machine.executable("nats-server")
        self.spawn_listening(lambda port: [program, "-a", "127.0.0.1", "-p", port])


class Redis(Server):
    name = "redis"
    about = "pub/sub; no acknowledgement, nothing kept"
    options = ["--appendonly", "no"]

    def start(self) -> None:
        program = machine.executable("redis-server")
        # Devices come from many loopback addresses, which protected mode takes for strangers.
        self.spawn_listening(lambda port: [
            program, "--port", port, "--bind", "127.0.0.1", "--protected-mode", "no", "--save", "", "--maxclients",
            "19900", "--dir", self.folder, *self.options])


class RedisStreams(Redis):
    name = "redis-streams"
    about = "a stream for each device; XACK and XDEL; synced (appendfsync always)"
    options = ["--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"]


SYSTEMS = {system.name: system for system in (Floor, Ferry, Mosquitto, Nats, Redis, RedisStreams)}
