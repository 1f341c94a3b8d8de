/* SPDX-License-Identifier: MIT
 * node-redlock as a client of a chaos run. NODE_PATH is the directory of its packages.
 *
 *     node foreign.cjs NAME LOG MAX_TTL_MS URLS */
"use strict";

const fs = require("fs");
const Redis = require("ioredis");
const Redlock = require("redlock5").default;

/* The first argument, NAME, is not needed. */
const [, log, ttlText, urls] = process.argv.slice(2);
const maxTtl = Number(ttlText);
const RESOURCES = ["r0", "r1", "r2", "r3"];
const SLOTS = ["s0{#0}", "s0{#1}", "s1{#0}", "s1{#1}", "s1{#2}"]; /* to node-redlock plain names */
const file = fs.openSync(log, "a");
const clients = urls.split(",").map((url) => new Redis(url, { maxRetriesPerRequest: 0 }));
clients.forEach((client) => client.on("error", () => {}));
const redlock = new Redlock(clients, { retryCount: 20, retryDelay: 30, retryJitter: 30 });
redlock.on("error", () => {});

/* CLOCK_BOOTTIME is CLOCK_MONOTONIC plus the time of suspend, which does not change here. */
const [seconds] = fs.readFileSync("/proc/uptime", "utf8").split(" ");
const suspended = Number(seconds) - Number(process.hrtime.bigint()) / 1e9;
const OFFSET = suspended > 1 ? BigInt(Math.round(suspended * 1e9)) : 0n;

let stop = false; /* SIGTERM was received: no new locks */
let count = 0; /* number of acquisitions */
process.on("SIGTERM", () => (stop = true));

/* now: time of CLOCK_BOOTTIME in ns; write: writes a line of the log; below: a random whole number
 * below the limit; pause: waits for some ms; one: a random element. */
const now = () => process.hrtime.bigint() + OFFSET;
const write = (at, words) => fs.writeSync(file, `\n${at} ${words} ;`);
const below = (limit) => Math.floor(Math.random() * limit);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const one = (names) => names[below(names.length)];

/* Chooses one name, a slot of a semaphore, or two names together. */
function choose() {
  const kind = below(5);
  if (kind === 0) return [one(SLOTS)];
  const first = one(RESOURCES);
  return kind === 1 ? [first, one(RESOURCES.filter((name) => name !== first))] : [first];
}

/* Acquires a lock, holds it for a while and releases it, and logs what happens. */
async function turn() {
  const names = choose();
  const name = names.join("+");
  const id = `${process.pid}f${count++}`;
  const ttl = maxTtl / 2 + below(maxTtl / 2);
  write(now(), `call ${name} ${id} ${ttl}`);
  let lock;
  try {
    lock = await redlock.acquire(names, ttl);
  } catch (error) {
    write(now(), `fail ${name} ${id} ${error.name}`);
    return;
  }
  /* Its expiration is in whole ms of the wall clock, as Date.now() is. */
  const since = now();
  const left = Math.max(0, lock.expiration - Date.now() - 1);
  write(since, `hold ${name} ${id} ${since + BigInt(Math.floor(left)) * 1000000n} 0`);
  await pause(below(40));
  write(now(), `end ${name} ${id}`);
  await lock.release().catch(() => {});
}

async function main() {
  while (!stop) {
    await turn();
    await pause(below(30));
  }
  clients.forEach((client) => client.disconnect());
}

main();
