#!/usr/bin/env python3
"""The client in examples/python against a live gateway.

    client_tests.py PATH-OF-FERRY
"""

from __future__ import annotations

import socket
import sys
import unittest
from typing import Any, ClassVar

from gateway import APPS, ROOT, Gateway, Process

sys.path.insert(0, str(ROOT / "examples/python"))

from ferry_backend import FerryBackend, FerryError, Message  # noqa: E402

UNKNOWN = "0" * 32


class ClientTests(unittest.TestCase):
    ferry: ClassVar[str] = ""
    gateway: ClassVar[Gateway]
    cids: ClassVar[dict[str, str]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.gateway = Gateway(cls.ferry, {"messageCap": 3, "capPolicy": "refuse"}).__enter__()
        cls.cids = cls.gateway.devices()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.gateway.__exit__(None, None, None)

    def client(self, **options: Any) -> FerryBackend:
        app = APPS[0]
        client = FerryBackend(
            f"http://{self.gateway.http}", app["appId"], app["appKey"], app["masterSecret"], **options)
        self.addCleanup(client.close)
        return client

    def received(self, process: Process) -> str:
        return str(process.event("payload")["payload"])

    def test_a_push_arrives_and_a_repeat_is_the_same_task(self) -> None:
        client = self.client()
        cid, device = self.gateway.device("receiver")
        receipt = client.push(cid, Message("hello", ttl=60_000), request_id="client-test-1")
        self.assertTrue(receipt.was_online)
        self.assertEqual(receipt.cid, cid)
        self.assertEqual(client.push(cid, Message("hello", ttl=60_000), request_id="client-test-1"), receipt)
        client.push(cid, Message("last"))
        self.assertEqual([self.received(device) for _ in range(2)], ["hello", "last"])
        device.stop()

    def test_a_refusal_has_its_code_its_words_and_its_status(self) -> None:
        with self.assertRaises(FerryError) as caught:
            self.client().push(UNKNOWN, Message("hello"))
        self.assertEqual((caught.exception.code, caught.exception.status), (20001, 400))
        self.assertEqual(caught.exception.message, f'target user is invalid: cid "{UNKNOWN}"')

    def test_a_wrong_secret_is_tried_once(self) -> None:
        client = FerryBackend(f"http://{self.gateway.http}", "shop", "key-of-shop", "wrong")
        self.addCleanup(client.close)
        with self.assertRaises(FerryError) as caught:
            client.status([self.cids["cid"]])
        self.assertEqual((caught.exception.code, caught.exception.message), (20001, "sign is invalid"))

    def test_a_token_that_is_not_good_any_more_is_renewed_once(self) -> None:
        client, other = self.client(), self.client()
        self.assertTrue(client.status([self.cids["cid"]])[self.cids["cid"]].is_online)
        other._token, other._token_ends = client._token, client._token_ends
        other.revoke_token()
        self.assertEqual(len(client.status(list(self.cids.values()))), 3)

    def test_a_connection_that_ended_is_opened_again(self) -> None:
        client = self.client()
        client.status([self.cids["cid"]])
        assert client._http.sock is not None
        client._http.sock.shutdown(socket.SHUT_RDWR)
        self.assertFalse(client.status([self.cids["offline"]])[self.cids["offline"]].is_online)

    def test_a_busy_answer_is_repeated_when_the_gateway_says(self) -> None:
        cid, process = self.gateway.device("full")
        process.stop()
        pauses: list[float] = []

        def come_back(seconds: float) -> None:
            pauses.append(seconds)
            _, device = self.gateway.device("full")
            self.assertEqual([self.received(device) for _ in range(3)], ["0", "1", "2"])
            device.stop()

        client = self.client(sleep=come_back)
        receipts = [client.push(cid, Message(str(number))) for number in range(4)]
        self.assertEqual(len({receipt.task_id for receipt in receipts}), 4)
        self.assertEqual(pauses, [60.0])

    def test_a_gateway_that_stays_busy_is_given_up(self) -> None:
        cid, process = self.gateway.device("fuller")
        process.stop()
        pauses: list[float] = []
        client = self.client(sleep=pauses.append, busy_retries=2)
        for number in range(3):
            client.push(cid, Message(str(number)))
        with self.assertRaises(FerryError) as caught:
            client.push(cid, Message("one too many"))
        self.assertEqual((caught.exception.code, len(pauses)), (30019, 2))
        self.assertEqual(caught.exception.retry_after, 60.0)

    def test_a_batch_leaves_out_what_was_not_taken(self) -> None:
        receipts = self.client().push_batch([(self.cids["cid"], Message("one")), (UNKNOWN, Message("two"))])
        self.assertEqual([receipt.cid for receipt in receipts], [self.cids["cid"]])
        self.assertEqual(self.client().push_batch([(self.cids["cid"], Message("three"))], is_async=True), [])

    def test_a_push_to_all_has_a_task(self) -> None:
        self.assertRegex(self.client().push_all(Message("news", ttl=0)), "^RASA_[0-9]{4}_[0-9a-f]{32}$")

    def test_bytes_a_dry_run_and_stories(self) -> None:
        client = self.client()
        first, second = client.push_bytes([self.cids["cid"], self.cids["tokenless"]], b"\x00\xff", ttl=60_000)
        self.assertEqual((first.was_online, second.was_online), (True, False))
        dry = client.dry_run(list(self.cids.values()))
        self.assertEqual((dry.online, dry.offline, dry.unknown), (1, 2, (self.cids["foreign"],)))
        self.assertEqual(dry.without_token, 1)
        self.assertGreaterEqual(client.dry_run().devices, 3)
        self.assertEqual(client.device(self.cids["tokenless"])["status"], "offline")
        story = client.timeline(self.cids["cid"], first.task_id)
        self.assertEqual([message["taskid"] for message in story["messages"]], [first.task_id])
        self.assertEqual(client.timeline(self.cids["cid"])["cid"], self.cids["cid"])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    ClientTests.ferry = sys.argv.pop()
    unittest.main()
