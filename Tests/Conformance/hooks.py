"""Brings names that exist into generated calls: what is all random is refused at the door."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import schemathesis

CIDS = os.environ["FERRY_FUZZ_CIDS"].split(",")


def _dice(value: Any, sides: int) -> int:
    """The same for the same value, so that a failure comes again."""
    return hashlib.sha256(repr(value).encode()).digest()[0] % sides


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    path = case.path_parameters
    dice = _dice((path, case.query, case.body), 8)
    if isinstance(path, dict):
        if "appId" in path and dice:
            path["appId"] = "shop"
        for name in ("cid", "cids"):
            if name in path and dice > 2:
                path[name] = CIDS[dice % len(CIDS)]
    if isinstance(case.query, dict) and isinstance(case.query.get("cid"), str) and dice > 1:
        case.query["cid"] = CIDS[dice % len(CIDS)]
    if isinstance(case.body, (dict, list)) and dice > 1:
        case.body = _named(case.body)


def _named(value: Any) -> Any:
    """The same with devices that are there in place of those that are made up."""
    if isinstance(value, list):
        return [_named(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = {}
    for name, item in value.items():
        if name == "cid" and isinstance(item, list) and item and all(isinstance(text, str) for text in item):
            item = [CIDS[_dice((index, text), len(CIDS))] for index, text in enumerate(item)]
        elif name == "cid" and isinstance(item, str):
            item = CIDS[_dice(item, len(CIDS))]
        else:
            item = _named(item)
        named[name] = item
    return named
