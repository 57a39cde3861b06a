#!/usr/bin/env python3
"""A command line around `ferry_backend.py`.

    push.py push CID 'Hello'      push.py all 'Hello'      push.py status CID CID …
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import sys

from ferry_backend import BUSY, FerryBackend, FerryError, Message


def client_from_environment() -> FerryBackend:
    names = ("FERRY_HTTP", "FERRY_APP", "FERRY_APP_KEY", "FERRY_MASTER_SECRET")
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        raise ValueError(f"not set in the environment: {', '.join(missing)}")
    url, app, key, secret = (os.environ[name] for name in names)
    return FerryBackend(url, app, key, secret)


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
                options.cid, Message(options.payload, options.ttl, {"aps": {"alert": alert}} if alert else None),
                request_id=options.request_id)
            print(json.dumps({"taskId": receipt.task_id, "online": receipt.was_online}))
        elif options.command == "all":
            task = client.push_all(Message(options.payload, options.ttl), request_id=options.request_id)
            print(json.dumps({"taskId": task}))
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
