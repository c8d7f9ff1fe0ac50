// express-session with connect-redis: a counter in a session, kept between requests, destroyed at the end.

import express from 'express';
import session from 'express-session';
import { RedisStore } from 'connect-redis';
import { createClient } from 'redis';
import { assert, report, url } from './program.mjs';

const client = createClient({ url });
await client.connect();
const store = new RedisStore({ client, prefix: 'sess:', ttl: 100 });
const app = express();
app.use(session({ store, secret: 'test', resave: false, saveUninitialized: false, rolling: true, cookie: { maxAge: 60000 } }));
app.get('/count', (request, response) => {
  request.session.count = (request.session.count ?? 0) + 1;
  response.json({ count: request.session.count });
});
app.get('/logout', (request, response) => request.session.destroy(() => response.json({ gone: true })));
const server = app.listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
const base = `http://127.0.0.1:${server.address().port}`;

let cookie;
const ask = async (path) => {
  const response = await fetch(base + path, { headers: cookie ? { cookie } : {} });
  const set = response.headers.get('set-cookie');
  if (set) cookie = set.split(';')[0];
  return response.json();
};
const seen = { counts: [] };
for (let n = 0; n < 5; n++) seen.counts.push((await ask('/count')).count);
const keys = await client.keys('sess:*');
seen.keys = keys.length;
const ttl = await client.ttl(keys[0]);
assert.ok(ttl > 0 && ttl <= 100, `${ttl}`);
seen.stored = JSON.parse(await client.get(keys[0])).count;
seen.length = await new Promise((resolve) => store.length().then(resolve));
seen.all = (await store.all()).map((kept) => kept.count);
seen.logout = await ask('/logout');
seen.left = (await client.keys('sess:*')).length;
seen.anew = (await ask('/count')).count;
report(seen);
