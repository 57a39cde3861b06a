#!/usr/bin/env python3
"""The example's device with shorter times, and with bad habits.

    subject.py [--set=NAME=SECONDS …] [--trickle | --trickle-and-talk] OPTIONS-OF-device.py
"""

from __future__ import annotations

import pathlib
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples/device-python"))
import device  # noqa: E402


class Trickle(device.Link):
    """Once it is welcomed it reads one byte a second."""

    talks = False

    def __init__(self, sock: socket.socket, wake: socket.socket) -> None:
        super().__init__(sock, wake)
        # A full receive buffer makes the kernel drop whole segments, acknowledgements with them, and hold up what is sent.
        if not self.talks:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        self._began = time.monotonic()

    def receive(self, until: float) -> None:
        if time.monotonic() < self._began + 0.5:
            super().receive(min(until, self._began + 0.5))
            return
        for _ in range(4):
            time.sleep(0.25)
            if self.talks:
                self.send("ping")
        try:
            data = self._sock.recv(1)
        except OSError as error:
            raise device.Lost(str(error)) from error
        if not data:
            raise device.Lost("the gateway ended the connection")
        self._splitter.feed(data)


def main() -> int:
    device.PONG_SECONDS = 1.5
    device.HANDSHAKE_SECONDS = 2.0
    device.BACK_OFF_FIRST_SECONDS = 0.2
    device.BACK_OFF_MAXIMUM_SECONDS = 0.5
    device.ACK_DELAY_SECONDS = 0.1
    rest: list[str] = []
    for argument in sys.argv[1:]:
        if argument.startswith("--set="):
            name, _, value = argument.removeprefix("--set=").partition("=")
            assert hasattr(device, name), name
            setattr(device, name, float(value))
        elif argument in ("--trickle", "--trickle-and-talk"):
            device.Link = Trickle
            Trickle.talks = argument == "--trickle-and-talk"
        else:
            rest.append(argument)
    sys.argv[1:] = rest
    return device.main()


if __name__ == "__main__":
    sys.exit(main())
