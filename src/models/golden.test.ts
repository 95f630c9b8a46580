import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { graniteExperts } from '../../test/support/random-experts.ts';
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
    options: { architecture: 'gemma3n' },
    tokens: [71, 71, 71, 71, 71, 71, 71, 71, 135, 73, 73, 64],
    logits: [-2.4947, 2.0063, 2.5803, -0.8869, 2.9285, 7.0705],
  },
  {
    options: { architecture: 'gemma4', seed: 13 },
    tokens: [284, 64, 127, 260, 64, 127, 127, 289, 64, 127, 169, 27],
    logits: [1.6928, -1.5267, -0.7431, 2.6458, -0.1492, 4.0146],
  },
  {
    options: {
      architecture: 'gemma4',
      shape: { numLayers: 6, experts: { numExperts: 8, numUsed: 3, feedForwardDim: 64 } },
    },
    tokens: [250, 137, 139, 278, 256, 278, 159, 278, 217, 269, 313, 113],
    logits: [2.201, -1.2205, 0.729, -0.5783, -1.1408, -1.0275],
  },
  {
    options: { architecture: 'qwen3moe' },
    tokens: [16, 73, 304, 43, 119, 214, 35, 253, 51, 12, 285, 311],
    logits: [0.0293, -1.6487, 4.8168, 0.8913, -0.2665, 0.6178],
  },
  {
    options: { architecture: 'qwen2moe' },
    tokens: [129, 292, 50, 171, 307, 33, 7, 118, 296, 13, 27, 214],
    logits: [-1.0374, 0.1751, 1.3715, -0.5865, -0.2471, 3.8758],
  },
  {
    options: { architecture: 'gpt-oss' },
    tokens: [128, 212, 246, 253, 191, 283, 0, 217, 129, 228, 263, 309],
    logits: [-1.3402, -1.9738, 2.0212, 2.9219, 1.031, 0.309],
  },
  {
    options: { architecture: 'gemma' },
    tokens: [217, 217, 217, 217, 217, 217, 217, 217, 217, 217, 217, 217],
    logits: [-3.6919, 5.5381, -1.4357, -2.4776, -2.5965, -3.6294],
  },
  {
    options: { architecture: 'smollm3' },
    tokens: [274, 196, 196, 196, 145, 145, 145, 145, 145, 145, 242, 242],
    logits: [-1.3823, -0.4815, 2.2037, -3.0457, -2.5458, -0.5877],
  },
  {
    options: { architecture: 'olmo2' },
    tokens: [145, 118, 126, 258, 271, 250, 141, 0, 140, 300, 300, 138],
    logits: [-3.9805, -1.4831, 1.6998, -0.2829, -1.6658, 3.6569],
  },
  {
    options: { architecture: 'granite' },
    tokens: [217, 217, 217, 217, 217, 217, 217, 217, 217, 217, 217, 217],
    logits: [-7.3646, 11.6188, -1.5427, -9.36, -7.9801, -2.3736],
  },
  {
    options: { architecture: 'glm4' },
    tokens: [13, 147, 220, 13, 220, 13, 243, 109, 260, 13, 243, 109],
    logits: [-3.4093, -1.8794, 2.744, 3.3066, -0.5391, 1.1968],
  },
  {
    options: { architecture: 'phi2' },
    tokens: [16, 160, 135, 25, 283, 0, 41, 138, 15, 87, 206, 12],
    logits: [3.3289, -1.1888, -2.7641, -0.9085, 1.0514, 1.724],
  },
  {
    options: { architecture: 'starcoder2' },
    tokens: [160, 160, 160, 160, 160, 160, 160, 160, 160, 160, 160, 160],
    logits: [0.5202, 3.1189, -1.4145, -0.6923, 2.1714, 0.371],
  },
  {
    options: { architecture: 'command-r' },
    tokens: [217, 217, 217, 137, 137, 137, 137, 137, 137, 137, 137, 137],
    logits: [-2.0894, 2.0559, 1.1155, -1.6612, -0.9396, -1.2059],
  },
  {
    options: { architecture: 'cohere2' },
    tokens: [217, 217, 279, 8, 8, 8, 318, 115, 115, 115, 240, 240],
    logits: [1.7934, 3.7725, -1.7532, 0.3075, 1.204, 0.9596],
  },
  {
    options: { architecture: 'lfm2' },
    tokens: [264, 9, 293, 212, 233, 171, 242, 11, 242, 297, 148, 231],
    logits: [0.4325, 0.7215, 3.426, -8.6536, -3.4026, -5.9345],
  },
  {
    options: { architecture: 'lfm2moe' },
    tokens: [217, 178, 222, 207, 283, 301, 172, 100, 7, 285, 58, 285],
    logits: [0.535, 1.4596, 3.5195, -8.7014, -2.8101, -5.2579],
  },
  {
    options: { architecture: 'granitehybrid' },
    tokens: [217, 217, 217, 217, 217, 217, 217, 217, 217, 217, 217, 217],
    logits: [-6.6976, 2.774, 0.3663, -8.3815, -5.7145, -8.7046],
  },
  {
    options: { architecture: 'granitehybrid', shape: { experts: graniteExperts(8, 64, 96) } },
    tokens: [217, 217, 217, 217, 217, 217, 217, 217, 217, 217, 217, 217],
    logits: [-3.5334, 3.5743, 5.4301, -10.0612, -7.2865, -4.3809],
  },
  {
    options: { architecture: 'granitemoe' },
    tokens: [217, 217, 217, 217, 217, 217, 217, 217, 217, 217, 217, 217],
    logits: [-9.3543, 11.2222, 1.4226, -5.3933, -7.5139, -0.111],
  },
  {
    options: { architecture: 'deepseek2' },
    tokens: [20, 251, 279, 128, 212, 23, 183, 229, 17, 52, 33, 7],
    logits: [-0.7991, -1.744, 3.7156, 0.0035, -0.359, 3.8394],
  },
  {
    options: { architecture: 'falcon-h1' },
    tokens: [125, 275, 53, 257, 63, 191, 181, 315, 52, 87, 206, 181],
    logits: [-1.6926, -1.5842, 4.9432, -1.0668, 2.1931, 5.2817],
  },
  {
    options: { architecture: 'qwen3next' },
    tokens: [129, 88, 82, 280, 71, 51, 305, 50, 226, 238, 169, 155],
    logits: [-1.0226, -2.0961, 2.3108, -0.2235, 0.0579, 2.3166],
  },
  {
    options: { architecture: 'qwen3next', shape: { isStacked: true } },
    tokens: [129, 292, 213, 168, 260, 96, 27, 214, 20, 251, 307, 33],
    logits: [-1.5185, -1.2574, 2.9197, 0.9266, -0.5861, 2.4679],
  },
  {
    options: { architecture: 'qwen35' },
    tokens: [16, 29, 33, 22, 273, 218, 82, 298, 33, 22, 273, 218],
    logits: [-0.7229, -0.2264, 3.8469, -0.8253, 0.3034, 1.1948],
  },
  {
    options: { architecture: 'qwen35moe' },
    tokens: [129, 88, 82, 280, 71, 71, 51, 12, 285, 228, 32, 238],
    logits: [-1.1139, -0.987, 2.3995, -0.0349, -0.1724, 2.5741],
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
