// Socket.IO with its Redis adapter: two servers, rooms across them, and requests between them.

import { createServer } from 'node:http';
import { createAdapter } from '@socket.io/redis-adapter';
import { Redis } from 'ioredis';
import { Server } from 'socket.io';
import { io as connect } from 'socket.io-client';
import { report, until, url } from './program.mjs';

const start = async () => {
  const pub = new Redis(url);
  const http = createServer();
  const server = new Server(http, { adapter: createAdapter(pub, pub.duplicate(), { requestsTimeout: 5000 }) });
  server.on('connection', (socket) => {
    socket.on('join', (room, done) => { socket.join(room); done(); });
    socket.on('say', (room, text) => server.to(room).emit('said', text));
  });
  server.on('double', (number, reply) => reply(number * 2));
  await new Promise((resolve) => http.listen(0, '127.0.0.1', resolve));
  return { server, port: http.address().port };
};
const [one, two] = [await start(), await start()];
const client = async ({ port }, room) => {
  const socket = connect(`http://127.0.0.1:${port}`, { transports: ['websocket'] });
  const heard = [];
  socket.on('said', (text) => heard.push(text));
  await new Promise((resolve) => socket.once('connect', resolve));
  await new Promise((resolve) => socket.emit('join', room, resolve));
  return { socket, heard };
};
const [a, b, c] = [await client(one, 'red'), await client(two, 'red'), await client(two, 'blue')];
const seen = {};
seen.sockets = await until(async () => ((await one.server.fetchSockets()).length === 3 ? 3 : null), 'all sockets');
a.socket.emit('say', 'red', 'hello');
await until(() => a.heard.length === 1 && b.heard.length === 1, 'a message to a room');
one.server.emit('said', 'everyone');
await until(() => [a, b, c].every(({ heard }) => heard.includes('everyone')), 'a broadcast');
seen.heard = [a.heard, b.heard, c.heard];
seen.answers = await one.server.serverSideEmitWithAck('double', 21);
one.server.in('red').disconnectSockets();
await until(() => !a.socket.connected && !b.socket.connected, 'disconnections');
seen.left = await until(async () => ((await two.server.fetchSockets()).length === 1 ? 1 : null), 'one socket');
report(seen);
