#!/usr/bin/env python3
"""Asks a live gateway what the tables ask, and compares the answers.

    run.py PATH-OF-FERRY [TABLE …]

Each file in `tables` is a list of rows, asked one after the other over one connection: `name`, `method`, `path`, and where
wanted `headers`, `body` (JSON), `raw` (a text, or a list of texts and `{"repeat": …, "times": …}`) or `hex`; `token`:
false sends none, `as: "news"` asks as the other app. `status` and `answer` are what must come, `answer_headers` what else
(null: not there). `wire` in place of a method is sent byte for byte over a connection of its own. What patterns
may say is in `matching.py`.
"""

from __future__ import annotations

import http.client
import json
import pathlib
import socket
import sys
from typing import Any, Optional

from gateway import APPS, PATIENCE_SECONDS, Failure, Gateway
from matching import Variables, difference

TABLES = pathlib.Path(__file__).resolve().parent / "tables"
JSON_TYPE = "application/json;charset=utf-8"


class Asker:
    """Asks rows over one connection that is kept open."""

    def __init__(self, gateway: Gateway, variables: Variables) -> None:
        self._gateway, self._variables = gateway, variables
        self._connection = http.client.HTTPConnection(gateway.host, gateway.port, timeout=PATIENCE_SECONDS)

    def close(self) -> None:
        self._connection.close()

    def ask(self, row: dict[str, Any]) -> Optional[str]:
        """What is wrong with the answer; None when nothing is."""
        status, headers, body = self._wire(row["wire"]) if "wire" in row else self._call(row)
        if status != row["status"]:
            return f"HTTP status {status} instead of {row['status']}: {body.decode(errors='replace')[:400]}"
        for name, wanted in row.get("answer_headers", {}).items():
            found = headers.get(name.lower())
            if wanted is None and found is not None:
                return f"header {name} is there: {found}"
            if wanted is not None and (wrong := difference(wanted, found, self._variables, f"header {name}")):
                return wrong
        if "answer" not in row:
            return None
        if row["answer"] is None:
            return f"a body: {body!r}" if body else None
        try:
            value = json.loads(body)
        except ValueError:
            return f"no JSON: {body[:400]!r}"
        return difference(row["answer"], value, self._variables)

    def _content(self, row: dict[str, Any]) -> Optional[bytes]:
        if "hex" in row:
            return bytes.fromhex(row["hex"])
        if "raw" in row:
            parts = row["raw"] if isinstance(row["raw"], list) else [row["raw"]]
            return "".join(
                self._variables.text(part["repeat"]) * part["times"] if isinstance(part, dict)
                else self._variables.text(part) for part in parts).encode()
        if "body" in row:
            return json.dumps(self._variables.value(row["body"])).encode()
        return None

    def _call(self, row: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        content = self._content(row)
        headers = {name: self._variables.text(text) for name, text in row.get("headers", {}).items() if text is not None}
        if row.get("token", True):
            headers.setdefault("token", self._variables.text(f"$token_{row.get('as', 'shop')}"))
        if content is not None:
            if "Content-Type" not in row.get("headers", {}):
                headers["Content-Type"] = JSON_TYPE
            headers["Content-Length"] = str(len(content))
        path = self._variables.text(row["path"])
        for attempt in range(2):
            try:
                self._connection.putrequest(row["method"], path, skip_accept_encoding=True)
                for name, text in headers.items():
                    self._connection.putheader(name, text)
                self._connection.endheaders(content)
                answer = self._connection.getresponse()
                body = answer.read()
                return answer.status, {name.lower(): text for name, text in answer.getheaders()}, body
            except (ConnectionError, http.client.RemoteDisconnected):
                # What was refused for its form ends the connection.
                self._connection.close()
                if attempt:
                    raise
        raise AssertionError("not reached")

    def _wire(self, text: str) -> tuple[int, dict[str, str], bytes]:
        address = (self._gateway.host, self._gateway.port)
        with socket.create_connection(address, timeout=PATIENCE_SECONDS) as peer:
            peer.sendall(self._variables.text(text).encode("latin-1"))
            answer = http.client.HTTPResponse(peer)
            answer.begin()
            return answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read()


def known(gateway: Gateway) -> dict[str, str]:
    """The variables that every table may use."""
    names = gateway.devices()
    for index, app in enumerate(APPS):
        timestamp = Variables({}).text("$now")
        connection = http.client.HTTPConnection(gateway.host, gateway.port, timeout=PATIENCE_SECONDS)
        connection.request("POST", f"/v2/{app['appId']}/auth", json.dumps({
            "sign": gateway.sign(timestamp, index), "timestamp": timestamp, "appkey": app["appKey"]}))
        names[f"token_{app['appId']}"] = json.loads(connection.getresponse().read())["data"]["token"]
        connection.close()
    timestamp = Variables({}).text("$now")
    return {**names, "app": "shop", "key": APPS[0]["appKey"], "timestamp": timestamp, "sign": gateway.sign(timestamp),
            "uppersign": gateway.sign(timestamp).upper(), "upper": names["cid"].upper(), "long": "x" * 50_000,
            "unknown": "0" * 32}


def run(gateway: Gateway, tables: list[pathlib.Path]) -> tuple[int, int]:
    """How many rows were asked, and how many were answered wrongly."""
    asked = wrong = 0
    names = known(gateway)
    for table in tables:
        asker = Asker(gateway, Variables(names))
        for row in json.loads(table.read_text(encoding="utf-8")):
            asked += 1
            if found := asker.ask(row):
                wrong += 1
                print(f"{table.name}: {row['name']}: {found}", file=sys.stderr)
        asker.close()
    return asked, wrong


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    tables = [TABLES / f"{name}.json" for name in sys.argv[2:]] or sorted(TABLES.glob("*.json"))
    with Gateway(sys.argv[1]) as gateway:
        try:
            asked, wrong = run(gateway, tables)
            if not gateway.process.is_alive():
                raise Failure("the gateway ended by itself")
        except Failure as failure:
            print(f"run.py: {failure}\n{gateway.words_of_log()}", file=sys.stderr)
            return 1
    print(f"conformance: {asked} rows of {len(tables)} tables, {wrong} answered wrongly", file=sys.stderr)
    return 1 if wrong or not asked else 0


if __name__ == "__main__":
    sys.exit(main())
