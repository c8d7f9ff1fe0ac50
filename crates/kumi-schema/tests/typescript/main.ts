// Drives the generated client over a transport that only pretends.
import {
  CALLBACKS_CHANNEL,
  DEFAULTS_DEFAULTS,
  EVERYTHING_VERSION,
  EverythingClient,
  EverythingInvalidMessage,
  MAIN_CHANNEL,
  MOOD_VALUES,
  checkLists,
  type Defaults,
  type EverythingCallOptions,
  type EverythingChannelSpec,
  type EverythingChannelTransport,
  type EverythingTransport,
  type Mood,
  type Scalars,
  type Tree,
} from "./everything.js";
import { OddClient, checkCopy, checkEq } from "./odd.js";

declare const console: { log(text: string): void };

function assert(condition: boolean, what: string): asserts condition {
  if (!condition) {
    throw new Error(`not so: ${what}`);
  }
}

class FakeChannel implements EverythingChannelTransport {
  readonly requests: [string, unknown, boolean][] = [];
  readonly events: [string, unknown][] = [];
  readonly answers = new Map<string, (payload: unknown) => unknown>();
  readonly listeners = new Map<string, Set<(payload: unknown) => void>>();
  readonly handlers = new Map<string, (payload: unknown) => Promise<unknown>>();
  closed = false;

  async request(
    method: string,
    payload: unknown,
    options: EverythingCallOptions & { readonly idempotent: boolean },
  ): Promise<unknown> {
    this.requests.push([method, payload, options.idempotent]);
    const answer = this.answers.get(method);
    if (answer === undefined) {
      throw new Error(`nobody answers ${method}`);
    }
    // What travels is text.
    const answered = answer(JSON.parse(JSON.stringify(payload)));
    return answered === undefined ? undefined : JSON.parse(JSON.stringify(answered));
  }

  async sendEvent(method: string, payload: unknown): Promise<void> {
    this.events.push([method, payload]);
  }

  onEvent(method: string, listener: (payload: unknown) => void): () => void {
    const listeners = this.listeners.get(method) ?? new Set();
    this.listeners.set(method, listeners);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  onRequest(method: string, handler: (payload: unknown) => Promise<unknown>): () => void {
    this.handlers.set(method, handler);
    return () => this.handlers.delete(method);
  }

  push(method: string, payload: unknown): void {
    for (const listener of this.listeners.get(method) ?? []) {
      listener(payload);
    }
  }

  async close(): Promise<void> {
    this.closed = true;
  }
}

class FakeTransport implements EverythingTransport {
  readonly channels = new Map<string, FakeChannel>();
  refused: string | undefined;

  async open(channel: EverythingChannelSpec): Promise<EverythingChannelTransport> {
    if (channel.name === this.refused) {
      throw new Error(`refused ${channel.name}`);
    }
    const opened = new FakeChannel();
    this.channels.set(channel.name, opened);
    return opened;
  }

  channel(name: string): FakeChannel {
    const channel = this.channels.get(name);
    assert(channel !== undefined, `${name} is open`);
    return channel;
  }
}

async function refusal(work: () => Promise<unknown>): Promise<Error> {
  try {
    await work();
  } catch (error) {
    assert(error instanceof Error, "errors are errors");
    return error;
  }
  throw new Error("it was not refused");
}

const scalars: Scalars = {
  text: "hello",
  whole: 5,
  broken: 0.5,
  other: 1e9,
  truth: true,
  at: Date.UTC(2024, 1, 1),
  blob: "AAEC",
  anything: { deep: [1, null, "x"] },
  colour: "sea-green",
  mood: "somewhat odd",
};

async function main(): Promise<void> {
  assert(EVERYTHING_VERSION === "1.4.2", "the version is the schema's");
  assert(MAIN_CHANNEL.schemaHash.length === 64 && MAIN_CHANNEL.schemaHash !== CALLBACKS_CHANNEL.schemaHash, "hashes");
  const mood: Mood = MOOD_VALUES[0];
  assert(mood === "good", "open enums list their values");

  const transport = new FakeTransport();
  const client = await EverythingClient.connect(transport);
  const fake = transport.channel("main");

  // A call, checked before it is sent and typed when it comes back.
  fake.answers.set("Echo", (payload) => payload);
  const echoed = await client.main.echo({ scalars }, { deadlineMs: 1000 });
  assert(echoed.scalars.text === "hello" && echoed.scalars.mood === "somewhat odd", "an echo");
  assert(fake.requests[0]?.[2] === true, "echo is idempotent");
  const refused = await refusal(() => client.main.echo({ scalars: { ...scalars, whole: 6 } }));
  assert(refused instanceof EverythingInvalidMessage, "a typed error");
  assert(refused.path === "scalars.whole", refused.path);
  assert(fake.requests.length === 1, "nothing was sent");

  // Answers that are empty, and defaults.
  fake.answers.set("Ping", () => undefined);
  await client.main.ping({});
  fake.answers.set("FromRoom", () => ({ note: "n" }));
  const defaults: Defaults = { ...DEFAULTS_DEFAULTS, ...(await client.main.fromRoom({})) };
  assert(defaults.text === 'say "hi"\n' && defaults.broken === 1 && defaults.note === "n", "defaults");

  // Trees nest.
  const tree: Tree = { label: "a", children: [{ label: "b", children: [] }], left: { label: "c", children: [] } };
  fake.answers.set("Grow", (payload) => (payload as { tree: Tree }).tree);
  assert((await client.main.grow({ tree })).children[0]?.label === "b", "a tree");
  const deep = await refusal(() =>
    client.main.grow({ tree: { ...tree, named: { x: { label: "too long", children: [] } } } }),
  );
  assert(deep instanceof EverythingInvalidMessage && deep.path === 'tree.named["x"].label', deep.message);

  // Lists are checked inside.
  const lists = { words: ["a"], grid: [[1, 2], [101]], people: {} };
  try {
    checkLists(lists);
    assert(false, "101 is too much");
  } catch (error) {
    assert(error instanceof EverythingInvalidMessage && error.path === "grid[1][0]", String(error));
  }

  // Events, both ways.
  await client.main.sendTyping({ on: true });
  assert(fake.events[0]?.[0] === "Typing", "an event was sent");
  const heard: string[] = [];
  const stop = client.main.onPosted((event) => heard.push(event.by));
  const stream = client.main.postedEvents();
  const first = stream.next();
  fake.push("Posted", { by: "ann" });
  stop();
  fake.push("Posted", { by: "bob" });
  const event = await first;
  assert(event.done !== true && event.value.by === "ann", "a stream begins where it was asked for");
  const second = await stream.next();
  assert(second.done !== true && second.value.by === "bob", "a stream waits for nobody");
  await stream.return();
  assert(heard.join() === "ann", "a listener that left hears nothing");
  assert(fake.listeners.get("Posted")?.size === 0, "nobody listens any more");

  // The server may ask too.
  client.callbacks.onAskedConfirm(async (request) => ({ yes: request.question === "sure?" }));
  const handler = transport.channel("callbacks").handlers.get("Confirm");
  assert(handler !== undefined, "somebody answers");
  const confirmed = (await handler({ question: "sure?" })) as { yes: boolean };
  assert(confirmed.yes, "the answer");

  // Older forms are channels like any other.
  transport.channel("old-query").answers.set("Query", () => ({ hits: ["x"] }));
  assert((await client.oldQuery.query({ q: "x" })).hits[0] === "x", "send and recv became a request");
  transport.channel("UserService").answers.set("createUser", () => ({ id: 7 }));
  assert((await client.userService.createUser({ name: "ann" })).id === 7, "a method became a request");

  // A channel that is refused leaves none open.
  const other = new FakeTransport();
  other.refused = "upload";
  await refusal(() => EverythingClient.connect(other));
  assert([...other.channels.values()].every((channel) => channel.closed), "all are closed again");
  await client.main.close();
  assert(fake.closed, "closed");

  // Names that are words of the language, over the same transport.
  const odd = new FakeTransport();
  const words = await OddClient.connect(odd);
  odd.channel("new").answers.set("Await", () => ({ message: "none" }));
  assert((await words.new.await({})).message === "none", "new and await");
  odd.channel("delete").answers.set("Send", () => ({ sync: true }));
  assert((await words.delete.send({ to: "x" })).sync === true, "delete and send");
  // What the tests of the Rust code say of the same values.
  const taken = (text: string): boolean => {
    try {
      checkCopy({ copy: { k: [[text]] } });
      return true;
    } catch {
      return false;
    }
  };
  assert(taken("a\r") && taken("\u00a0x") && !taken("a\n") && !taken(" a"), "patterns");
  await refusal(async () => checkEq({ eq: Number.NaN }));
  console.log("all done");
}

await main();
