#!/usr/bin/env python3
"""Lets a generator of requests (schemathesis) loose on a live gateway: by protocol-spec/openapi.yaml, good and bad ones.

    fuzz.py PATH-OF-FERRY [--seconds 90] [--seed 1] [more options of schemathesis]

No answer may be a 5xx or one that the description does not have, in status, content type, header or schema; each undescribed
method must be a 405; without a token nothing may be answered. Installs schemathesis below .build when it is not there.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import venv

from gateway import ROOT, Failure, Gateway
from run import known

VERSION = "4.32.2"
HOME = ROOT / ".build" / f"schemathesis-{VERSION}"
LEAST = 100  # requests; fewer prove nothing
HERE = pathlib.Path(__file__).resolve().parent
CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance", "unsupported_method", "ignored_auth")


def installed() -> pathlib.Path:
    """The generator, which has an environment of its own."""
    program = HOME / "bin" / "st"
    if not (HOME / "complete").exists():
        print(f"fuzz.py: installing schemathesis {VERSION}", file=sys.stderr)
        venv.create(HOME, with_pip=True, clear=True)
        subprocess.run([str(HOME / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check",
                        f"schemathesis=={VERSION}"], check=True)
        (HOME / "complete").touch()
    return program


def main() -> int:
    parser = argparse.ArgumentParser(description="Generated requests against a live gateway.")
    parser.add_argument("ferry")
    parser.add_argument("--seconds", type=int, default=90, help="how long at most")
    parser.add_argument("--seed", type=int, default=1)
    options, more = parser.parse_known_args()
    program = installed()
    with Gateway(options.ferry, {"broadcastsPerHour": 100_000}) as gateway:
        try:
            names = known(gateway)
            cids = ",".join((names["cid"], names["offline"], names["tokenless"], names["foreign"], names["unknown"]))
            # What the description says of the document itself must hold too, so that nothing is skipped in silence.
            result = subprocess.run([
                str(program), "run", str(ROOT / "protocol-spec/openapi.yaml"), "--url", f"http://{gateway.http}",
                "--header", f"token: {names['token_shop']}", "--checks", ",".join(CHECKS), "--seed", str(options.seed),
                # It answers for as long as it is listened to.
                "--exclude-path", "/v1/{appId}/presence",
                "--phases", "examples,coverage,fuzzing", "--max-time", str(options.seconds), "--workers", "1",
                "--suppress-health-check", "all", "--no-color", "--generation-database", "none",
                "--request-timeout", "10", *more],
                env={**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(HERE), "FERRY_FUZZ_CIDS": cids,
                     "PYTHONDONTWRITEBYTECODE": "1"},
                cwd=gateway.folder, check=False, stdout=subprocess.PIPE, text=True)
            print(result.stdout)
            # A slow machine may spend its time before the first request.
            generated = re.search(r"(\d+) generated", result.stdout)
            if not result.returncode and int(generated.group(1) if generated else 0) < LEAST:
                raise Failure(f"fewer than {LEAST} requests were made: give it more --seconds")
            if not gateway.process.is_alive():
                raise Failure("the gateway ended by itself")
        except Failure as failure:
            print(f"fuzz.py: {failure}\n{gateway.words_of_log()}", file=sys.stderr)
            return 1
        errors = [line for line in gateway.words_of_log().splitlines() if '"level":"error"' in line or " error " in line]
        for line in errors:
            print(f"fuzz.py: the gateway logged: {line}", file=sys.stderr)
    return result.returncode or (1 if errors else 0)


if __name__ == "__main__":
    sys.exit(main())
