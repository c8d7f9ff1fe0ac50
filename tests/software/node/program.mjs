// What every program here shares. A program gets the URL of an empty server, does its work through a package as its
// users do, checks the outcome itself, and prints what it saw as one line of JSON. Nothing in it depends on time, ids
// or order that the package does not promise, so that the lines of two servers can be compared.

import assert from 'node:assert/strict';

export { assert };
export const url = process.argv[2];
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Polls until `check` gives something true; fails after `limitMs`. */
export async function until(check, what, limitMs = 30000) {
  const end = Date.now() + limitMs;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) throw new Error(`gave up waiting for ${what}`);
    await sleep(20);
  }
}

export function report(seen) {
  console.log(JSON.stringify(seen));
  process.exit(0);
}
