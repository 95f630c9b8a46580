import { expect, test } from 'vitest';
import { createToyModel, type ToyModel, toyLogits } from './toy-model.ts';

const PAGE_TOKENS = 4;

/** Runs `tokenIds` as one sequence and requests the last row's logits. */
function run(model: ToyModel, tokenIds: number[], start: number, pageIds: number[]): Promise<Float32Array> {
  const positions = tokenIds.map((_, row) => start + row);
  const slots = positions.map((p) => pageIds[Math.floor(p / PAGE_TOKENS)]! * PAGE_TOKENS + (p % PAGE_TOKENS));
  const sequences = [{ firstRow: 0, numRows: tokenIds.length, contextTokens: start + tokenIds.length, pageIds }];
  return model.forward({ tokenIds, positions, slots, sequences, logitRows: [tokenIds.length - 1] });
}

const tokens = [5, 0, 60, 7, 8, 9, 10, 11, 1, 2];

async function filled(): Promise<ToyModel> {
  const model = createToyModel({ pageTokens: PAGE_TOKENS, packed: true, limits: { numPages: 8 } });
  expect(await run(model, tokens, 0, [3, 1, 0])).toEqual(toyLogits(tokens));
  return model;
}

test('reads the same from packed and moved pages', async () => {
  const model = await filled();
  const { pages } = model;
  expect(pages).toMatchObject({ pageTokens: 4, pageBytes: 32, packed: { pageBytes: 12, unitBytes: 4 } });
  await pages.packPages([{ from: 3, to: 41 }, { from: 1, to: 44 }]); // prettier-ignore
  pages.bytesOf('float', 3).fill(0xff);
  pages.bytesOf('float', 1).set(pages.bytesOf('float', 0));
  pages.bytesOf('float', 0).fill(0);
  expect(await run(model, [3], 10, [~41, ~44, 1])).toEqual(toyLogits([...tokens, 3]));
  pages.bytesOf('packed', 60).set(pages.bytesOf('packed', 44));
  pages.bytesOf('packed', 44).fill(0);
  expect(await run(model, [4], 11, [~41, ~60, 1])).toEqual(toyLogits([...tokens, 3, 4]));
});

test('a wrong page throws', async () => {
  const model = await filled();
  await model.pages.packPages([{ from: 3, to: 41 }]);
  for (const first of [0, 1, 2, ~40, ~42, ~24, ~63, 8]) {
    await expect(run(model, [3], 10, [first, 1, 0]), `${first}`).rejects.toThrow(/expected 0|takes the bytes/);
  }
});

test('packing pages that must not be packed throws', async () => {
  const { pages } = await filled();
  await expect(pages.packPages([{ from: 0, to: 41 }])).rejects.toThrow('slot 2 of page 0');
  await expect(pages.packPages([{ from: 3, to: 62 }])).rejects.toThrow('takes the bytes 248 to 260 of 256');
  await expect(pages.packPages([{ from: 3, to: 22 }])).rejects.toThrow('float page 3 overlaps packed page 22');
  await expect(pages.packPages([{ from: 3, to: 41 }, { from: 1, to: 43 }])).rejects.toThrow('overlaps'); // prettier-ignore
  await expect(createToyModel().pages.packPages([{ from: 0, to: 1 }])).rejects.toThrow('no packed pages');
});

test('rejects page access during a step, and a step during packing', async () => {
  const model = await filled();
  const packing = model.pages.packPages([{ from: 3, to: 41 }]);
  expect(() => model.pages.bytesOf('float', 3)).toThrow('during packing');
  await expect(run(model, [3], 10, [3, 1, 0])).rejects.toThrow('a step began during packing');
  await packing;
  const step = run(model, [3], 10, [3, 1, 0]);
  expect(() => model.pages.bytesOf('float', 3)).toThrow('during a step');
  await step;
});
