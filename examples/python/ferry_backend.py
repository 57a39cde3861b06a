"""A client of Ferry's HTTP API, of every call of GeTui's REST v2 and of Ferry's own: one file, only the standard library.

    ferry = FerryBackend("http://127.0.0.1:7800", "app-…", "appKey", "masterSecret")
    receipt = ferry.push("0123456789abcdef0123456789abcdef", Message("Hello"))

One token for a day, renewed before it ends and once more when the gateway answers 10001. One connection that stays open, and is
opened again when the gateway has closed it. A call that meets a busy gateway (30019) is repeated when the answer says, with the
same `request_id`, so that nothing comes twice. An object is for one thread; make one for each.
"""
# Long because: it is one file to copy, with all calls.

from __future__ import annotations

import hashlib
import http.client
import json
import secrets
import time
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

TOKEN_INVALID = 10001
BUSY = 30019
RENEW_SECONDS = 60.0  # a token that ends this soon is not used any more
LONGEST_PAUSE = 60.0  # seconds; a gateway that wants a longer one is given up

JSON = dict[str, Any]


class FerryError(Exception):
    """The gateway refused; `code` and `message` are the API's, `status` is HTTP's, `retry_after` in seconds."""

    def __init__(self, code: int, message: str, status: int, retry_after: Optional[float] = None) -> None:
        super().__init__(f"{message} (code {code})")
        self.code, self.message, self.status, self.retry_after = code, message, status, retry_after


@dataclass(frozen=True)
class Message:
    """What is pushed. Exactly one of `transmission`, `notification`, `revoke`.

    `ttl` in milliseconds, −1 or 0 for "now or never"; `ios` is `push_channel.ios`; `settings` and `channels` are further members
    of `settings` and `push_channel` as the API has them.
    """

    transmission: Optional[str] = None
    ttl: Optional[int] = None
    ios: Optional[Mapping[str, Any]] = None
    notification: Optional[Mapping[str, Any]] = None
    revoke: Optional[str] = None
    """A task whose messages are to be taken back."""
    group_name: Optional[str] = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    channels: Mapping[str, Any] = field(default_factory=dict)

    def body(self, request_id: Optional[str]) -> JSON:
        """The members that all pushes have in common."""
        content: JSON = {}
        if self.transmission is not None:
            content["transmission"] = self.transmission
        if self.notification is not None:
            content["notification"] = dict(self.notification)
        if self.revoke is not None:
            content["revoke"] = {"old_task_id": self.revoke}
        body: JSON = {"request_id": request_id or new_request_id(), "push_message": content}
        settings = {**self.settings, **({} if self.ttl is None else {"ttl": self.ttl})}
        channels = {**self.channels, **({} if self.ios is None else {"ios": dict(self.ios)})}
        optional = {"settings": settings, "push_channel": channels, "group_name": self.group_name}
        return {**body, **{name: value for name, value in optional.items() if value}}


@dataclass(frozen=True)
class Receipt:
    """A message that was taken: it is on the gateway's disk."""

    task_id: str
    cid: str
    status: str

    @property
    def was_online(self) -> bool:
        return self.status == "successed_online"


@dataclass(frozen=True)
class Status:
    """What the gateway knows of a device."""

    is_online: bool
    last_login: Optional[float]
    """Seconds since 1970."""


@dataclass(frozen=True)
class Tag:
    """A condition of a push to tags: devices whose `key` is any, all or none of `values` (`opt_type` or, and, not)."""

    key: str
    values: Sequence[str]
    opt_type: str = "or"

    def body(self) -> JSON:
        return {"key": self.key, "values": list(self.values), "opt_type": self.opt_type}


@dataclass(frozen=True)
class DryRun:
    """Whom a push would be for."""

    devices: int
    online: int
    offline: int
    without_token: int
    """Of those that are offline."""
    muted: int
    blocked: int
    unknown: tuple[str, ...]


def new_request_id() -> str:
    """A name for a call that was never used before."""
    return secrets.token_hex(16)


class FerryBackend:
    """Talks to one gateway for one app."""

    def __init__(self, url: str, app_id: str, app_key: str, master_secret: str, *, timeout: float = 30.0,
                 busy_retries: int = 3, sleep: Callable[[float], None] = time.sleep) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no http or https URL")
        connection = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._http = connection(parts.hostname, parts.port, timeout=timeout)
        self._base, self._app = parts.path.rstrip("/"), _quoted(app_id)
        self._app_key, self._master_secret = app_key, master_secret
        self._token, self._token_ends = "", 0.0
        self._busy_retries, self._sleep = busy_retries, sleep

    def close(self) -> None:
        self._http.close()

    def revoke_token(self) -> None:
        """Ends the token that this client holds, if it holds one."""
        if self._token:
            self._call("DELETE", f"/v2/{self._app}/auth/{self._token}", None, {})
            self._token = ""

    # Push. Whoever may have to repeat a call after a crash names a `request_id` of 10 to 32 characters.

    def push(self, cid: str, message: Message, *, request_id: Optional[str] = None) -> Receipt:
        """To one device."""
        data = self._v2("POST", "/push/single/cid", {"audience": {"cid": [cid]}, **message.body(request_id)})
        return _receipts(data)[0]

    def push_alias(self, alias: str, message: Message, *, request_id: Optional[str] = None) -> list[Receipt]:
        """To each device behind an alias."""
        data = self._v2("POST", "/push/single/alias", {"audience": {"alias": [alias]}, **message.body(request_id)})
        return _receipts(data)

    def push_batch(self, pushes: Iterable[tuple[str, Message]], *, is_async: bool = False,
                   by_alias: bool = False) -> list[Receipt]:
        """Up to 200 messages, each for one device or, `by_alias`, for one alias. What was not taken is not among the receipts;
        `is_async` wants none."""
        kind = "alias" if by_alias else "cid"
        listed = [{"audience": {kind: [target]}, **message.body(None)} for target, message in pushes]
        return _receipts(self._v2("POST", f"/push/single/batch/{kind}", {"is_async": is_async, "msg_list": listed}))

    def create_list(self, message: Message, *, request_id: Optional[str] = None) -> str:
        """A content for `push_list`; answers its task."""
        return str(self._v2("POST", "/push/list/message", message.body(request_id))["taskid"])

    def push_list(self, task_id: str, targets: Sequence[str], *, is_async: bool = False,
                  by_alias: bool = False) -> list[Receipt]:
        """The task's content to up to 1,000 devices or aliases."""
        kind = "alias" if by_alias else "cid"
        body = {"audience": {kind: list(targets)}, "taskid": task_id, "is_async": is_async}
        return _receipts(self._v2("POST", f"/push/list/{kind}", body))

    def push_list_alias_detail(self, task_id: str, aliases: Sequence[str]) -> dict[str, dict[str, str]]:
        """As `push_list` by alias; answers each alias's devices and their statuses."""
        body = {"audience": {"alias": list(aliases)}, "taskid": task_id, "is_async": False, "need_alias_detail": True}
        data: dict[str, dict[str, str]] = self._v2("POST", "/push/list/alias", body).get(task_id, {})
        return data

    def push_all(self, message: Message, *, request_id: Optional[str] = None) -> str:
        """To every device of the app; answers the task."""
        return str(self._v2("POST", "/push/all", {"audience": "all", **message.body(request_id)})["taskid"])

    def push_tag(self, tags: Sequence[Tag], message: Message, *, request_id: Optional[str] = None) -> str:
        """To the devices that meet all conditions; answers the task."""
        audience = {"tag": [tag.body() for tag in tags]}
        return str(self._v2("POST", "/push/tag", {"audience": audience, **message.body(request_id)})["taskid"])

    def push_fast_custom_tag(self, tag: str, message: Message, *, request_id: Optional[str] = None) -> str:
        audience = {"fast_custom_tag": tag}
        return str(self._v2("POST", "/push/fast_custom_tag", {"audience": audience, **message.body(request_id)})["taskid"])

    # Tasks

    def stop_task(self, task_id: str) -> None:
        """What of a list, an `all` or a `tag` is not delivered yet is not delivered any more."""
        self._v2("DELETE", f"/task/{_quoted(task_id)}")

    def schedule(self, task_id: str) -> JSON:
        found: JSON = self._v2("GET", f"/task/schedule/{_quoted(task_id)}").get(task_id, {})
        return found

    def delete_schedule(self, task_id: str) -> None:
        self._v2("DELETE", f"/task/schedule/{_quoted(task_id)}")

    def task_detail(self, cid: str, task_id: str) -> list[dict[str, str]]:
        """What happened to the task's message at a device: `time` and `event`."""
        data = self._v2("GET", f"/task/detail/{_quoted(cid)}/{_quoted(task_id)}")
        found: list[dict[str, str]] = data.get("detail") or data.get("deatil") or []
        return found

    # Users

    def bind_aliases(self, aliases: Iterable[tuple[str, str]]) -> None:
        """Up to 1,000 pairs of a device and its alias."""
        self._v2("POST", "/user/alias", {"data_list": [{"cid": cid, "alias": alias} for cid, alias in aliases]})

    def unbind_aliases(self, aliases: Iterable[tuple[str, str]]) -> None:
        self._v2("DELETE", "/user/alias", {"data_list": [{"cid": cid, "alias": alias} for cid, alias in aliases]})

    def unbind_alias(self, alias: str) -> None:
        """From all its devices."""
        self._v2("DELETE", f"/user/alias/{_quoted(alias)}")

    def alias_of(self, cid: str) -> Optional[str]:
        return self._v2("GET", f"/user/alias/cid/{_quoted(cid)}").get("alias") or None

    def cids_of(self, alias: str) -> list[str]:
        return list(self._v2("GET", f"/user/cid/alias/{_quoted(alias)}").get("cid") or [])

    def set_tags(self, cid: str, tags: Sequence[str]) -> None:
        """In place of all tags that the device has."""
        self._v2("POST", f"/user/custom_tag/cid/{_quoted(cid)}", {"custom_tag": list(tags)})

    def tags_of(self, cid: str) -> list[str]:
        data = self._v2("GET", f"/user/custom_tag/cid/{_quoted(cid)}")
        return [tag for joined in data.get(cid.lower(), []) for tag in joined.split(" ") if tag]

    def add_tag(self, tag: str, cids: Sequence[str]) -> dict[str, bool]:
        """To up to 1,000 devices; answers for which it was done."""
        return _truths(self._v2("PUT", f"/user/custom_tag/batch/{_quoted(tag)}", {"cid": list(cids)}))

    def remove_tag(self, tag: str, cids: Sequence[str]) -> dict[str, bool]:
        return _truths(self._v2("DELETE", f"/user/custom_tag/batch/{_quoted(tag)}", {"cid": list(cids)}))

    def block(self, cids: Sequence[str]) -> None:
        """Nothing is sent to these devices any more."""
        self._v2("POST", f"/user/black/cid/{_joined(cids)}")

    def unblock(self, cids: Sequence[str]) -> None:
        self._v2("DELETE", f"/user/black/cid/{_joined(cids)}")

    def status(self, cids: Sequence[str]) -> dict[str, Status]:
        """Of at most 1,000 devices. Devices that the app does not have are not in the answer."""
        data = self._v2("GET", f"/user/status/{_joined(cids)}")
        return {cid: Status(entry["status"] == "online", _seconds(entry.get("last_login_time")))
                for cid, entry in data.items()}

    def device_status(self, cids: Sequence[str]) -> dict[str, JSON]:
        return self._v2("GET", f"/user/deviceStatus/{_joined(cids)}")

    def user_detail(self, cids: Sequence[str]) -> JSON:
        """`validCids`, by device, and `invalidCids`."""
        return self._v2("GET", f"/user/detail/{_joined(cids)}")

    def set_badge(self, cids: Sequence[str], badge: str) -> None:
        """`badge` like "+1", "-1" or "5"."""
        self._v2("POST", f"/user/badge/cid/{_joined(cids)}", {"badge": badge})

    def count(self, tags: Sequence[Tag]) -> int:
        """How many devices meet all conditions."""
        return int(self._v2("POST", "/user/count", {"tag": [tag.body() for tag in tags]})["user_count"])

    # Reports

    def report(self, task_ids: Sequence[str], *, actions: Sequence[str] = ()) -> dict[str, JSON]:
        """Counters of up to 200 tasks, by task and channel."""
        query = f"?actionIdList={_joined(actions)}" if actions else ""
        return self._v2("GET", f"/report/push/task/{_joined(task_ids)}{query}")

    def report_detail(self, task_ids: Sequence[str]) -> dict[str, JSON]:
        """The same, and what was lost at which stage."""
        return self._v2("GET", f"/report/push/task/{_joined(task_ids)}/detail")

    def report_group(self, group: str) -> dict[str, JSON]:
        return self._v2("GET", f"/report/push/task_group/{_quoted(group)}")

    def report_day(self, day: str) -> dict[str, JSON]:
        """`day` like 2026-11-30."""
        return self._v2("GET", f"/report/push/date/{_quoted(day)}")

    def report_users(self, day: str) -> dict[str, JSON]:
        return self._v2("GET", f"/report/user/date/{_quoted(day)}")

    def push_count(self) -> dict[str, JSON]:
        return self._v2("GET", "/report/push/count")

    def online_curve(self) -> dict[float, int]:
        """How many devices were online within the last 24 hours, by seconds since 1970."""
        points = self._v2("GET", "/report/online_user").get("online_statics", {})
        return {int(time) / 1000: int(count) for time, count in points.items()}

    # What GeTui has no word for

    def push_bytes(self, cids: Sequence[str], payload: bytes, *, ttl: Optional[int] = None,
                   request_id: Optional[str] = None) -> list[Receipt]:
        """Bytes to up to 1,000 devices; those that were not taken are not among the receipts."""
        query = {"cid": ",".join(cids), **({} if ttl is None else {"ttl": str(ttl)})}
        data = self._authorized("POST", f"/v1/{self._app}/push?{urllib.parse.urlencode(query)}", payload, {
            "Content-Type": "application/octet-stream", "Idempotency-Key": request_id or new_request_id()})
        return [Receipt(entry["taskid"], entry["cid"], f"successed_{entry['status']}") for entry in data["messages"]]

    def dry_run(self, cids: Optional[Sequence[str]] = None, *, tags: Sequence[Tag] = ()) -> DryRun:
        """Whom a push would be for: to these devices, by these conditions, or to all devices of the app."""
        audience: Any = {"tag": [tag.body() for tag in tags]} if tags else "all" if cids is None else {"cid": list(cids)}
        data = self._v1("POST", "/push", {"dry_run": True, "audience": audience})
        return DryRun(data["devices"], data["online"], data["offline"], data["without_token"], data["muted"],
                      data["blocked"], tuple(data["unknown"]))

    def device(self, cid: str) -> JSON:
        """A device as it is now."""
        return self._v1("GET", f"/devices/{_quoted(cid)}")

    def set_profile(self, cid: str, *, phone_type: Optional[str] = None, region: Optional[str] = None,
                    phone_model: Optional[str] = None, notifications: Optional[bool] = None) -> None:
        """What is left out stays as it was; an empty text takes it back."""
        body = {"phone_type": phone_type, "region": region, "phone_model": phone_model, "notifications": notifications}
        self._v1("PUT", f"/devices/{_quoted(cid)}/profile", {name: value for name, value in body.items() if value is not None})

    def erase(self, cid: str) -> None:
        """A device and all that is known of it."""
        self._v1("DELETE", f"/devices/{_quoted(cid)}")

    def timeline(self, cid: str, message: Optional[str] = None) -> JSON:
        """What happened at a device; of one message, named by its task or its own id, when that is given."""
        if message is None:
            return self._v1("GET", f"/devices/{_quoted(cid)}/timeline")
        return self._v1("GET", f"/messages/{_quoted(message)}?cid={_quoted(cid)}")

    # HTTP

    def _v2(self, method: str, path: str, body: Optional[JSON] = None) -> JSON:
        return self._authorized(method, f"/v2/{self._app}{path}", body)

    def _v1(self, method: str, path: str, body: Optional[JSON] = None) -> JSON:
        return self._authorized(method, f"/v1/{self._app}{path}", body)

    def _authorized(self, method: str, path: str, body: Optional[JSON | bytes],
                    headers: Optional[dict[str, str]] = None) -> JSON:
        """One call with a token, repeated where that makes sense: the body stays the same, and with it the request_id."""
        has_renewed, busy = False, 0
        while True:
            if not self._token or time.time() > self._token_ends - RENEW_SECONDS:
                self._authenticate()
            try:
                return self._call(method, path, body, {**(headers or {}), "token": self._token})
            except FerryError as error:
                pause = error.retry_after or 1.0
                if error.code == TOKEN_INVALID and not has_renewed:
                    has_renewed, self._token = True, ""
                elif error.code == BUSY and busy < self._busy_retries and pause <= LONGEST_PAUSE:
                    busy += 1
                    self._sleep(pause)
                else:
                    raise

    def _authenticate(self) -> None:
        timestamp = str(int(time.time() * 1000))
        signed = f"{self._app_key}{timestamp}{self._master_secret}".encode()
        data = self._call("POST", f"/v2/{self._app}/auth", {
            "sign": hashlib.sha256(signed).hexdigest(), "timestamp": timestamp, "appkey": self._app_key}, {})
        self._token, self._token_ends = data["token"], int(data["expire_time"]) / 1000

    def _call(self, method: str, path: str, body: Optional[JSON | bytes], headers: dict[str, str]) -> JSON:
        """One request and its answer's `data`. A connection that the gateway had closed meanwhile is opened again."""
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if content is not None:
            headers = {"Content-Type": "application/json;charset=utf-8", **headers}
        for attempt in range(2):
            is_fresh = self._http.sock is None
            try:
                self._http.request(method, self._base + path, content, headers)
                response = self._http.getresponse()
                text = response.read()
                break
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                # A push names its request_id, so one that had arrived after all is not made twice.
                self._http.close()
                if is_fresh or attempt > 0:
                    raise
        try:
            answer = json.loads(text)
            code, message = int(answer["code"]), str(answer.get("msg", ""))
        except (ValueError, KeyError, TypeError) as error:
            raise FerryError(response.status, "the answer is not Ferry's", response.status) from error
        if code != 0:
            retry_after = response.getheader("Retry-After")
            raise FerryError(code, message, response.status, float(retry_after) if retry_after else None)
        data: JSON = answer.get("data") or {}
        return data


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def _joined(texts: Sequence[str]) -> str:
    return ",".join(_quoted(text) for text in texts)


def _receipts(data: JSON) -> list[Receipt]:
    return [Receipt(task, cid, status) for task, devices in data.items() if task != "not_accepted"
            for cid, status in devices.items()]


def _truths(data: JSON) -> dict[str, bool]:
    return {cid: str(truth).lower() == "true" for cid, truth in data.items()}


def _seconds(milliseconds: Optional[str]) -> Optional[float]:
    return int(milliseconds) / 1000 if milliseconds else None
