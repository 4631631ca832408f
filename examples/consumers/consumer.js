#!/usr/bin/env node
// Handles each row of a topic once and in order, and prints it as a line of JSON.
//
//   npm install kafkajs
//   consumer.js BROKERS TOPIC GROUP
'use strict';

const { Kafka, logLevel } = require('kafkajs');

// Here numbers come in any order. Add 'payment.NAME' for each rail with ordering = "none".
const WITHOUT_ORDER = new Set(['payment.dlq']);

// What was handled already. It is kept in memory to be short, and forgotten when the program ends.
// Keep it in the database that `handle` writes to, and write both in one transaction.
class Seen {
  last = new Map();
  ids = new Set();

  isDuplicate(key, headers) {
    if (WITHOUT_ORDER.has(headers.ce_type)) return this.ids.has(headers.ce_id);
    const last = this.last.get(lane(key, headers)) ?? 0n;
    return BigInt(headers.sequence_id) <= last;
  }

  remember(key, headers) {
    if (WITHOUT_ORDER.has(headers.ce_type)) this.ids.add(headers.ce_id);
    else this.last.set(lane(key, headers), BigInt(headers.sequence_id));
  }
}

const lane = (key, headers) => JSON.stringify([key, headers.ce_type]);

const text = (headers) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.toString()]));

// Your work. The value stays text here: JSON.parse would round a number of more than 15 digits.
async function handle(record) {
  console.log(JSON.stringify(record));
}

async function main() {
  const [brokers, topic, groupId] = process.argv.slice(2);
  const kafka = new Kafka({ brokers: brokers.split(','), logLevel: logLevel.ERROR });
  const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 500 });
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    if (!payload.restart) process.exit(1);
  });
  for (const name of ['SIGTERM', 'SIGINT']) {
    process.once(name, () => consumer.disconnect().then(() => process.exit(0)));
  }
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  const seen = new Seen();
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      const [key, value] = [message.key.toString(), message.value.toString()];
      const headers = text(message.headers);
      if (!seen.isDuplicate(key, headers)) {
        await handle({ key, value, headers, partition, offset: Number(message.offset) });
        seen.remember(key, headers);
      }
      // Only now: whoever dies before this gets the record again, and knows it.
      const offset = (BigInt(message.offset) + 1n).toString();
      await consumer.commitOffsets([{ topic, partition, offset }]);
    },
  });
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
