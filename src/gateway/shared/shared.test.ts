import { describe, expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createMemoryBus } from '../../../test/support/memory-bus.ts';
import { createAdmission } from '../../runtime/requests/admission.ts';
import { deriveFleetKeys } from '../../server/fleet/fleet-keys.ts';
import { createTextIndex } from '../text-index.ts';
import { ENTRY_LIFE_MS } from './fleet-bus.ts';
import { announceNode, followNodes, readMembers } from './membership.ts';
import { shareTexts } from './shared-texts.ts';
import { createNoteReader, createNoteWriter } from './signed-notes.ts';
import { createTenantUsage } from './tenant-usage.ts';

const keys = deriveFleetKeys('the secret of the fleet in these tests');
const otherKeys = deriveFleetKeys('another secret, of some other fleet');

describe('notes', () => {
  test('[SH1] a note counts once, for its topic, within a minute, with the signature of the fleet', () => {
    const clock = createManualClock();
    const refusals: string[] = [];
    const read = createNoteReader(keys, clock, 'a', (reason) => void refusals.push(reason));
    const write = createNoteWriter(keys, clock, 'a', 'me');
    const first = write({ x: 1 });
    expect(read(first)).toEqual({ sender: 'me', value: { x: 1 } });
    expect(read(first)).toBeNull();
    expect(read(createNoteWriter(otherKeys, clock, 'a', 'me')(1))).toBeNull();
    expect(read(createNoteWriter(keys, clock, 'b', 'me')(1))).toBeNull();
    expect(read(write({ x: 2 }).replace('\\"x\\":2', '\\"x\\":3'))).toBeNull();
    const old = write(1);
    clock.advance(61_000);
    expect(read(old)).toBeNull();
    for (const broken of ['', '{', '[]', '{"sender": 1}']) expect(read(broken)).toBeNull();
    expect(refusals).toEqual(['replay', 'signature', 'signature', 'signature', 'age', 'shape', 'shape', 'shape', 'shape']); // prettier-ignore
    // Of a process that was restarted.
    expect(read(createNoteWriter(keys, clock, 'a', 'me')(3))).toEqual({ sender: 'me', value: 3 });
  });

  test('[SH1] a note may be a minute old or early, and has at most 1 MiB', () => {
    const clock = createManualClock();
    const refusals: string[] = [];
    const read = createNoteReader(keys, clock, 'a', (reason) => void refusals.push(reason));
    const write = createNoteWriter(keys, clock, 'a', 'me');
    const [least, old, early] = [write(1), write(2), createNoteWriter(keys, { ...clock, wallClock: () => clock.wallClock() + 120_001 }, 'a', 'you')(3)]; // prettier-ignore
    expect(read(early)).toBeNull();
    clock.advance(60_000);
    expect(read(least)).toEqual({ sender: 'me', value: 1 });
    clock.advance(1);
    expect([read(old), read(early)]).toEqual([null, { sender: 'you', value: 3 }]);
    const long = write(4);
    expect(read(long.padEnd(2 ** 20 + 1))).toBeNull();
    expect(read(long.padEnd(2 ** 20))).toEqual({ sender: 'me', value: 4 });
    expect(refusals).toEqual(['age', 'age', 'shape']);
  });
});

/** What entries of a bus say. */
function createTexts() {
  const { bus } = createMemoryBus();
  const sent: string[] = [];
  bus.watch((text) => void sent.push(text));
  return { bus, sent };
}

function openMembers() {
  const clock = createManualClock();
  const { bus, state, show, refresh } = createMemoryBus();
  const nodes = new Set<string>();
  const up = new Set<string>();
  const refusals: string[] = [];
  const members = followNodes({
    bus,
    keys,
    clock,
    onJoin: (url) => void nodes.add(url),
    onLeave: (url) => void nodes.delete(url),
    isUp: (url) => up.has(url),
    onRefused: (reason) => void refusals.push(reason),
  });
  return { clock, bus, state, show, refresh, nodes, up, refusals, members };
}

describe('nodes', () => {
  test('[SH2] join when they announce themselves, and leave when they say so', async () => {
    const { bus, nodes, clock } = openMembers();
    const one = announceNode(bus, keys, clock, 'http://one');
    announceNode(bus, keys, clock, 'http://two');
    expect([...nodes]).toEqual(['http://one', 'http://two']);
    await one.leave();
    expect([...nodes]).toEqual(['http://two']);
  });

  test('[SH3] a silent node stays while it answers, or while the bus is away', () => {
    const { bus, nodes, clock, up, state, refresh } = openMembers();
    announceNode(bus, keys, clock, 'http://one');
    up.add('http://one');
    clock.advance(3 * ENTRY_LIFE_MS);
    expect(nodes.size).toBe(1);
    refresh();
    up.clear();
    state.isConnected = false;
    clock.advance(3 * ENTRY_LIFE_MS);
    expect(nodes.size).toBe(1);
    state.isConnected = true;
    clock.advance(ENTRY_LIFE_MS / 2);
    expect(nodes.size).toBe(1);
    for (let i = 0; i < 10; i++) clock.advance(ENTRY_LIFE_MS / 5);
    expect(nodes.size).toBe(0);
    refresh();
    expect(nodes.size).toBe(1);
  });

  test('[SH3] a silent node leaves after 10 s, and after the end nobody joins or leaves', () => {
    const { bus, nodes, clock, members } = openMembers();
    announceNode(bus, keys, clock, 'http://one');
    clock.advance(1);
    announceNode(bus, keys, clock, 'http://two');
    const sizes = [1999, 2000, 2000, 2000, 2000, 2000].map((ms) => {
      clock.advance(ms);
      return nodes.size;
    });
    expect(sizes).toEqual([2, 2, 2, 2, 1, 0]);
    announceNode(bus, keys, clock, 'http://one');
    members.stop();
    announceNode(bus, keys, clock, 'http://three');
    clock.advance(3 * ENTRY_LIFE_MS);
    expect([[...nodes], clock.numTimers]).toEqual([['http://one'], 0]);
  });

  test('[SH4] are those that announce themselves in this fleet and have not left', async () => {
    const { bus, sent } = createTexts();
    const clock = createManualClock();
    announceNode(bus, keys, clock, 'http://one');
    announceNode(bus, otherKeys, clock, 'http://evil');
    const leaving = announceNode(bus, keys, clock, 'http://two');
    expect(readMembers(keys, clock, [...sent, '{}'])).toEqual(['http://one', 'http://two']);
    sent.splice(2);
    await leaving.leave();
    expect(readMembers(keys, clock, sent)).toEqual(['http://one']);
  });

  test('[SH4] a node of another fleet does not join, and cannot send one away', () => {
    const { bus, nodes, clock, refusals } = openMembers();
    announceNode(bus, keys, clock, 'http://one');
    void announceNode(bus, otherKeys, clock, 'http://one').leave();
    announceNode(bus, otherKeys, clock, 'http://evil');
    expect([...nodes]).toEqual(['http://one']);
    expect(new Set(refusals)).toEqual(new Set(['signature']));
  });
});

function openGateways(limits = {}) {
  const clock = createManualClock();
  const { bus, state, sent } = createMemoryBus();
  const open = () => {
    const usage = createTenantUsage({ bus, keys, clock, onRefused: () => {} });
    const admission = createAdmission({ maxRequests: 100, maxRequestsPerTenant: 3, requestsPerMinute: 60, burst: 10, ...limits }, clock, usage); // prettier-ignore
    const enter = (tenant: string): (() => void) => {
      const ends = [admission.enter(tenant), usage.enter(tenant)];
      return () => ends.forEach((end) => end());
    };
    return { usage, enter };
  };
  const gateways = [open(), open()] as const;
  clock.advance(1);
  return { clock, state, sent, gateways, open };
}

describe('limits per tenant', () => {
  test('[SH5] requests in progress count at all gateways, for their tenant only', () => {
    const { clock, gateways } = openGateways();
    const [one, two] = gateways;
    expect(one.usage.numOthers).toBe(1);
    const ends = [one.enter('a'), one.enter('a'), two.enter('a')];
    clock.advance(100);
    expect(() => one.enter('a')).toThrow('3 of your requests');
    expect(() => two.enter('a')).toThrow('3 of your requests');
    two.enter('b')();
    ends[0]!();
    clock.advance(100);
    two.enter('a')();
  });

  test('[SH6] the rate of a tenant counts over all gateways', () => {
    const { clock, gateways } = openGateways();
    const [one, two] = gateways;
    for (let i = 0; i < 10; i++) one.enter('a')();
    clock.advance(100);
    expect(() => two.enter('a')).toThrow('more than 60 requests per minute');
    two.enter('b')();
    clock.advance(1000);
    two.enter('a')();
    expect(() => one.enter('a')).not.toThrow();
  });

  test('[SH7] a gateway that is gone stops counting; one that comes does not bring its past', () => {
    const { clock, gateways, state, open } = openGateways({ burst: 10 });
    const [one, two] = gateways;
    for (let i = 0; i < 3; i++) one.enter('a');
    clock.advance(100);
    expect(() => two.enter('a')).toThrow('3 of your requests');
    one.usage.stop();
    clock.advance(6000);
    expect(two.usage.numOthers).toBe(0);
    two.enter('a')();
    state.isConnected = false;
    two.enter('a')();
    state.isConnected = true;
    for (let i = 0; i < 8; i++) two.enter('c')();
    clock.advance(100);
    const late = open();
    clock.advance(100);
    late.enter('c')();
  });

  test('[SH7] a gateway counts for 5 s after its last note, and a note of another shape does not', () => {
    const { clock, gateways } = openGateways();
    const [one, two] = gateways;
    one.usage.stop();
    clock.advance(5000);
    expect(two.usage.numOthers).toBe(1);
    clock.advance(1);
    expect(two.usage.numOthers).toBe(0);
    const { bus } = createMemoryBus();
    const usage = createTenantUsage({ bus, keys, clock, onRefused: () => {} });
    const write = createNoteWriter(keys, clock, 'usage', 'x');
    for (const rows of [{}, [1], [[1, 1, 1]], [['a', -1, 0]], [['a', 0, -1]], [['a', 1.5, 0]], [['a', 0, '1']]]) bus.publish('usage', write(rows)); // prettier-ignore
    expect(usage.numOthers).toBe(0);
    for (const rows of [[], [['a', 0, 0]]]) bus.publish('usage', write(rows));
    expect(usage.numOthers).toBe(1);
  });

  test('[SH5] a change is sent after 50 ms, whatever follows it', () => {
    const { clock, gateways, sent } = openGateways();
    const [one] = gateways;
    const before = sent.length;
    one.enter('a');
    clock.advance(40);
    one.enter('b');
    clock.advance(9);
    expect(sent.length).toBe(before);
    clock.advance(1);
    expect(sent.length).toBe(before + 1);
  });

  test('[SH8] names of tenants are not in the messages', () => {
    const { clock, gateways, sent } = openGateways();
    gateways[0].enter('alice-of-wonderland');
    clock.advance(100);
    expect(sent.length).toBeGreaterThan(2);
    expect(sent.join()).not.toContain('alice');
  });
});

test('[SH9] a gateway knows the blocks of texts that another one has routed', () => {
  const clock = createManualClock();
  const { bus } = createMemoryBus();
  const refusals: string[] = [];
  const indexes = [createTextIndex(), createTextIndex()] as const;
  const [share] = indexes.map((texts) => shareTexts({ bus, keys, clock, texts, onRefused: (reason) => void refusals.push(reason) })); // prettier-ignore
  const hashes = ['aaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbb'];
  const prompt = { numBlocks: 4, stride: 1, hashes: ['1111111111111111', '2222222222222222', '3333333333333333', '4444444444444444'] }; // prettier-ignore
  share!(indexes[0].learn(hashes, 256, prompt));
  expect(indexes[1].find(hashes)).toEqual(indexes[0].find(hashes));
  expect(indexes[1].find(hashes).at(-1)).toEqual({ block: '4444444444444444', numBlocks: 4 });
  expect(indexes[0].learn(hashes, 256, prompt)).toEqual([]);
  bus.publish('texts', createNoteWriter(keys, clock, 'texts', 'x')([['not a hash', '', 1]]));
  bus.publish('texts', createNoteWriter(otherKeys, clock, 'texts', 'x')([['cccccccccccccccc', '', 1]]));
  expect(refusals.filter((reason) => reason === 'shape')).toHaveLength(2);
  expect(refusals).toContain('signature');
  expect(indexes[1].size).toBe(2);
});

test.each([
  ['no place', [], true],
  ['a place without a block', [['aaaaaaaa', '', 0]], true],
  ['a block', [['aaaaaaaa', '11111111', 3]], true],
  ['a block that is none', [['aaaaaaaa', 'x', 3]], false],
  ['a text that is none', [['x', '11111111', 3]], false],
  ['a number below 0', [['aaaaaaaa', '11111111', -1]], false],
  ['a part of a number', [['aaaaaaaa', '11111111', 0.5]], false],
  ['no list', { length: 0 }, false],
  ['no list of lists', ['aaaaaaaa'], false],
  ['4096 places', Array.from({ length: 4096 }, () => ['aaaaaaaa', '', 0]), true],
  ['4097 places', Array.from({ length: 4097 }, () => ['aaaaaaaa', '', 0]), false],
])('[SH9] a note with %s', (_, rows, isUsed) => {
  const clock = createManualClock();
  const { bus, sent } = createMemoryBus();
  const refusals: string[] = [];
  const share = shareTexts({ bus, keys, clock, texts: createTextIndex(), onRefused: (reason) => void refusals.push(reason) }); // prettier-ignore
  bus.publish('texts', createNoteWriter(keys, clock, 'texts', 'x')(rows));
  expect(refusals).toEqual(isUsed ? [] : ['shape']);
  share([]);
  expect(sent).toHaveLength(1);
});
