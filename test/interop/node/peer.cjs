/* SPDX-License-Identifier: MIT
 * node-redlock, driven by lines as peer.c is: `acquire NAME TTL_MS WAIT_MS`, `extend NAME TTL_MS`,
 * `release NAME`. Arguments: redlock4 or redlock5, then the addresses of the nodes. NODE_PATH is the
 * directory of its packages. */
"use strict";

const readline = require("readline");
const Redis = require("ioredis");

const [version, ...urls] = process.argv.slice(2);
const loaded = require(version);
const Redlock = loaded.default || loaded;
const RETRY_MS = 10;

const clients = urls.map((url) => new Redis(url));
const locks = new Map();

/* Returns a client that retries for that long: version 4 has the number of retries per client only. */
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

/* Executes one line and returns the reply. */
async function execute(line) {
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
    process.stdout.write(`${await execute(line)}\n`);
  clients.forEach((client) => client.disconnect());
}

main();
