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
import {
  INITIAL_DEFAULTS,
  UnusualClient,
  UnusualInvalidMessage,
  checkChecked,
  checkDemanding,
  checkFormula,
  checkInitial,
  type Cell,
  type Expr,
} from "./unusual.js";
import { VECTORS } from "./vectors.js";

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
  readonly closing = new Set<(reason?: unknown) => void>();
  closed = false;

  async request(
    method: string,
    payload: unknown,
    options: EverythingCallOptions & { readonly idempotent: boolean },
  ): Promise<unknown> {
    this.requests.push([method, payload, options.idempotent]);
    const answer = this.answers.get(method);
    if (answer === undefined) {
      throw new Error(`no handler for ${method}`);
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

  onClose(listener: (reason?: unknown) => void): () => void {
    if (this.closed) {
      listener();
    } else {
      this.closing.add(listener);
    }
    return () => this.closing.delete(listener);
  }

  end(reason?: unknown): void {
    this.closed = true;
    for (const listener of [...this.closing]) {
      listener(reason);
    }
  }

  push(method: string, payload: unknown): void {
    for (const listener of this.listeners.get(method) ?? []) {
      listener(payload);
    }
  }

  async close(): Promise<void> {
    this.end();
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
  fake.push("Posted", { by: "ann" });
  stop();
  fake.push("Posted", { by: "bob" });
  const event = await stream.next();
  assert(event.done !== true && event.value.by === "ann", "a stream begins where it was asked for");
  const second = await stream.next();
  assert(second.done !== true && second.value.by === "bob", "a stream keeps what was not read");
  const third = stream.next();
  const fourth = stream.next();
  fake.push("Posted", { by: "cat" });
  await stream.return();
  assert((await third).value?.by === "cat" && (await fourth).done === true, "a waiting reader gets the next event");
  assert((await stream.next()).done === true, "a stream that was left has ended");
  assert(heard.join() === "ann", "a removed listener is not called");
  assert(fake.listeners.get("Posted")?.size === 0 && fake.closing.size === 0, "no listener is left");

  // A stream gives what came, and then fails if its consumer is too slow.
  const slow = client.main.postedEvents();
  for (let n = 0; n < 300; n += 1) {
    fake.push("Posted", { by: `n${n}` });
  }
  const given: string[] = [];
  const overflow = await refusal(async () => {
    for await (const event of slow) {
      given.push(event.by);
    }
  });
  assert(given.length === 256 && overflow.message.includes("too many Posted"), overflow.message);
  assert((await slow.next()).done === true, "it fails once");
  assert(fake.listeners.get("Posted")?.size === 0, "and is not called again");

  // Streams end with their channel.
  const ticks = transport.channel("ticks");
  const lost = client.ticks.tickEvents();
  const waiting = lost.next();
  const alsoWaiting = lost.next();
  const idle = client.ticks.tickEvents();
  ticks.push("Tick", { n: 1 });
  ticks.end(new Error("the line is cut"));
  assert((await waiting).value?.n === 1, "what came is given");
  assert((await refusal(() => alsoWaiting)).message === "the line is cut", "a waiting reader gets the loss");
  assert((await idle.next()).value?.n === 1, "what came before the loss is given");
  assert((await refusal(() => idle.next())).message === "the line is cut", "and the loss after it");
  assert((await client.ticks.tickEvents().next()).done === true, "a channel that has ended has no events");
  assert(ticks.listeners.get("Tick")?.size === 0 && ticks.closing.size === 0, "it has no listener");
  const quiet = client.oldTalk.heardEvents();
  const ending = quiet.next();
  await client.oldTalk.close();
  assert((await ending).done === true, "a stream ends when its channel is closed");

  // The server may ask too.
  client.callbacks.onAskedConfirm(async (request) => ({ yes: request.question === "sure?" }));
  const handler = transport.channel("callbacks").handlers.get("Confirm");
  assert(handler !== undefined, "somebody answers");
  const confirmed = (await handler({ question: "sure?" })) as { yes: boolean };
  assert(confirmed.yes, "the answer");
  const unasked = await refusal(() => handler({ question: 5 }));
  assert(unasked instanceof EverythingInvalidMessage && unasked.path === "question", String(unasked));
  client.callbacks.onAskedConfirm(async () => ({}) as { yes: boolean });
  const careless = await refusal(async () => transport.channel("callbacks").handlers.get("Confirm")?.({ question: "" }));
  assert(careless instanceof EverythingInvalidMessage && careless.path === "yes", "an answer is checked before it leaves");

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

  // Both languages take the same values. Rust alone takes numbers that JavaScript has rounded, and an array of a
  // message's fields for the message.
  const checks: Record<string, (value: unknown) => void> = {
    Checked: checkChecked,
    Demanding: checkDemanding,
    Formula: checkFormula,
  };
  for (const [message, json, takenBy] of VECTORS) {
    const value: unknown = JSON.parse(json);
    let problem: unknown;
    try {
      checks[message]?.(value);
    } catch (error) {
      assert(error instanceof UnusualInvalidMessage, `${message} ${json}: ${error}`);
      problem = error;
    }
    assert((problem === undefined) === (takenBy === "both"), `${message} ${json}: ${problem}`);
  }
  // What JSON has no word for.
  for (const value of [
    { whole: Number.NaN },
    { at: Number.POSITIVE_INFINITY },
    { at: new Date(0) },
    { any_float: Number.NaN },
    { anything: [undefined] },
    { anything: 1n },
    { anything: Number.NaN },
    { list: [, 1] },
    { free: { a: () => 1 } },
    { levels: { a: undefined } },
  ]) {
    const error = await refusal(async () => checkChecked(value));
    assert(error instanceof UnusualInvalidMessage && error.path !== "", String(error));
  }
  // A union is told apart by its `type`, in the compiler too.
  const sum = (expr: Expr): number => {
    switch (expr.type) {
      case "number":
        return expr.value;
      case "add":
        return sum(expr.value.left) + (expr.value.right ? sum(expr.value.right) : 0);
      case "list":
        return expr.value.map(sum).reduce((a, b) => a + b, 0);
      default:
        return 0;
    }
  };
  const one: Expr = { type: "number", value: 1 };
  assert(sum({ type: "list", value: [one, { type: "add", value: { left: one, right: one } }] }) === 3, "a union");
  const stranger = await refusal(async () => checkFormula({ expr: { type: "list", value: [{ type: "hexagon", value: 1 }] } }));
  assert(
    stranger instanceof UnusualInvalidMessage &&
      stranger.path === "expr.value[0].type" &&
      stranger.message.includes("it is no variant of Expr"),
    String(stranger),
  );
  const large = await refusal(async () => checkFormula({ expr: one, more: { type: "add", value: { left: { type: "number", value: 10 } } } }));
  assert(large instanceof UnusualInvalidMessage && large.path === "more.value.left.value", String(large));
  checkChecked(Object.create({ text: 5 }));
  const ring: { more?: unknown } = {};
  ring.more = ring;
  assert((await refusal(async () => checkChecked(ring))).message.includes("nested too deeply"), "a circle");
  assert((await refusal(async () => checkChecked(5))).message === "it is no object", "a message is an object");
  checkInitial(JSON.parse(JSON.stringify(INITIAL_DEFAULTS)));
  assert(INITIAL_DEFAULTS.text === "\u{1F600} \\ \"q\" ${x} `b` {0}\r\n\t\u2028\0", "a default of odd characters");
  assert(Object.is(INITIAL_DEFAULTS.zero, -0) && INITIAL_DEFAULTS.int === Number.MAX_SAFE_INTEGER, "odd numbers");

  const far = new FakeTransport();
  const unusual = await UnusualClient.connect(far);
  far.channel("a.b-c").answers.set("get.some-Thing", (payload) => ({ cube: { x: (payload as { cells: Cell[][] }).cells } }));
  const got = await unusual.aBC.getSomeThing({ cells: [[{ id: 0, below: [[{ id: 0 }]] }]] });
  assert(got.cube?.["x"]?.[0]?.[0]?.below?.[0]?.[0]?.id === 0, "messages in arrays in arrays in a map");
  const deepest = await refusal(() => unusual.aBC.getSomeThing({ cells: [[{ id: 0, below: [[]] }]] }));
  assert(deepest instanceof UnusualInvalidMessage && deepest.path === "cells[0][0].below[0]", String(deepest));
  far.channel("Old.Service").answers.set("inPlace", (payload) => ({ y: [(payload as { x?: string }).x ?? "default"] }));
  assert((await unusual.oldService.inPlace({})).y?.[0] === "default", "a method with messages in place");
  console.log("all done");
}

await main();
