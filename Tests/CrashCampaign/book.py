"""What was posted, answered and handed over, and what must be true of it. Naive on purpose."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

MESSAGE_CAP = 250
WINDOW = 64
POSTS_A_ROUND = 100  # two rounds' worth stays below the cap, even where the acknowledgements of one were lost
FLOOD_A_ROUND = 400


class Violation(Exception):
    """A promise was broken."""


@dataclass
class Message:
    """One push of a backend. Times are monotonic; `answered_life` is the gateway's life that said yes."""

    uid: str
    ttl: Optional[int]
    first_sent: float = 0.0
    answered: float = 0.0
    answered_life: int = 0
    task: str = ""  # a link tells none
    handed: bool = False
    handed_life: int = 0
    handed_task: str = ""
    handed_offline: bool = False

    @property
    def must_come(self) -> bool:
        """It neither expires within a campaign nor is live only."""
        return self.ttl is None


@dataclass
class Mailbox:
    """What one device was sent. It survives everything, as an app's storage does."""

    name: str
    flooded: bool
    messages: dict[str, Message] = field(default_factory=dict)  # of this round
    order: list[Message] = field(default_factory=list)  # of this round, as handed over
    past: set[str] = field(default_factory=set)  # handed over, or gone, in earlier rounds
    by_seq: dict[int, str] = field(default_factory=dict)  # message id or "gap" by seq, over all rounds
    last_seq: int = 0
    gaps_told: int = 0
    missing: int = 0
    may_expire: bool = False
    posts: int = 0

    def post(self, message: Message) -> None:
        self.messages[message.uid] = message
        self.posts += 1
        self.may_expire = self.may_expire or message.ttl is not None

    @property
    def has_room(self) -> bool:
        return self.posts < (FLOOD_A_ROUND if self.flooded else POSTS_A_ROUND)

    def is_repeat(self, seq: int, what: str) -> bool:
        """Whether this device has it already. A number stands for one thing for ever."""
        if seq > self.last_seq:
            return False
        known = self.by_seq.get(seq)
        if known is None:
            raise Violation(f"{self.name}: seq {seq} comes for the first time behind seq {self.last_seq}: a message was "
                            "overtaken, or an acknowledged number was given out again")
        if known != what and "gap" not in (known, what):
            raise Violation(f"{self.name}: seq {seq} was message {known} and now is {what}")
        return True

    def hand(self, seq: int, msgid: str, uid: str, task: str, offline: bool, life: int,
             attached_since: Optional[float]) -> None:
        message = self.messages.get(uid)
        if message is None:
            what = "handed over twice, or after it was told to be gone" if uid in self.past else "never posted"
            raise Violation(f"{self.name}: seq {seq}: message {uid} was {what}")
        if message.handed:
            raise Violation(f"{self.name}: message {uid} was handed over twice, now as seq {seq}")
        message.handed, message.handed_life, message.handed_task = True, life, task
        message.handed_offline = offline
        self.by_seq[seq] = msgid
        self.last_seq = seq
        self.order.append(message)
        if offline and attached_since is not None and attached_since < message.first_sent:
            raise Violation(f"{self.name}: message {uid} says offLine, and the device was attached all the time")

    def hear_of_gap(self, seq: int, count: int, reasons: list[tuple[int, int]]) -> None:
        self.by_seq[seq] = "gap"
        self.last_seq = seq
        self.gaps_told += count
        for reason, _ in reasons:
            if not (self.flooded if reason == 2 else self.may_expire if reason == 1 else False):
                raise Violation(f"{self.name}: a gap at seq {seq} for reason {reason}, which nothing was posted for")

    def open_ends(self) -> int:
        """How many messages must still come or be told to be gone."""
        waiting = [m for m in self.messages.values() if not m.handed and m.ttl != 0]
        certain = 0 if self.flooded else sum(m.must_come for m in waiting)
        return max(certain, self.missing + len(waiting) - self.gaps_told)

    def close_round(self) -> None:
        """All is drained: judges this round's messages and begins another."""
        newest_send = 0.0
        for message in self.order:
            if message.answered < newest_send:
                raise Violation(f"{self.name}: message {message.uid} was answered before another was posted that came "
                                "before it")
            newest_send = max(newest_send, message.first_sent)
            if message.task and message.handed_task != message.task:
                raise Violation(f"{self.name}: message {message.uid} came as task {message.handed_task}, and was "
                                f"answered as {message.task}")
            if message.answered_life < message.handed_life and not message.handed_offline:
                raise Violation(f"{self.name}: message {message.uid} waited over a kill without offLine")
        missing = [m for m in self.messages.values() if not m.handed and m.ttl != 0]
        for message in missing:
            later = sum(m.answered >= message.first_sent for m in self.messages.values()) - 1
            if message.must_come and not (self.flooded and later >= MESSAGE_CAP - WINDOW):
                raise Violation(f"{self.name}: message {message.uid}, answered with success, was lost")
        self.missing += len(missing)
        if self.missing > self.gaps_told:
            raise Violation(f"{self.name}: {self.missing} messages are gone, and gaps told of {self.gaps_told}")
        self.past.update(self.messages)
        self.messages, self.order, self.posts = {}, [], 0


@dataclass
class World:
    """What all tasks of a campaign share."""

    app: dict[str, str]
    life: int = 0
    device_port: int = 0
    http_port: int = 0
    link_port: int = 0
    is_up: bool = False
    is_draining: bool = False
    is_over: bool = False
    violation: str = ""
    figures: dict[str, int] = field(default_factory=lambda: dict.fromkeys(
        ("kills", "accepted", "handed", "repeats", "gaps", "retries", "busy", "logins", "cut"), 0))

    def count(self, name: str, by: int = 1) -> None:
        self.figures[name] += by

    async def guard(self, body: Callable[[], Any]) -> None:
        """Runs a task; a violation in it ends the campaign."""
        try:
            await body()
        except Violation as violation:
            self.violation = self.violation or str(violation)


def now() -> float:
    return time.monotonic()
