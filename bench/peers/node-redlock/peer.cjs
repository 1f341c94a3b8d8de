/* SPDX-License-Identifier: MIT
 * node-redlock 5 as contenders of redlock-contended: several of them in one process, which share
 * its connections and its Redlock with the settings that it has by default. NODE_PATH tells where
 * the packages are.
 *
 *     node peer.cjs URLS RESOURCE TTL_MS HOLD_US FIRST COUNT
 *
 * Says "ready", waits for a line with the time at which to end (ns of CLOCK_MONOTONIC, which is what
 * hrtime is), and prints what happened when all is over:
 *
 *     hold CONTENDER WANT GRANT RELEASE          one that was held
 *     waiting CONTENDER WANT                     wanted it when the time was over
 *     sums CONTENDER ACQUIRED ATTEMPTS SPLIT ERRORS */
"use strict";

const readline = require("readline");
const Redis = require("ioredis");
const { default: Redlock, ExecutionError } = require("redlock");

const [urls, resource, ttlText, holdText, firstText, countText] = process.argv.slice(2);
const ttl = Number(ttlText);
const holdMs = Number(holdText) / 1000;
const clients = urls.split(",").map((url) => new Redis(url.split("?")[0]));
clients.forEach((client) => client.on("error", () => {}));
const redlock = new Redlock(clients);
redlock.on("error", () => {});

const now = () => process.hrtime.bigint();
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const lines = [];
let end = 0n;

/* Of each attempt: was it in vain although some server had granted it? */
async function countAttempts(sums, attempts, won) {
  const list = await Promise.all(attempts);
  sums.attempts += list.length;
  const failed = won ? list.slice(0, -1) : list;
  sums.split += failed.filter((stats) => stats.votesFor.size > 0).length;
}

/* Null when the time was over before. */
async function acquire(sums) {
  for (;;) {
    try {
      return await redlock.acquire([resource], ttl);
    } catch (error) {
      if (!(error instanceof ExecutionError)) throw error;
      await countAttempts(sums, error.attempts, false);
      if (now() >= end) return null;
    }
  }
}

async function turn(number, sums) {
  const want = now();
  const lock = await acquire(sums);
  if (lock === null) {
    lines.push(`waiting ${number} ${want}`);
    return;
  }
  const grant = now();
  const until = grant + BigInt(Math.max(0, Math.floor(lock.expiration - Date.now()))) * 1000000n;
  if (holdMs > 0) await pause(holdMs);
  const called = now();
  const release = called < until ? called : until;
  await lock.release();
  lines.push(`hold ${number} ${want} ${grant} ${release}`);
  sums.acquired++;
  await countAttempts(sums, lock.attempts, true);
}

async function contend(number) {
  const sums = { acquired: 0, attempts: 0, split: 0, errors: 0 };
  while (now() < end) {
    try {
      await turn(number, sums);
    } catch (error) {
      sums.errors++;
      process.stderr.write(`node-redlock: ${error.name}: ${error.message}\n`);
    }
  }
  lines.push(`sums ${number} ${sums.acquired} ${sums.attempts} ${sums.split} ${sums.errors}`);
}

async function main() {
  await Promise.all(clients.map((client) => client.ping()));
  process.stdout.write("ready\n");
  for await (const line of readline.createInterface({ input: process.stdin })) {
    end = BigInt(line);
    break;
  }
  if (end === 0n) process.exit(1);
  const first = Number(firstText);
  await Promise.all(Array.from({ length: Number(countText) }, (_, i) => contend(first + i)));
  clients.forEach((client) => client.disconnect());
  process.stdout.write(`${lines.join("\n")}\n`, () => process.exit(0));
}

main().catch((error) => {
  process.stderr.write(`node-redlock: ${error.stack}\n`);
  process.exit(1);
});
