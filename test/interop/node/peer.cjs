/* SPDX-License-Identifier: MIT
 * node-redlock, driven by lines as peer.c is: `acquire NAME TTL_MS WAIT_MS`, `extend NAME TTL_MS`,
 * `release NAME`. Arguments: redlock4 or redlock5, then the addresses of the nodes. NODE_PATH tells
 * where the packages are. */
"use strict";

const readline = require("readline");
const Redis = require("ioredis");

const [version, ...urls] = process.argv.slice(2);
const loaded = require(version);
const Redlock = loaded.default || loaded;
const RETRY_MS = 10;

const clients = urls.map((url) => new Redis(url));
const locks = new Map();

/* Version 4 takes the number of retries per client, version 5 per call. */
function clientFor(waitMs) {
  const retryCount = Math.ceil(waitMs / RETRY_MS);
  const redlock = new Redlock(clients, { retryCount, retryDelay: RETRY_MS, retryJitter: 0 });
  redlock.on("error", () => {});
  redlock.on("clientError", () => {});
  return redlock;
}

const isFour = version === "redlock4";
const actions = {
  async acquire(name, ttl, wait) {
    const redlock = clientFor(Number(wait));
    const lock = isFour
      ? await redlock.lock(name, Number(ttl))
      : await redlock.acquire([name], Number(ttl));
    locks.set(name, lock);
  },
  async extend(name, ttl) {
    locks.set(name, await locks.get(name).extend(Number(ttl)));
  },
  async release(name) {
    const lock = locks.get(name);
    await (isFour ? lock.unlock() : lock.release());
  },
};

async function obey(line) {
  const [verb, ...rest] = line.split(" ");
  try {
    await actions[verb](...rest);
    return "ok";
  } catch (error) {
    const refused = error.name === "LockError" || error.name === "ExecutionError";
    if (!refused) return `${error.name}: ${error.message}`;
    return verb === "acquire" ? "contended" : "lost";
  }
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin }))
    process.stdout.write(`${await obey(line)}\n`);
  clients.forEach((client) => client.disconnect());
}

main();
