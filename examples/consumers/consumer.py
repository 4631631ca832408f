#!/usr/bin/env python3
"""Handles each row of a topic once and in order, and prints it as a line of JSON.

    pip install confluent-kafka
    consumer.py BROKERS TOPIC GROUP
"""

import json
import signal
import sys

from confluent_kafka import Consumer, KafkaException

# Here numbers come in any order. Add "payment.NAME" for each rail with ordering = "none".
WITHOUT_ORDER = {"payment.dlq"}


class Seen:
    """What was handled already.

    It is kept in memory to be short, and forgotten when the program ends. Keep it in the database
    that `handle` writes to, and write both in one transaction.
    """

    def __init__(self):
        self.last = {}
        self.ids = set()

    def is_duplicate(self, key, headers):
        if headers["ce_type"] in WITHOUT_ORDER:
            return headers["ce_id"] in self.ids
        lane = (key, headers["ce_type"])
        return int(headers["sequence_id"]) <= self.last.get(lane, 0)

    def remember(self, key, headers):
        if headers["ce_type"] in WITHOUT_ORDER:
            self.ids.add(headers["ce_id"])
        else:
            self.last[(key, headers["ce_type"])] = int(headers["sequence_id"])


def handle(message, key, headers):
    """Your work. The value stays text here: json.loads(value, parse_float=Decimal) keeps each digit."""
    record = {
        "key": key,
        "value": message.value().decode(),
        "headers": headers,
        "partition": message.partition(),
        "offset": message.offset(),
    }
    print(json.dumps(record, ensure_ascii=False), flush=True)


def consume(consumer, is_stopped):
    seen = Seen()
    while not is_stopped():
        message = consumer.poll(0.5)
        if message is None:
            continue
        if message.error():
            raise KafkaException(message.error())
        key = message.key().decode()
        headers = {name: value.decode() for name, value in message.headers()}
        if not seen.is_duplicate(key, headers):
            handle(message, key, headers)
            seen.remember(key, headers)
        # Only now: whoever dies before this gets the record again, and knows it.
        consumer.commit(message, asynchronous=False)


def main():
    brokers, topic, group = sys.argv[1:]
    stopped = []
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stopped.append(True))
    consumer = Consumer({
        "bootstrap.servers": brokers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    })
    consumer.subscribe([topic])
    try:
        consume(consumer, lambda: stopped)
    finally:
        consumer.close()


if __name__ == "__main__":
    main()
