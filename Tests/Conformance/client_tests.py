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

from ferry_backend import FerryBackend, FerryError, Message, Tag  # noqa: E402

UNKNOWN = "0" * 32
CAP = 40  # messages that a device may keep: above what those that are online have not acknowledged at any moment


class ClientTests(unittest.TestCase):
    ferry: ClassVar[str] = ""
    gateway: ClassVar[Gateway]
    cids: ClassVar[dict[str, str]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.gateway = Gateway(cls.ferry, {"messageCap": CAP, "capPolicy": "refuse"}).__enter__()
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
            self.assertEqual([self.received(device) for _ in range(CAP)], [str(number) for number in range(CAP)])
            device.stop()

        client = self.client(sleep=come_back)
        receipts = [client.push(cid, Message(str(number))) for number in range(CAP + 1)]
        self.assertEqual(len({receipt.task_id for receipt in receipts}), CAP + 1)
        self.assertEqual(pauses, [60.0])

    def test_a_gateway_that_stays_busy_is_given_up(self) -> None:
        cid, process = self.gateway.device("fuller")
        process.stop()
        pauses: list[float] = []
        client = self.client(sleep=pauses.append, busy_retries=2)
        for number in range(CAP):
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
        self.assertEqual((dry.without_token, dry.muted, dry.blocked), (1, 0, 0))
        self.assertGreaterEqual(client.dry_run().devices, 3)
        self.assertEqual(client.device(self.cids["tokenless"])["status"], "offline")
        story = client.timeline(self.cids["cid"], first.task_id)
        self.assertEqual([message["taskid"] for message in story["messages"]], [first.task_id])
        self.assertEqual(client.timeline(self.cids["cid"])["cid"], self.cids["cid"])

    def test_names_tags_and_the_block_list(self) -> None:
        client = self.client()
        cid, other = self.cids["cid"], self.cids["offline"]
        client.bind_aliases([(cid, "ann"), (other, "ann")])
        self.assertEqual((client.alias_of(cid), sorted(client.cids_of("ann"))), ("ann", sorted([cid, other])))
        self.assertEqual(len(client.push_alias("ann", Message("to ann", ttl=0))), 2)
        self.assertEqual(len(client.push_batch([("ann", Message("again", ttl=0))], by_alias=True)), 2)
        client.unbind_aliases([(other, "ann")])
        client.unbind_alias("ann")
        self.assertIsNone(client.alias_of(cid))
        client.set_tags(cid, ["vip", "new"])
        self.assertEqual(sorted(client.tags_of(cid)), ["new", "vip"])
        self.assertEqual(client.add_tag("gold", [cid, UNKNOWN]), {cid: True, UNKNOWN: False})
        self.assertEqual(client.count([Tag("custom_tag", ["gold", "silver"])]), 1)
        self.assertEqual(client.dry_run(tags=[Tag("custom_tag", ["gold"])]).online, 1)
        self.assertEqual(client.remove_tag("gold", [cid]), {cid: True})
        client.block([cid])
        self.assertEqual(client.push(cid, Message("blocked")).status, "successed_ignore")
        self.assertEqual(client.dry_run([cid]).blocked, 1)
        client.unblock([cid])
        self.assertEqual(client.device_status([cid])[cid]["cid_status"], "online")
        client.set_badge([cid], "+1")
        gone, process = self.gateway.device("gone")
        process.stop()
        client.set_profile(gone, phone_type="android", region="11000000", notifications=False)
        self.assertEqual(client.dry_run([gone]).muted, 1)
        self.assertEqual(client.user_detail([gone])["validCids"][gone]["phone_type"], 1)
        client.erase(gone)
        self.assertEqual(client.user_detail([gone])["invalidCids"], [gone])

    def test_lists_and_tags(self) -> None:
        client = self.client()
        task = client.create_list(Message("to some", ttl=0))
        receipts = client.push_list(task, [self.cids["cid"], UNKNOWN])
        self.assertEqual([(receipt.task_id, receipt.cid) for receipt in receipts], [(task, self.cids["cid"])])
        client.bind_aliases([(self.cids["cid"], "lists")])
        self.assertEqual(len(client.push_list(client.create_list(Message("x", ttl=0)), ["lists"], by_alias=True)), 1)
        detail = client.push_list_alias_detail(client.create_list(Message("y", ttl=0)), ["lists"])
        self.assertEqual(detail, {"lists": {self.cids["cid"]: "successed_online"}})
        client.unbind_alias("lists")
        self.assertRegex(client.push_tag([Tag("custom_tag", ["none"])], Message("z")), "^RASA_")
        self.assertRegex(client.push_fast_custom_tag("none", Message("z")), "^RASA_")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    ClientTests.ferry = sys.argv.pop()
    unittest.main()
