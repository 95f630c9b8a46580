import { beforeEach, describe, expect, test } from 'vitest';
import { recordsOf } from '../../memory/test-store.contract.ts';
import { forgetRouters, ROUTER_LINE } from '../router-training/router-line.ts';
import { type Bundle, MAX_CONTENTS_CHARS, signBundle } from './bundle.ts';
import { MAX_BUNDLES_PER_DAY } from './federation.ts';
import { createTestNode, createTestSigner } from './harness.contract.ts';

type Node = ReturnType<typeof createTestNode>;
const DAY_MS = 86_400_000;

let [here, there]: Node[] = [];
beforeEach(async () => {
  [here, there] = [createTestNode(), createTestNode()];
  await here.federation.addPeer('acme', { key: there.signer.publicKey(), name: 'there' });
});

/** Signs changed fields again, as their owner could. */
function resign(bundle: Bundle, changes: Partial<Bundle>, signer = there.signer): Bundle {
  const { format: _format, signature: _signature, ...unsigned } = { ...bundle, ...changes };
  return signBundle(unsigned, signer);
}

/** The bundle with another first rating. */
function withExample(bundle: Bundle, changes: object): Bundle {
  const contents = JSON.parse(bundle.contents) as { routes: { examples: object[] } };
  Object.assign(contents.routes.examples[0]!, changes);
  return resign(bundle, { contents: JSON.stringify(contents) });
}

describe('bundles', () => {
  test('[FD1] refuses an unsigned, forged or changed bundle, and writes nothing', async () => {
    await there.collect(20, 1);
    const bundle = await there.federation.push('acme');
    const { signature: _, ...unsigned } = bundle;
    await expect(here.federation.pull('acme', unsigned)).rejects.toMatchObject({ code: 'invalid_option' });
    const forged = resign(bundle, {}, createTestSigner());
    const other = (text: string): string => (text.startsWith('A') ? `B${text.slice(1)}` : `A${text.slice(1)}`);
    const changed: Partial<Bundle>[] = [
      { contents: bundle.contents.replace('"quality":1', '"quality":0') },
      { sequence: bundle.sequence + 1 },
      { expiresMs: bundle.expiresMs + 1 },
      { createdMs: bundle.createdMs - 1 },
      { stream: '0'.repeat(32) },
      { signature: other(bundle.signature) },
    ];
    for (const one of [forged, ...changed.map((change) => ({ ...bundle, ...change }))]) {
      await expect(here.federation.pull('acme', one)).rejects.toMatchObject({ code: 'untrusted' });
    }
    expect(await recordsOf(here.store)).toEqual([]);
    expect(await here.federation.pull('acme', bundle)).toMatchObject({ peer: 'there', numExamples: 20 });
  });

  test('[FD1] refuses a signed bundle of a key that is no peer', async () => {
    const stranger = createTestNode();
    await stranger.collect(20, 1);
    await expect(here.federation.pull('acme', await stranger.federation.push('acme'))).rejects.toMatchObject({
      code: 'untrusted',
      message: expect.stringContaining(stranger.signer.publicKey()) as string,
    });
    expect(await recordsOf(here.store)).toEqual([]);
  });

  test('[FD2] has no texts, ids or tenant names unless texts are allowed', async () => {
    await there.rate('acme', { model: 'small', query: 'secret plans of Zork', score: 1, sessionId: 'session-7' });
    const plain = JSON.stringify(await there.federation.push('acme'));
    for (const word of ['secret', 'Zork', 'session-7', 'acme', '0199a0b4']) expect(plain).not.toContain(word);
    const { contents } = await there.federation.push('acme', { terms: false });
    expect(JSON.parse(contents)).toMatchObject({ routes: { examples: [{ terms: '', quality: 1 }] } });
    expect((await there.federation.push('acme', { texts: true })).contents).toContain('secret plans of Zork');
  });

  test('[FD3] accepts a bundle once, also after the peer was removed and added again', async () => {
    await there.collect(20, 1);
    const first = await there.federation.push('acme');
    const second = await there.federation.push('acme');
    expect(second.sequence).toBeGreaterThan(first.sequence);
    await here.federation.pull('acme', second);
    for (const old of [first, second]) {
      await expect(here.federation.pull('acme', old)).rejects.toMatchObject({ code: 'conflict' });
    }
    await here.federation.removePeer('acme', 'there');
    await here.federation.addPeer('acme', { key: there.signer.publicKey(), name: 'again' });
    await expect(here.federation.pull('acme', second)).rejects.toMatchObject({ code: 'conflict' });
    expect(await here.federation.status('acme')).toMatchObject({
      peers: [{ name: 'again', numRefused: 3, lastRefusal: expect.stringContaining('cannot be used again') as string }],
    });
  });

  test('[FD3] refuses expired bundles, those of the future and those that live too long', async () => {
    await there.collect(20, 1);
    const bundle = await there.federation.push('acme', { lifetimeMs: DAY_MS });
    here.services.timeMs += DAY_MS;
    await expect(here.federation.pull('acme', bundle)).rejects.toThrow(/expired 0 s ago/);
    here.services.timeMs -= 2 * DAY_MS;
    await expect(here.federation.pull('acme', bundle)).rejects.toThrow(/86400 s in the future/);
    here.services.timeMs += DAY_MS;
    const eternal = resign(bundle, { expiresMs: bundle.createdMs + 91 * DAY_MS });
    await expect(here.federation.pull('acme', eternal)).rejects.toThrow(/valid for 91 days/);
    await expect(there.federation.push('acme', { lifetimeMs: 91 * DAY_MS })).rejects.toMatchObject({
      code: 'invalid_option',
    });
    expect(await here.federation.pull('acme', bundle)).toMatchObject({ numExamples: 20 });
  });

  test('[FD4] refuses oversized bundles and too many a day, and stores nothing of them', async () => {
    await there.collect(20, 1);
    const bundle = await there.federation.push('acme');
    await expect(
      here.federation.pull('acme', { ...bundle, contents: ' '.repeat(MAX_CONTENTS_CHARS + 1) }),
    ).rejects.toMatchObject({ code: 'limit_exceeded', data: { numChars: MAX_CONTENTS_CHARS + 1 } });
    const contents = JSON.parse(bundle.contents) as { routes: { examples: object[] } };
    contents.routes.examples = Array.from({ length: 1001 }, () => contents.routes.examples[0]!);
    const many = resign(bundle, { contents: JSON.stringify(contents) });
    await expect(here.federation.pull('acme', many)).rejects.toMatchObject({ code: 'invalid_option' });
    let sequence = bundle.sequence;
    for (let i = 0; i < MAX_BUNDLES_PER_DAY; i++) await here.federation.pull('acme', resign(bundle, { sequence: ++sequence })); // prettier-ignore
    const before = (await recordsOf(here.store)).length;
    const next = withExample(resign(bundle, { sequence: ++sequence }), { quality: 0.123 });
    await expect(here.federation.pull('acme', next)).rejects.toMatchObject({
      code: 'rate_limit_exceeded',
      data: { retryAfterMs: DAY_MS, limit: MAX_BUNDLES_PER_DAY },
    });
    expect((await recordsOf(here.store)).length).toBe(before);
    here.services.timeMs += DAY_MS;
    expect(await here.federation.pull('acme', next)).toMatchObject({ sequence });
    // The replaced one is deleted.
    expect((await recordsOf(here.store)).length).toBe(before);
  });

  test('[FD5] keeps tenants apart on both sides', async () => {
    await there.collect(20, 1);
    await there.collect(20, 2, { tenant: 'other' });
    const [mine, foreign] = [await there.federation.push('acme'), await there.federation.push('other')];
    expect(mine.stream).not.toBe(foreign.stream);
    await expect(here.federation.pull('bob', mine)).rejects.toMatchObject({ code: 'untrusted' });
    await here.federation.pull('acme', mine);
    const later = resign(foreign, { sequence: mine.sequence + 1 });
    await expect(here.federation.pull('acme', later)).rejects.toThrow(/another tenant of its sender/);
    expect(await here.federation.routesOf('bob', ['small', 'large'], null)).toEqual([]);
    expect(await here.federation.status('bob')).toMatchObject({ peers: [] });
  });

  test('[FD6] shares no ratings that it received', async () => {
    await there.collect(30, 1);
    await here.collect(20, 2);
    await here.federation.pull('acme', await there.federation.push('acme'));
    const { contents } = await here.federation.push('acme');
    expect((JSON.parse(contents) as { routes: { examples: unknown[] } }).routes.examples.length).toBe(20);
  });

  test('[FD10] refuses malformed numbers and fields', async () => {
    await there.collect(20, 1);
    const bundle = await there.federation.push('acme');
    const query = (value: number): string => Buffer.from(new Float32Array(32).fill(value).buffer).toString('base64');
    for (const bad of [
      { quality: 2 },
      { quality: -0.1 },
      { propensity: 0 },
      { candidate: 2 },
      { query: query(NaN) },
      { query: query(1e30) },
      { query: 'AAAA' },
      { terms: Buffer.from(Uint16Array.of(2048, 1).buffer).toString('base64') },
      { terms: '*' },
      { secret: 1 },
    ]) {
      await expect(here.federation.pull('acme', withExample(bundle, bad)), JSON.stringify(bad)).rejects.toMatchObject({
        code: 'invalid_option',
      });
    }
    await expect(here.federation.pull('acme', resign(bundle, { contents: '{' }))).rejects.toThrow(/not JSON/);
    for (const value of [null, 1, 'x', [], { ...bundle, more: 1 }]) {
      await expect(here.federation.pull('acme', value)).rejects.toMatchObject({ code: 'invalid_option' });
    }
  });

  test('rejects names, keys and counts of peers that cannot be right', async () => {
    const { federation, signer } = here;
    for (const peer of [
      { key: signer.publicKey(), name: 'self' },
      { key: createTestSigner().publicKey(), name: 'there' },
      { key: createTestSigner().publicKey(), name: 'a b' },
    ]) {
      await expect(federation.addPeer('acme', peer)).rejects.toMatchObject({ code: 'invalid_option' });
    }
    for (let i = 1; i < 16; i++) await federation.addPeer('acme', { key: createTestSigner().publicKey(), name: `p${i}` }); // prettier-ignore
    await expect(federation.addPeer('acme', { key: createTestSigner().publicKey(), name: 'p17' })).rejects.toThrow(/16 peers/); // prettier-ignore
    await expect(federation.removePeer('acme', 'nobody')).rejects.toMatchObject({ code: 'not_found' });
    await expect(createTestNode().federation.push('acme')).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('a router that learns from peers', () => {
  test('[FD7] ratings of a peer about topics that are new here improve the router that serves', async () => {
    await here.collectTopics(200, 1);
    await there.collectTopics(250, 2);
    await here.trainer.train('acme', 'operator');
    const before = await here.numTopicsRight();
    await here.federation.pull('acme', await there.federation.push('acme'));
    const { version } = await here.trainer.train('acme', 'operator');
    expect(version?.isAccepted, version?.reason).toBe(true);
    expect(version!.contents).toMatchObject({ peers: [{ peer: 'there', isUsed: true }] });
    expect(version!.reason).toContain('200 ratings of there used');
    expect((await here.numTopicsRight()) - before).toBeGreaterThan(10);
  });

  test('[FD7] a new bundle is a reason to train again, once', async () => {
    await here.collect(20, 1);
    await there.collect(20, 2);
    await here.trainer.maybeTrain('acme');
    expect(await here.trainer.maybeTrain('acme')).toBeNull();
    await here.federation.pull('acme', await there.federation.push('acme'));
    expect((await here.trainer.maybeTrain('acme'))?.version?.metrics).toHaveProperty('peer_revision');
    expect(await here.trainer.maybeTrain('acme')).toBeNull();
  });

  test('[FD8] rejects a peer that turns all ratings around, and keeps the honest one', async () => {
    const liar = createTestNode();
    await here.federation.addPeer('acme', { key: liar.signer.publicKey(), name: 'liar' });
    await here.collect(80, 1);
    await there.collect(150, 2);
    await liar.collect(150, 3, { isLying: true });
    await here.federation.pull('acme', await there.federation.push('acme'));
    await here.federation.pull('acme', await liar.federation.push('acme'));
    const { version } = await here.trainer.train('acme', 'operator');
    expect(version!.contents).toMatchObject({
      peers: [
        { peer: 'there', isUsed: true },
        { peer: 'liar', isUsed: false, reason: expect.stringMatching(/^rejected: the error .* changes by/) as string },
      ],
    });
    expect(await here.numRight()).toBeGreaterThan(90);
    expect(version!.learnedFrom.filter((id) => id.startsWith('federation/'))).toEqual([
      `federation/${there.signer.publicKey()}`,
    ]);
  });

  test('[FD9] removing a peer withdraws the router that learned from it; expiry ends its use', async () => {
    await here.collect(24, 1);
    await there.collect(200, 2);
    await here.federation.pull('acme', await there.federation.push('acme', { lifetimeMs: DAY_MS }));
    await here.trainer.train('acme', 'operator');
    expect(await here.versions.active('acme', ROUTER_LINE)).not.toBeNull();
    expect(await here.federation.routesOf('acme', ['small', 'large'], null)).toHaveLength(1);
    const { id } = await here.federation.removePeer('acme', 'there');
    const { versions, blobs, policies } = here;
    expect(await forgetRouters({ versions, blobs, policies: () => policies }, 'acme', new Set([id]))).toHaveLength(1);
    expect(await versions.active('acme', ROUTER_LINE)).toBeNull();
    expect(await here.federation.routesOf('acme', ['small', 'large'], null)).toEqual([]);

    await here.federation.addPeer('acme', { key: there.signer.publicKey(), name: 'there' });
    there.services.timeMs += 1;
    await here.federation.pull('acme', await there.federation.push('acme', { lifetimeMs: DAY_MS }));
    expect(await here.federation.revision('acme')).toBeGreaterThan(0);
    here.services.timeMs += DAY_MS + 1;
    expect(await here.federation.routesOf('acme', ['small', 'large'], null)).toEqual([]);
    expect(await here.federation.revision('acme')).toBe(0);
    expect(await here.federation.status('acme')).toMatchObject({ peers: [{ isExpired: true }] });
  });

  test('[FD10] ratings of other candidates are left out', async () => {
    await there.collect(20, 1);
    await here.federation.pull('acme', await there.federation.push('acme'));
    const [peer] = await here.federation.routesOf('acme', ['large', 'other'], null);
    expect(peer!.examples.map(({ candidate }) => candidate)).toEqual(Array.from({ length: 10 }, () => 0));
  });
});
