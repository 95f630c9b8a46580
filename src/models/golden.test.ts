import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { buildRandomModel, type RandomModelOptions } from '../../test/support/random-model.ts';
import { continueGreedily, loadBytes } from '../../test/support/run-model.ts';

/** llama.cpp's results for the same files: logits 100 to 105 after the prompt, and 12 greedy tokens. */
const golden: { options: Partial<RandomModelOptions>; tokens: number[]; logits: number[] }[] = [
  {
    options: { architecture: 'llama' },
    tokens: [16, 29, 82, 264, 11, 73, 88, 73, 88, 73, 88, 155],
    logits: [0.9446, -0.2942, 4.7978, -2.1727, 0.4816, 1.3697],
  },
  {
    options: { architecture: 'qwen2' },
    tokens: [217, 217, 217, 217, 217, 217, 217, 217, 217, 217, 217, 217],
    logits: [0.1743, 2.9667, -1.5354, -7.9316, -2.4855, -0.3888],
  },
  {
    options: { architecture: 'qwen3' },
    tokens: [16, 29, 13, 88, 313, 180, 181, 134, 74, 255, 74, 255],
    logits: [0.9803, -1.1361, 5.4068, -0.2866, -1.0897, 0.9892],
  },
  {
    options: { architecture: 'phi3' },
    tokens: [20, 166, 84, 245, 48, 13, 80, 12, 285, 228, 32, 214],
    logits: [-1.5688, -0.5096, 4.2636, -1.3653, 1.0206, 1.0069],
  },
  {
    options: { architecture: 'gemma2' },
    tokens: [217, 217, 217, 217, 217, 217, 217, 65, 65, 65, 65, 65],
    logits: [-2.7501, 0.3023, -1.4575, -0.7661, -3.7105, 2.8827],
  },
  {
    options: { architecture: 'gemma3' },
    tokens: [217, 217, 13, 13, 13, 13, 13, 13, 13, 193, 193, 193],
    logits: [2.405, 6.1479, -0.2806, 0.0738, -0.0315, -2.9046],
  },
  {
    options: {
      architecture: 'phi3',
      metadata: [{ key: 'phi3.rope.scaling.original_context_length', type: 'u32', value: 256 }],
    },
    tokens: [20, 166, 84, 245, 48, 13, 80, 12, 285, 228, 32, 214],
    logits: [-1.5528, -0.7194, 4.1614, -1.3027, 0.848, 1.0154],
  },
];

const prompt = [1, ...Array.from({ length: 23 }, (_, i) => 3 + ((i * 37) % 300))];
const pageIds = [5, 2, 9];

test.each(golden)('agrees with llama.cpp: $options', async ({ options, tokens, logits }) => {
  const model = await loadBytes(buildRandomModel({ architecture: 'llama', type: 'F32', seed: 11, ...options }), {
    maxContextTokens: 256,
  });
  const result = await continueGreedily(model, prompt, tokens.length, pageIds);
  const last = result.promptLogits.at(-1)!;
  // llama.cpp also rounds queries and attention weights to f16, so the tolerance cannot be smaller.
  logits.forEach((value, i) => expect(Math.abs(last[100 + i]! - value)).toBeLessThan(0.012));
  expect(result.tokens).toEqual(tokens);
});

const stories = fileURLToPath(new URL('../../../shared/models/stories260K-f32.gguf', import.meta.url));
const hasModel = existsSync(stories);
if (!hasModel) console.log('golden text skipped: stories260K-f32.gguf is not in ../shared/models');

test.skipIf(!hasModel)('generates the same story as llama.cpp', async () => {
  const bytes = readFileSync(stories);
  const model = await loadBytes(bytes);
  const { tokens } = await continueGreedily(model, [1], 24, [3, 1, 7]);
  expect(tokens).toEqual([
    403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315, 421, 395, 317, 426, 338, 401, 396, 267, 337, 410, 408, 419,
    292,
  ]);
});
