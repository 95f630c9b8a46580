import { expect, test } from 'vitest';
import { expectRefusal, idOf, recordOf, START_MS, type OpenStore } from './store-setup.contract.ts';

const edge = (from: number, to: number, relation: string, weight = 1, confidence = 0.5) => ({
  from: idOf(from),
  to: idOf(to),
  relation,
  weight,
  confidence,
});

export function testEdges(open: OpenStore): void {
  test('[MS12] returns edges unchanged, the heaviest first, by direction and relation', async () => {
    const { store, clock, reopen } = await open();
    await store.put([1, 2, 3, 4].map((i) => recordOf(i)));
    await store.putEdges('alpha', [edge(1, 2, 'cites', 0.25, 1), edge(1, 3, 'follows', -2), edge(2, 1, 'cites', 5, 0)]);
    clock.ms += 7;
    await store.putEdges('alpha', [edge(1, 1, 'self ü', 3), edge(1, 3, 'cites', 4), edge(1, 2, 'cites', 0.75, 0.125)]);
    const current = reopen === null ? store : await reopen();
    const of = async (direction: 'in' | 'out' | 'both', change: object = {}) =>
      (await current.edgesOf('alpha', { ids: [idOf(1)], direction, limit: 100, ...change })).map(
        ({ from, to, relation, weight }) => `${+from.slice(-2)}${relation}${+to.slice(-2)}:${weight}`,
      );
    expect(await of('out')).toEqual(['1cites3:4', '1self ü1:3', '1cites2:0.75', '1follows3:-2']);
    expect(await of('in')).toEqual(['2cites1:5', '1self ü1:3']);
    expect(await of('both')).toEqual(['2cites1:5', '1cites3:4', '1self ü1:3', '1cites2:0.75', '1follows3:-2']);
    expect(await of('both', { limit: 2 })).toEqual(['2cites1:5', '1cites3:4']);
    expect(await of('both', { relations: ['follows', 'self ü'] })).toEqual(['1self ü1:3', '1follows3:-2']);
    expect(await of('both', { relations: [] })).toEqual([]);
    expect(await of('both', { ids: [idOf(1), idOf(2), idOf(2)], relations: ['cites'] })).toEqual(['2cites1:5', '1cites3:4', '1cites2:0.75']); // prettier-ignore
    expect(await of('both', { ids: [] })).toEqual([]);
    expect(await of('both', { ids: [idOf(99)] })).toEqual([]);
    expect(await current.edgesOf('alpha', { ids: [idOf(2)], direction: 'in', limit: 9 })).toEqual([
      { ...edge(1, 2, 'cites', 0.75, 0.125), updatedMs: START_MS + 7 },
    ]);
    const gone = [edge(1, 2, 'cites'), edge(1, 2, 'follows'), edge(2, 1, 'cites'), edge(77, 1, 'cites')];
    expect(await current.deleteEdges('alpha', gone)).toBe(2);
    expect(await of('both')).toEqual(['1cites3:4', '1self ü1:3', '1follows3:-2']);
    expect(await current.stats('alpha')).toMatchObject({ numEdges: 3 });
    await current.checkIntegrity();
  });

  test('[MS12] an edge needs both its records, or nothing of the call is written', async () => {
    const { store } = await open();
    await expectRefusal(store.putEdges('alpha', [edge(1, 2, 'r')]), 'not_found', idOf(1));
    await store.put([recordOf(1), recordOf(2), recordOf(3, { tenant: 'beta' })]);
    await expectRefusal(store.putEdges('alpha', [edge(1, 2, 'r'), edge(1, 3, 'r')]), 'not_found', idOf(3));
    expect((await store.stats(null)).numEdges).toBe(0);
  });

  test('[MS12] weights, confidences and relations out of range are refused', async () => {
    const { store } = await open();
    await store.put([recordOf(1)]);
    const refused = [
      edge(1, 1, 'r', Number.NaN),
      edge(1, 1, 'r', Infinity),
      edge(1, 1, 'r', 1, 1.01),
      edge(1, 1, 'r', 1, -0.01),
      edge(1, 1, ''),
      edge(1, 1, 'x'.repeat(129)),
      { ...edge(1, 1, 'r'), from: 'me' },
      { ...edge(1, 1, 'r'), colour: 1 },
    ];
    for (const one of refused) await expectRefusal(store.putEdges('alpha', [one]), 'invalid_option');
    await expectRefusal(store.putEdges('alpha', []), 'invalid_option', 'edges must be a list of 1 to 1000, got 0');
    const query = { ids: [idOf(1)], direction: 'both', limit: 10 } as const;
    for (const change of [
      { limit: 0 },
      { limit: 1e9 },
      { direction: 'up' },
      { ids: ['me'] },
      { relations: [''] },
      { k: 1 },
    ]) {
      await expectRefusal(store.edgesOf('alpha', { ...query, ...change } as never), 'invalid_option');
    }
  });
}
