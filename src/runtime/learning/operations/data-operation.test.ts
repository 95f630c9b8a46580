import { expect, test } from 'vitest';
import { readDataLines } from '../../../learning/training/data/read-lines.ts';
import { createTestLearning } from './harness.contract.ts';

interface Page {
  readonly lines: readonly { readonly id: string }[];
  readonly numLeftOut: number;
  readonly next: string | null;
}

test('[LO24] rated requests of the tenant are lines that training reads, page by page; others are left out', async () => {
  const { run, add, learning } = await createTestLearning();
  const rate = (requestId: string, rating: object) => learning.trajectories.rate('acme', { requestId, ...rating });
  const ids = [await add({ prompt: 'a' }), await add({ prompt: [{ role: 'user', content: 'b' }] }), await add({ prompt: 'c' })]; // prettier-ignore
  await rate(ids[0]!, { thumbs: 'up' });
  await rate(ids[1]!, { correction: 'It sleeps.' });
  await rate(ids[2]!, { thumbs: 'down' });
  await rate(await add({ prompt: 'd' }), { score: 0.5 });
  await rate(await add({ prompt: null }), { thumbs: 'up' });
  await rate(await add({ prompt: [{ role: 'tool', content: 'x' }] }), { thumbs: 'up' });
  await add({ prompt: 'unrated' });
  const pages: Page[] = [];
  for (let after: string | null = null; pages.length === 0 || after !== null; after = pages.at(-1)!.next) {
    pages.push(await run<Page>('learn.data', { limit: 4, ...(after === null ? {} : { after }) }));
  }
  const lines = pages.flatMap((page) => page.lines);
  expect(lines).toEqual([
    { prompt: 'a', completion: 'a blue zog', thumbs: 'up', id: ids[0], source: 'small' },
    { prompt: [{ role: 'user', content: 'b' }], completion: 'a blue zog', thumbs: 'down', correction: 'It sleeps.', id: ids[1], source: 'small' }, // prettier-ignore
    { prompt: 'c', completion: 'a blue zog', thumbs: 'down', id: ids[2], source: 'small' },
  ]);
  expect(pages.reduce((sum, { numLeftOut }) => sum + numLeftOut, 0)).toBe(3);
  expect(readDataLines(lines.map((line) => JSON.stringify(line)).join('\n'), 'export')).toHaveLength(3);
  expect(await run('learn.data', {}, 'bob')).toEqual({ lines: [], numLeftOut: 0, next: null });
  expect(await run<Page>('learn.data', { model: 'other' })).toMatchObject({ lines: [] });
});
