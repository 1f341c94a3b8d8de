/* SPDX-License-Identifier: MIT
 * node-redlock 5 and 4 as a driver: see ../README.md. NODE_PATH selects the version.
 *
 * Settings: the defaults of both versions, which their READMEs show and explain (drift 1 %, 10 retries after 200 ms and
 * up to 200 or 100 ms more); one ioredis client for each server, which all callers of the process share, as in the
 * READMEs. A caller whose retries are used up begins again. */
"use strict";

const readline = require("readline");
const Redis = require("ioredis");
const library = require("redlock");

const [urls, resource, ttlText, holdText, firstText, countText, own] = process.argv.slice(2);
const ttl = Number(ttlText);
const holdMs = Number(holdText) / 1000;
const first = Number(firstText);
const count = Number(countText);
const clients = urls.split(",").map((url) => new Redis(url.split("?")[0]));
clients.forEach((client) => client.on("error", () => {}));

const isFive = library.default !== undefined;
const Redlock = isFive ? library.default : library;
const GaveUp = isFive ? library.ExecutionError : library.LockError;
const redlock = new Redlock(clients);
redlock.on(isFive ? "error" : "clientError", () => {});

const lock = isFive ? (name) => redlock.acquire([name], ttl) : (name) => redlock.lock(name, ttl);
const unlock = isFive ? (held) => held.release() : (held) => held.unlock();

const now = () => process.hrtime.bigint();
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
let lines = [];

/* Counts failed attempts that at least one server had granted, as far as the library reports them. The promises of the
 * library wait for the slowest server, so they are only awaited after the slice, and then not for long. */
function noteAttempts(sums, attempts, won) {
  if (!Array.isArray(attempts)) return;
  sums.attempts += attempts.length;
  for (const attempt of won ? attempts.slice(0, -1) : attempts) {
    sums.pending.push(attempt.then((stats) => (sums.split += stats.votesFor.size > 0 ? 1 : 0)));
  }
}

async function acquire(name, want, number, sums) {
  try {
    return await lock(name);
  } catch (error) {
    const word = error instanceof GaveUp ? "taken" : "error";
    lines.push(`failed ${number} ${want} ${now()} ${word} ${error.message.replace(/\n/g, " ")}`);
    noteAttempts(sums, error.attempts, false);
    return null;
  }
}

async function hold(held, number, want, sums) {
  const grant = now();
  const until = grant + BigInt(Math.max(0, Math.floor(held.expiration - Date.now()))) * 1000000n;
  if (holdMs > 0) await pause(holdMs);
  const called = now();
  const release = called < until ? called : until;
  let done;
  try {
    await unlock(held);
    done = now();
  } catch (error) {
    done = now();
    lines.push(`failed ${number} ${called} ${done} release ${error.message.replace(/\n/g, " ")}`);
  }
  lines.push(`hold ${number} ${want} ${grant} ${release} ${done}`);
  sums.acquired++;
  noteAttempts(sums, held.attempts, true);
}

async function contend(number, end) {
  const sums = { acquired: 0, attempts: 0, split: 0, pending: [] };
  const name = own ? `${resource}${number}` : resource;
  let want = 0n;
  while (now() < end) {
    if (want === 0n) want = now();
    const held = await acquire(name, want, number, sums);
    if (held === null) continue;
    await hold(held, number, want, sums);
    want = 0n;
  }
  await Promise.race([Promise.all(sums.pending), pause(500)]);
  lines.push(`sums ${number} ${sums.acquired} ${sums.attempts} ${sums.split} 0`);
}

async function slice(end) {
  lines = [];
  await Promise.all(Array.from({ length: count }, (_, i) => contend(first + i, end)));
  lines.push("over\n");
  await new Promise((resolve) => process.stdout.write(lines.join("\n"), resolve));
}

async function main() {
  await Promise.all(clients.map((client) => client.ping()));
  process.stdout.write("ready\n");
  for await (const line of readline.createInterface({ input: process.stdin })) await slice(BigInt(line));
  clients.forEach((client) => client.disconnect());
  process.exit(0);
}

main().catch((error) => {
  process.stderr.write(`node-redlock: ${error.stack}\n`);
  process.exit(1);
});
