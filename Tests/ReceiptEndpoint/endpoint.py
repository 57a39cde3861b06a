#!/usr/bin/env python3
"""An endpoint for receipts, as tests want it: it answers as it is told to and prints what it got.

Usage: endpoint.py [--port N] [--tls CERTIFICATE KEY]
Prints one line of JSON with its port, then one for each request: its path, its lines, and how it was answered. Commands
come on stdin, one a line: `status N` answers with that status, `hang` never answers, `garbage` answers what is no HTTP,
`hangup` closes without an answer, `redirect URL` sends the client elsewhere, `slow SECONDS` answers late, `body` answers
with 200 and a body that never ends, `head` with 200 and a head that never ends, `drip` with a few bytes of a body now and then.
"""

from __future__ import annotations

import argparse
import json
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

mode = ["status", "200"]
writing = threading.Lock()


def say(value: dict) -> None:
    with writing:
        print(json.dumps(value), flush=True)


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Without it, an answer in two writes waits for the client's delayed acknowledgement.
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        how = list(mode)
        said = {
            "path": self.path, "type": self.headers.get("Content-Type"), "peer": self.client_address[1],
            "lines": body.decode("utf-8").splitlines(), "answer": " ".join(how),
        }
        if how[0] == "hang":
            say(said)
            time.sleep(3600)
        elif how[0] == "hangup":
            say(said)
            self.close_connection = True
        elif how[0] == "garbage":
            say(said)
            self.wfile.write(b"\x00\x01 this is no answer\r\n\r\n")
            self.close_connection = True
        elif how[0] in ("body", "head", "drip"):
            say(said)
            self.close_connection = True
            self.flood(how[0])
        else:
            if how[0] == "slow":
                time.sleep(float(how[1]))
            status = int(how[1]) if how[0] == "status" else 302 if how[0] == "redirect" else 200
            # First said, then answered: who waits for the lines knows that the answer is on its way.
            say(said)
            self.send_response(status)
            if how[0] == "redirect":
                self.send_header("Location", how[1])
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

    def flood(self, what: str) -> None:
        try:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            if what == "head":
                while True:
                    self.wfile.write(b"X-More: " + b"x" * 1000 + b"\r\n")
            self.wfile.write(b"Transfer-Encoding: chunked\r\n\r\n")
            while True:
                self.wfile.write(b"3e8\r\n" + b"x" * 1000 + b"\r\n" if what == "body" else b"1\r\nx\r\n")
                if what == "drip":
                    time.sleep(0.02)
        except OSError:
            pass

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--host", default="127.0.0.1")
    arguments.add_argument("--port", type=int, default=0)
    arguments.add_argument("--tls", nargs=2)
    options = arguments.parse_args()
    server = ThreadingHTTPServer((options.host, options.port), Endpoint)
    server.daemon_threads = True
    if options.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*options.tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    say({"port": server.server_address[1]})
    for line in sys.stdin:
        mode[:] = line.split()
        say({"mode": line.strip()})


if __name__ == "__main__":
    main()
