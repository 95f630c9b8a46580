import { expect, test } from 'vitest';
import { settle } from '../../test/support/manual-clock.ts';
import { systemClock } from '../core/clock.ts';
import { RuvLLMError } from '../core/errors.ts';
import type { WireBlockEvent } from '../server/fleet/block-ledger.ts';
import { ASK_HEADER, isValidAsk } from '../server/fleet/fleet-ask.ts';
import { deriveFleetKeys, type FleetKeys } from '../server/fleet/fleet-keys.ts';
import { PROMPT_BLOCKS_HEADER, readPromptBlocks, writePromptBlocks } from '../server/fleet/prompt-blocks.ts';
import { writeBatch } from '../server/fleet/signed-batch.ts';
import { silentLogger } from '../server/logger.ts';
import { chooseNode, scaleFor } from './choose-node.ts';
import { createFleetAffinity } from './fleet-affinity.ts';
import { refusalOf } from './follow-blocks.ts';
import { createNode, type GatewayNode, reportsModel } from './node-table.ts';
import { hashText, TEXT_BLOCK_BYTES } from './text-chain.ts';
import { createTextIndex } from './text-index.ts';
import type { Upstream, UpstreamRequest, UpstreamResponse } from './types.ts';

const SECRET = 'a secret of thirty-two characters';
const keys = deriveFleetKeys(SECRET);
const signal = new AbortController().signal;
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const blocks = Array.from({ length: 20 }, (_, i) => i.toString(16).padStart(16, '0'));
const stored = (...hashes: string[]): WireBlockEvent => ({ type: 'BlockStored', block_hashes: hashes, parent_block_hash: null, token_ids: [], block_size: 16, lora_id: null, medium: 'CPU' }); // prettier-ignore
const removed = (...hashes: string[]): WireBlockEvent => ({
  type: 'BlockRemoved',
  block_hashes: hashes,
  medium: 'CPU',
});

/** A node whose events the test sends. */
function fakeNode(own: FleetKeys, { models = [] as object[], sign = own, state: more = {} as object } = {}) {
  let wake = (): void => {};
  const queue: string[] = [];
  let ask = '';
  let seq = 0;
  let numStreams = 0;
  async function* lines(request: UpstreamRequest): AsyncGenerator<Uint8Array> {
    for (;;) {
      for (const line of queue.splice(0)) yield encode(`data: ${line}\n\n`);
      if (request.signal.aborted) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
        request.signal.addEventListener('abort', () => resolve(), { once: true });
      });
    }
  }
  const head = { status: 200, headers: {} };
  const push = (line: string): void => {
    queue.push(line);
    wake();
  };
  return {
    answer(request: UpstreamRequest): UpstreamResponse {
      const { target, headers } = request;
      ask = headers[ASK_HEADER]!;
      if (!isValidAsk(own, target, Date.now(), ask)) return { ...head, status: 403, body: lines(request) };
      if (target === '/fleet/events') {
        numStreams++;
        return { ...head, body: lines(request) };
      }
      const state = JSON.stringify({ epoch: 'one', version: '1', numRequests: 3, models, ...more });
      const body = JSON.stringify({ state, signature: sign.sign('state', `${ask} ${state}`) });
      return { ...head, body: (async function* () { yield encode(body); })() }; // prettier-ignore
    },
    send: (...events: WireBlockEvent[]) =>
      push(writeBatch(own, ask, { epoch: 'one', seq: ++seq, ts: 0, model: 'm', events })),
    push,
    get numStreams() {
      return numStreams;
    },
    get ask() {
      return ask;
    },
  };
}

function openFleet(...fakes: ReturnType<typeof fakeNode>[]) {
  const nodes = fakes.map((_, i) => ({ ...createNode(String(i + 1), `http://${i}`), health: 'up' as GatewayNode['health'] })); // prettier-ignore
  const refusals: string[] = [];
  const upstream: Upstream = {
    send: async (url, request) => {
      const response = fakes[Number(url.slice(-1))]!.answer(request);
      if (response.status === 403) return { ...response, body: (async function* () {})() };
      return response;
    },
    close() {},
  };
  const metrics = {
    countRefusedNote() {},
    countRefusedEvents: (node: string, reason: string) => void refusals.push(`${node} ${reason}`),
  };
  const time = { ms: 0 };
  const clock = { ...systemClock, now: () => time.ms };
  return { nodes, refusals, time, affinity: createFleetAffinity({ nodes, keys, upstream, metrics, logger: silentLogger, clock }) }; // prettier-ignore
}

const request = { tenant: 'a', model: 'm', promptText: 'x'.repeat(10 * TEXT_BLOCK_BYTES) };
const header = { [PROMPT_BLOCKS_HEADER]: writePromptBlocks(blocks) };

test('[FA1] a prompt goes where its blocks are, and elsewhere when they are evicted', async () => {
  const [one, two] = [fakeNode(keys), fakeNode(keys)];
  const { affinity, nodes } = openFleet(one, two);
  for (const node of nodes) await affinity.checkNode(node, signal);
  expect(nodes[0]!.numOtherRequests).toBe(3);
  affinity.plan(request).learn(nodes[1]!, header);
  expect(affinity.plan(request).warmTokens(nodes[1]!)).toBe(0);
  two.send(stored(...blocks));
  await expect.poll(() => nodes[1]!.blocks.size).toBe(20);
  const warm = affinity.plan(request);
  expect([warm.warmTokens(nodes[0]!), warm.warmTokens(nodes[1]!)]).toEqual([0, 320]);
  expect(chooseNode(nodes, warm, scaleFor(1))).toBe(nodes[1]);
  two.send(removed(...blocks.slice(10)));
  await expect.poll(() => nodes[1]!.blocks.size).toBe(10);
  expect(affinity.plan(request).warmTokens(nodes[1]!)).toBe(160);
  two.send({ type: 'AllBlocksCleared' });
  await expect.poll(() => nodes[1]!.blocks.size).toBe(0);
  expect(affinity.plan(request).warmTokens(nodes[1]!)).toBe(0);
  affinity.close();
});

test('[FA2] a longer prompt is warm as far as it begins like a known one; other tenants and models never', async () => {
  const one = fakeNode(keys);
  const { affinity, nodes } = openFleet(one);
  await affinity.checkNode(nodes[0]!, signal);
  one.send(stored(...blocks));
  await expect.poll(() => nodes[0]!.blocks.size).toBe(20);
  affinity.plan(request).learn(nodes[0]!, header);
  const warmOf = (more: Partial<typeof request>): number =>
    affinity.plan({ ...request, ...more }).warmTokens(nodes[0]!);
  expect(warmOf({ promptText: `${request.promptText} and more ${'y'.repeat(500)}` })).toBe(320);
  expect(warmOf({ promptText: `${'x'.repeat(5 * TEXT_BLOCK_BYTES)}${'y'.repeat(640)}` })).toBe(160);
  expect(warmOf({ tenant: 'b' })).toBe(0);
  expect(warmOf({ model: 'n' })).toBe(0);
  affinity.close();
});

test('[FA3] a queue on the warm node outweighs its cache', () => {
  const [warm, cold] = [createNode('1', 'a'), createNode('2', 'b')];
  const choice = { numTokens: 400, warmTokens: (node: GatewayNode) => (node === warm ? 320 : 0) };
  warm.numRequests = 2;
  expect(chooseNode([warm, cold], choice, scaleFor(1))).toBe(warm);
  warm.numRequests = 3;
  expect(chooseNode([warm, cold], choice, scaleFor(1))).toBe(cold);
});

test('[FA4] a forged, replayed or reordered event is refused and reported, and nothing of its stream is used', async () => {
  const other = deriveFleetKeys('another secret of 32 characters!!');
  const batch = { epoch: 'one', seq: 2, ts: 0, model: 'm', events: [stored(...blocks)] };
  const forgeries: [string, (node: ReturnType<typeof fakeNode>) => string][] = [
    ['signature', ({ ask }) => writeBatch(other, ask, batch)],
    ['signature', () => writeBatch(keys, 'the stream of another request', batch)],
    ['signature', ({ ask }) => writeBatch(keys, ask, batch).replace('"CPU"', '"GPU"')],
    ['signature', () => JSON.stringify(batch)],
    ['order', ({ ask }) => writeBatch(keys, ask, { ...batch, seq: 3 })],
    ['order', ({ ask }) => writeBatch(keys, ask, { ...batch, epoch: 'two' })],
    ['shape', ({ ask }) => writeBatch(keys, ask, { ...batch, events: [{ type: 'Other' } as never] })],
  ];
  for (const [reason, forge] of forgeries) {
    const one = fakeNode(keys);
    const { affinity, nodes, refusals } = openFleet(one);
    await affinity.checkNode(nodes[0]!, signal);
    one.send(stored(blocks[19]!));
    await expect.poll(() => nodes[0]!.blocks.size).toBe(1);
    one.push(forge(one));
    await expect.poll(() => refusals).toEqual([`1 ${reason}`]);
    expect(nodes[0]!.blocks.size).toBe(0);
    // The node is asked for its health again, and not followed for a while.
    await affinity.checkNode(nodes[0]!, signal);
    expect(one.numStreams).toBe(1);
    affinity.close();
  }
});

test('[FA5] a node with another secret, or without the signature of the fleet, is refused', async () => {
  const other = deriveFleetKeys('another secret of 32 characters!!');
  const { affinity, nodes } = openFleet(fakeNode(other), fakeNode(keys, { sign: other }));
  await expect(affinity.checkNode(nodes[0]!, signal)).rejects.toThrow('another fleet secret');
  await expect(affinity.checkNode(nodes[1]!, signal)).rejects.toThrow('does not have the signature');
});

test('[FA6] a node with another version of a model is refused, and the majority stays', async () => {
  const model = (modelHash: string) => ({ models: [{ id: 'm', aliases: [], modelHash, adapters: ['mine'] }] });
  const { affinity, nodes } = openFleet(fakeNode(keys, model('aa')), fakeNode(keys, model('aa')), fakeNode(keys, model('bb'))); // prettier-ignore
  await affinity.checkNode(nodes[0]!, signal);
  await affinity.checkNode(nodes[1]!, signal);
  nodes[2]!.health = 'unknown';
  const failure = affinity.checkNode(nodes[2]!, signal);
  await expect(failure).rejects.toThrow('its model m is another version: bb instead of aa of 2 nodes');
  await expect(failure).rejects.toBeInstanceOf(RuvLLMError);
  await affinity.checkNode(nodes[0]!, signal);
  expect([reportsModel(nodes[0]!, 'm:mine'), reportsModel(nodes[0]!, 'm:other'), reportsModel(nodes[2]!, 'm')]).toEqual([true, false, false]); // prettier-ignore
  affinity.close();
});

test('[FA6] of as many nodes with each version those stay that are up, and who is down has no vote', async () => {
  const model = (modelHash: string, id = 'm') => ({ models: [{ id, aliases: [], modelHash, adapters: [] }] });
  const states = [model('aa'), model('bb'), model('cc'), model(''), model('dd', 'n')];
  const { affinity, nodes } = openFleet(...states.map((state) => fakeNode(keys, state)));
  const check = async (index: number, health: GatewayNode['health']): Promise<string> => {
    nodes[index]!.health = health;
    const problem = await affinity.checkNode(nodes[index]!, signal).then(() => 'fits', (error: Error) => error.message); // prettier-ignore
    return problem;
  };
  nodes[1]!.health = 'unknown';
  for (const index of [0, 3, 4]) expect(await check(index, 'unknown')).toBe('fits');
  for (const index of [0, 3, 4]) nodes[index]!.health = 'up';
  expect(await check(1, 'unknown')).toBe('its model m is another version: bb instead of aa of 1 nodes');
  expect(await check(1, 'up')).toBe('fits');
  expect(await check(0, 'up')).toBe('fits');
  expect(await check(2, 'unknown')).toBe('its model m is another version: cc instead of aa of 1 nodes');
  nodes[0]!.health = 'down';
  expect(await check(2, 'unknown')).toBe('its model m is another version: cc instead of bb of 1 nodes');
  nodes[1]!.health = 'down';
  expect(await check(2, 'unknown')).toBe('fits');
  // What it served itself before says nothing about what it serves now.
  expect(await check(2, 'unknown')).toBe('fits');
  nodes[2]!.fleet = { ...nodes[2]!.fleet!, models: [{ id: 'm', aliases: [], modelHash: 'old', adapters: [] }] };
  expect(await check(2, 'unknown')).toBe('fits');
  nodes[0]!.health = nodes[2]!.health = 'up';
  nodes[0]!.fleet = nodes[2]!.fleet;
  expect(await check(1, 'unknown')).toBe('its model m is another version: bb instead of cc of 2 nodes');
  affinity.close();
});

test('[FA1] the tokens of a prompt are estimated by those of the last one of its model', async () => {
  const { affinity, nodes } = openFleet(fakeNode(keys));
  const tokensOf = (model: string | null): number => affinity.plan({ ...request, model }).numTokens;
  const learn = (model: string | null, blocksHeader: string): void =>
    affinity.plan({ ...request, model }).learn(nodes[0]!, { [PROMPT_BLOCKS_HEADER]: blocksHeader });
  expect([tokensOf('m'), tokensOf(null)]).toEqual([320, 320]);
  for (const bad of ['0;1;', 'x']) learn('m', bad);
  affinity.plan(request).learn(nodes[0]!, {});
  expect([tokensOf('m'), affinity.numTexts]).toEqual([320, 0]);
  learn('m', writePromptBlocks(blocks.slice(0, 10)));
  expect([tokensOf('m'), tokensOf(null), tokensOf('n')]).toEqual([160, 320, 320]);
  learn(null, writePromptBlocks(blocks.slice(0, 5)));
  expect([tokensOf('m'), tokensOf(null), tokensOf('n'), affinity.numTexts]).toEqual([160, 80, 320, 20]);
});

test('[FA1] a prompt of one block of text is known, too', async () => {
  const one = fakeNode(keys);
  const { affinity, nodes } = openFleet(one);
  await affinity.checkNode(nodes[0]!, signal);
  one.send(stored(blocks[0]!));
  await expect.poll(() => nodes[0]!.blocks.size).toBe(1);
  const short = { ...request, promptText: 'x'.repeat(TEXT_BLOCK_BYTES) };
  affinity.plan(short).learn(nodes[0]!, { [PROMPT_BLOCKS_HEADER]: writePromptBlocks(blocks.slice(0, 1)) });
  expect(affinity.plan(short).warmTokens(nodes[0]!)).toBe(16);
  affinity.close();
});

test('[FA4] a node whose event was refused is followed again after 30 s, and one that started again at once', async () => {
  const state = { epoch: 'one' };
  const one = fakeNode(keys, { state });
  const { affinity, nodes, time, refusals } = openFleet(one);
  const check = (): Promise<void> => affinity.checkNode(nodes[0]!, signal);
  await check();
  await check();
  expect(one.numStreams).toBe(1);
  one.push('forged');
  await expect.poll(() => refusals).toEqual(['1 signature']);
  time.ms = 29_999;
  await check();
  expect(one.numStreams).toBe(1);
  time.ms = 30_000;
  await check();
  expect(one.numStreams).toBe(2);
  state.epoch = 'two';
  await check();
  expect(one.numStreams).toBe(3);
  await settle();
  await check();
  expect(one.numStreams).toBe(3);
  affinity.forgetNode(nodes[0]!);
  await settle();
  await check();
  expect([one.numStreams, refusals.length]).toEqual([4, 1]);
  affinity.close();
});

test('[FA1] a node has as many other requests as it reports more than this gateway has sent it', async () => {
  const { affinity, nodes } = openFleet(fakeNode(keys));
  for (const [numRequests, numOthers] of [[1, 2], [3, 0], [5, 0]] as const) {
    nodes[0]!.numRequests = numRequests;
    await affinity.checkNode(nodes[0]!, signal);
    expect(nodes[0]!.numOtherRequests).toBe(numOthers);
  } // prettier-ignore
  affinity.close();
});

test('[FA4] a broken stream is no refusal', () => {
  const data = { reason: 'size' };
  expect(refusalOf(new RuvLLMError('untrusted', 'too many', { data }))).toBe('size');
  expect(refusalOf(new RuvLLMError('remote_failed', 'gone', { data }))).toBeNull();
  expect(refusalOf(Object.assign(new Error('not ours'), { code: 'untrusted', data }))).toBeNull();
});

test('[FA7] the header of a prompt has at most 256 hashes, and a malformed one is ignored', () => {
  expect(readPromptBlocks(writePromptBlocks(blocks))).toEqual({ numBlocks: 20, stride: 1, hashes: blocks });
  const many = Array.from({ length: 1000 }, (_, i) => i.toString(16).padStart(16, '0'));
  const read = readPromptBlocks(writePromptBlocks(many))!;
  expect(read).toMatchObject({ numBlocks: 1000, stride: 4 });
  expect(read.hashes).toEqual(many.filter((_, i) => i % 4 === 3));
  expect(readPromptBlocks(writePromptBlocks([]))).toEqual({ numBlocks: 0, stride: 1, hashes: [] });
  for (const bad of [undefined, '', '1;1;', '1;0;0123456789abcdef', '2;1;0123456789abcdef', '1;1;XYZ']) {
    expect(readPromptBlocks(bad)).toBeNull();
  }
});

test('[FA8] remembers a bounded number of texts, the latest ones', () => {
  const index = createTextIndex(10);
  for (let i = 0; i < 5; i++) {
    index.learn([`${i}a`, `${i}b`, `${i}c`], 3 * TEXT_BLOCK_BYTES, {
      numBlocks: 3,
      stride: 1,
      hashes: blocks.slice(0, 3),
    });
  }
  expect(index.size).toBe(10);
  expect(index.find(['0a'])).toEqual([]);
  expect(index.find(['4a', '4b', '4c'])).toHaveLength(3);
});

test('[FA9] equal beginnings of texts have equal hashes up to the block in which they differ', () => {
  const owner = { tenant: 'a', model: 'm' };
  const [first, second] = ['x', 'y'].map((end) => hashText('s', owner, encode('z'.repeat(300) + end.repeat(300))));
  expect(first!.slice(0, 2)).toEqual(second!.slice(0, 2));
  expect(first![2]).not.toBe(second![2]);
  expect(hashText('t', owner, encode('z'.repeat(300)))[0]).not.toBe(first![0]);
});

test('[FA10] refuses a short secret, and a question that is old, forged or for another path', () => {
  expect(() => deriveFleetKeys('short')).toThrow('the fleet secret has 5 characters; at least 32');
  const nowMs = 1_700_000_000_000;
  const head = `${nowMs}.${'0'.repeat(8)}-0000-0000-0000-${'0'.repeat(12)}`;
  const ask = `${head}.${keys.sign('ask', `/fleet/state ${head}`)}`;
  expect(isValidAsk(keys, '/fleet/state', nowMs, ask)).toBe(true);
  expect(isValidAsk(keys, '/fleet/state', nowMs + 61_000, ask)).toBe(false);
  expect(isValidAsk(keys, '/fleet/events', nowMs, ask)).toBe(false);
  expect(isValidAsk(deriveFleetKeys(`${SECRET}!`), '/fleet/state', nowMs, ask)).toBe(false);
  for (const bad of [null, '', `${ask}0`]) expect(isValidAsk(keys, '/fleet/state', nowMs, bad)).toBe(false);
});
