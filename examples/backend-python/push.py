#!/usr/bin/env python3
"""A backend for Ferry with nothing but the standard library: a small client, and a command line around it.

    push.py push CID 'Hello'      push.py all 'Hello'      push.py status CID CID …
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import json
import os
import secrets
import sys
import time
import urllib.parse
from dataclasses import dataclass
from typing import Any, Optional

TOKEN_INVALID = 10001
BUSY = 30019
RENEW_SECONDS = 60.0  # a token that ends this soon is not used any more


class FerryError(Exception):
    """The gateway refused; `code` and `message` are the API's."""

    def __init__(self, code: int, message: str, retry_after: Optional[float] = None) -> None:
        super().__init__(f"{message} (code {code})")
        self.code, self.message, self.retry_after = code, message, retry_after


@dataclass(frozen=True)
class Receipt:
    """An accepted message."""

    task_id: str
    was_online: bool


@dataclass(frozen=True)
class Status:
    """What the gateway knows of a device."""

    is_online: bool
    last_login: Optional[float]  # seconds since 1970


class FerryClient:
    """Talks to one gateway for one app over one connection that is kept open. Not for several threads at once."""

    def __init__(self, url: str, app_id: str, app_key: str, master_secret: str, timeout: float = 30.0) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no http or https URL")
        connection = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._http = connection(parts.hostname, parts.port, timeout=timeout)
        self._base = f"{parts.path.rstrip('/')}/v2/{urllib.parse.quote(app_id, safe='')}"
        self._app_key, self._master_secret = app_key, master_secret
        self._token, self._token_ends = "", 0.0

    def push(self, cid: str, payload: str, *, ttl: Optional[int] = None, ios: Optional[dict[str, Any]] = None,
             request_id: Optional[str] = None) -> Receipt:
        """Pushes to one device.

        `ttl` in milliseconds, −1 or 0 for "now or never"; `ios` is `push_channel.ios`. Whoever may have to repeat the
        call after a crash names a `request_id` of 10 to 32 characters: the repeat is then answered like the first.
        """
        body: dict[str, Any] = {
            "request_id": request_id or secrets.token_hex(16),
            "audience": {"cid": [cid]},
            "push_message": {"transmission": payload},
        }
        if ttl is not None:
            body["settings"] = {"ttl": ttl}
        if ios is not None:
            body["push_channel"] = {"ios": ios}
        data = self._authorized("POST", "/push/single/cid", body)
        task_id, results = next(iter(data.items()))
        return Receipt(task_id, results.get(cid.lower()) == "successed_online")

    def push_all(self, payload: str, *, ttl: Optional[int] = None, request_id: Optional[str] = None) -> str:
        """Pushes to every device of the app; answers the task's id. `ttl` and `request_id` as for one device."""
        body: dict[str, Any] = {
            "request_id": request_id or secrets.token_hex(16),
            "audience": "all",
            "push_message": {"transmission": payload},
        }
        if ttl is not None:
            body["settings"] = {"ttl": ttl}
        return str(self._authorized("POST", "/push/all", body)["taskid"])

    def status(self, cids: list[str]) -> dict[str, Status]:
        """Of at most 1,000 devices. Devices that the app does not have are not in the answer."""
        data = self._authorized("GET", "/user/status/" + ",".join(cids), None)
        return {
            cid: Status(entry["status"] == "online",
                        int(entry["last_login_time"]) / 1000 if "last_login_time" in entry else None)
            for cid, entry in data.items()
        }

    def revoke_token(self) -> None:
        """Ends the token that this client holds, if it holds one."""
        if self._token:
            self._call("DELETE", f"/auth/{self._token}", None, {})
            self._token = ""

    def close(self) -> None:
        self._http.close()

    def _authorized(self, method: str, path: str, body: Optional[dict[str, Any]]) -> dict[str, Any]:
        """One call with a token; a token that the gateway no longer takes is renewed once."""
        for attempt in range(2):
            if not self._token or time.time() > self._token_ends - RENEW_SECONDS:
                self._authenticate()
            try:
                return self._call(method, path, body, {"token": self._token})
            except FerryError as error:
                if error.code != TOKEN_INVALID or attempt > 0:
                    raise
                self._token = ""
        raise AssertionError("not reached")

    def _authenticate(self) -> None:
        timestamp = str(int(time.time() * 1000))
        signed = f"{self._app_key}{timestamp}{self._master_secret}".encode()
        data = self._call("POST", "/auth", {
            "sign": hashlib.sha256(signed).hexdigest(), "timestamp": timestamp, "appkey": self._app_key}, {})
        self._token, self._token_ends = data["token"], int(data["expire_time"]) / 1000

    def _call(self, method: str, path: str, body: Optional[dict[str, Any]], headers: dict[str, str]) -> dict[str, Any]:
        """One request and its answer's `data`. A connection that the gateway had closed meanwhile is opened again."""
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers = {**headers, "Content-Type": "application/json"}
        for attempt in range(2):
            is_fresh = self._http.sock is None
            try:
                self._http.request(method, self._base + path, content, headers)
                response = self._http.getresponse()
                text = response.read()
                break
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                # The body names its request_id, so a push that had arrived after all is not made twice.
                self._http.close()
                if is_fresh or attempt > 0:
                    raise
        try:
            answer = json.loads(text)
            code, message = int(answer["code"]), str(answer.get("msg", ""))
        except (ValueError, KeyError, TypeError) as error:
            raise FerryError(response.status, "the answer is not Ferry's") from error
        if code != 0:
            retry_after = response.getheader("Retry-After")
            raise FerryError(code, message, float(retry_after) if retry_after else None)
        return answer.get("data") or {}


def client_from_environment() -> FerryClient:
    names = ("FERRY_HTTP", "FERRY_APP", "FERRY_APP_KEY", "FERRY_MASTER_SECRET")
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        raise ValueError(f"not set in the environment: {', '.join(missing)}")
    url, app, key, secret = (os.environ[name] for name in names)
    return FerryClient(url, app, key, secret)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Pushes to a device, or asks about devices.",
        epilog="FERRY_HTTP, FERRY_APP, FERRY_APP_KEY and FERRY_MASTER_SECRET come from the environment.")
    commands = parser.add_subparsers(dest="command", required=True)
    push = commands.add_parser("push", help="pushes one message to one device")
    push.add_argument("cid")
    push.add_argument("payload")
    push.add_argument("--ttl", type=int, metavar="MS", help="how long to keep it; 0: now or never")
    push.add_argument("--title", help="title of an alert of its own, for a device that is offline")
    push.add_argument("--body", help="text of that alert")
    push.add_argument("--request-id", metavar="ID", help="10 to 32 characters; makes a repeat safe")
    everybody = commands.add_parser("all", help="pushes one message to every device of the app")
    everybody.add_argument("payload")
    everybody.add_argument("--ttl", type=int, metavar="MS", help="how long to keep it; 0: now or never")
    everybody.add_argument("--request-id", metavar="ID", help="10 to 32 characters; makes a repeat safe")
    status = commands.add_parser("status", help="says which devices are online")
    status.add_argument("cid", nargs="+")
    return parser.parse_args()


def main() -> int:
    options = parse()
    try:
        client = client_from_environment()
        if options.command == "push":
            alert = {name: text for name, text in (("title", options.title), ("body", options.body)) if text}
            receipt = client.push(
                options.cid, options.payload, ttl=options.ttl, ios={"aps": {"alert": alert}} if alert else None,
                request_id=options.request_id)
            print(json.dumps({"taskId": receipt.task_id, "online": receipt.was_online}))
        elif options.command == "all":
            print(json.dumps({
                "taskId": client.push_all(options.payload, ttl=options.ttl, request_id=options.request_id)}))
        else:
            for cid, status in client.status(options.cid).items():
                print(json.dumps({"cid": cid, "online": status.is_online, "lastLogin": status.last_login}))
        return 0
    except FerryError as error:
        hint = f"; try again in {error.retry_after:.0f} s" if error.code == BUSY and error.retry_after else ""
        print(f"push.py: the gateway refused: {error}{hint}", file=sys.stderr)
    except (OSError, http.client.HTTPException) as error:
        print(f"push.py: no answer from the gateway: {error}", file=sys.stderr)
    except ValueError as error:
        print(f"push.py: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
