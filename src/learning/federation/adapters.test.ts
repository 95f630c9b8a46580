import { beforeEach, describe, expect, test } from 'vitest';
import type { LowRankFactors } from '../../adapters/types.ts';
import { createRandom } from '../../core/random.ts';
import { recordsOf } from '../../memory/test-store.contract.ts';
import type { AdapterEvidence } from './adapter-evidence.ts';
import { signBundle } from './bundle.ts';
import { createTestNode } from './harness.contract.ts';

type Node = ReturnType<typeof createTestNode>;

let [here, there]: Node[] = [];
beforeEach(async () => {
  [here, there] = [createTestNode(), createTestNode()];
  await here.federation.addPeer('acme', { key: there.signer.publicKey(), name: 'berlin' });
});

const random = createRandom(2);
const draw = (length: number): Float32Array => Float32Array.from({ length }, () => random.next() - 0.5);
const factorsOf = (numRows = 6): LowRankFactors => ({ target: 'output', layer: -1, numCols: 8, numRows, rank: 2, scale: 2, a: draw(16), b: draw(2 * numRows) }); // prettier-ignore
const adapter = (path = 'small.gguf', factors = [factorsOf()]) => ({ model: 'small', path, architecture: 'llama', factors }); // prettier-ignore
/** Where the own model lies. */
const receiver = (path: string | null) => ({ space: null, pathOf: () => path });

async function bundleOf(...adapters: ReturnType<typeof adapter>[]) {
  return there.federation.push('acme', there.federation.packAdapters(adapters));
}

async function changed(change: (one: AdapterEvidence) => object) {
  const { format: _format, signature: _signature, ...bundle } = await bundleOf(adapter());
  const { adapters } = JSON.parse(bundle.contents) as { adapters: AdapterEvidence[] };
  return signBundle({ ...bundle, contents: JSON.stringify({ adapters: adapters.map(change) }) }, there.signer);
}

describe('shared adapters', () => {
  test('[FD14] arrive in 8 bits, with the scale in B', async () => {
    const sent = factorsOf();
    const report = await here.federation.pull(
      'acme',
      await bundleOf(adapter('small.gguf', [sent])),
      receiver('small.gguf'),
    );
    expect(report).toMatchObject({ numExamples: 0, numPatterns: 0, adapters: [{ model: 'small' }], refused: [] });
    const [delta] = await here.federation.deltasOf('acme', 'small', 'small.gguf');
    expect(delta).toMatchObject({ id: `federation/${there.signer.publicKey()}`, peer: 'berlin' });
    const [received] = delta!.factors;
    expect(received).toMatchObject({ target: 'output', layer: -1, numCols: 8, numRows: 6, rank: 2, scale: 1 });
    for (const [i, value] of sent.a.entries()) expect(received!.a[i]).toBeCloseTo(value, 2);
    for (const [i, value] of sent.b.entries()) expect(received!.b[i]).toBeCloseTo(2 * value, 1.5);
    expect(await here.federation.status('acme')).toMatchObject({ peers: [{ name: 'berlin', adapters: ['small'] }] });
  });

  test('[FD12] for another model file are refused with both hashes, on arrival and when merged', async () => {
    const [theirs, own] = ['other.gguf', 'small.gguf'].map((path) => here.federation.hashModel(path));
    const bundle = await bundleOf(adapter('other.gguf'));
    await expect(here.federation.pull('acme', bundle, receiver('small.gguf'))).rejects.toMatchObject({ code: 'conflict', data: { theirs, own } }); // prettier-ignore
    expect(await recordsOf(here.store)).toHaveLength(1);
    // A model that is not loaded: stored, and refused when it is merged.
    await here.federation.pull('acme', await bundleOf(adapter('other.gguf')), receiver(null));
    await expect(here.federation.deltasOf('acme', 'small', 'small.gguf')).rejects.toMatchObject({ code: 'conflict', data: { theirs, own } }); // prettier-ignore
    expect(await here.federation.deltasOf('acme', 'large', 'large.gguf')).toEqual([]);
  });

  test('[FD5] [FD9] belong to the tenant, and leave with the peer', async () => {
    await here.federation.pull('acme', await bundleOf(adapter()), receiver(null));
    expect(await here.federation.deltasOf('other', 'small', 'small.gguf')).toEqual([]);
    await here.federation.removePeer('acme', 'berlin');
    expect(await here.federation.deltasOf('acme', 'small', 'small.gguf')).toEqual([]);
  });

  test('[FD4] that are too large are not shared, and refused on arrival', async () => {
    const { adapters, notShared } = there.federation.packAdapters([
      adapter(),
      adapter('small.gguf', [factorsOf(900_000)]),
    ]);
    expect(adapters).toHaveLength(1);
    expect(notShared).toEqual([
      { model: 'small', reason: expect.stringMatching(/^24\d{5} characters besides/) as string },
    ]);
    const { format: _format, signature: _signature, ...bundle } = await bundleOf(adapter());
    const [one] = (JSON.parse(bundle.contents) as { adapters: AdapterEvidence[] }).adapters;
    const sized = (count: number): AdapterEvidence => ({ ...one!, matrices: [{ ...one!.matrices[0]!, b: 'A'.repeat(count), numRows: (count / 4) * 1.5 }] }); // prettier-ignore
    for (const some of [
      [sized(1_200_000), sized(1_200_000)],
      [one!, one!, one!, one!, one!],
    ]) {
      const large = signBundle({ ...bundle, contents: JSON.stringify({ adapters: some }) }, there.signer);
      await expect(here.federation.pull('acme', large)).rejects.toMatchObject({ code: some.length === 2 ? 'limit_exceeded' : 'invalid_option' }); // prettier-ignore
    }
  });

  test('[FD10] malformed ones are refused on arrival', async () => {
    const matrix = (fields: object) => (one: AdapterEvidence) => ({ ...one, matrices: [{ ...one.matrices[0]!, ...fields }] }); // prettier-ignore
    const bad = [
      matrix({ numRows: 7 }),
      matrix({ a: '!' }),
      matrix({ aSteps: [1] }),
      matrix({ bSteps: [1, 1e9] }),
      matrix({ aSteps: [1, -1] }),
      matrix({ target: 'token_embd' }),
      matrix({ more: 1 }),
      (one: AdapterEvidence) => ({ ...one, base: 'abc' }),
      (one: AdapterEvidence) => ({ ...one, matrices: [one.matrices[0]!, one.matrices[0]!] }),
      (one: AdapterEvidence) => ({ ...one, matrices: [] }),
    ];
    for (const [i, change] of bad.entries()) {
      await expect(here.federation.pull('acme', await changed(change)), String(i)).rejects.toMatchObject({
        code: 'invalid_option',
      });
    }
    expect(await here.federation.deltasOf('acme', 'small', 'small.gguf')).toEqual([]);
  });
});
