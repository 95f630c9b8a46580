import { expect, test } from 'vitest';
import { createMemorySource, type MetadataEntry, openGguf } from '../gguf/index.ts';
import { buildRandomModel } from '../../test/support/random-model.ts';
import { resolveModelConfig } from './model-config.ts';
import { describeFile } from './model-info.ts';

const samplingOf = (
  type: 'Q8_0' | 'Q2_K',
  metadata: readonly MetadataEntry[] = [],
  configured: { temperature?: number; topP?: number } | null = null,
) =>
  describeFile(openGguf(createMemorySource(buildRandomModel({ architecture: 'llama', type, seed: 1, metadata, shape: { embeddingDim: 256, numHeads: 4, headDim: 64, feedForwardDim: 256 } }))), configured).sampling; // prettier-ignore

const f32 = (key: string, value: number): MetadataEntry => ({ key: `general.sampling.${key}`, type: 'f32', value });

test('a file without a recommendation: temperature 0.7 and min-p 0.05', () => {
  expect(samplingOf('Q8_0')).toEqual({ temperature: 0.7, topK: 0, topP: 1, minP: 0.05, repetitionPenalty: 1, source: 'default' }); // prettier-ignore
});

test('weights of less than 4 bits are sampled at a lower temperature', () => {
  expect(samplingOf('Q2_K')).toMatchObject({ temperature: 0.3, minP: 0.05, source: 'low precision' });
});

test("the file's recommendation counts, whatever its precision; values out of range do not", () => {
  const metadata = [f32('temp', 0.6), f32('top_p', 0.95), f32('min_p', 2), { key: 'general.sampling.top_k', type: 'i32', value: 20 } as const]; // prettier-ignore
  expect(samplingOf('Q2_K', metadata)).toEqual({ temperature: 0.6, topK: 20, topP: 0.95, minP: 0, repetitionPenalty: 1, source: 'file' }); // prettier-ignore
});

test('configured defaults replace those of the file one by one', () => {
  expect(samplingOf('Q8_0', [f32('temp', 0.6), f32('top_p', 0.9)], { temperature: 0.2 })).toEqual({ temperature: 0.2, topK: 0, topP: 0.9, minP: 0, repetitionPenalty: 1, source: 'config' }); // prettier-ignore
  expect(samplingOf('Q8_0', [], {}).source).toBe('default');
});

test('rejects a misspelt or invalid default by name', () => {
  const resolve = (sampling: object) => () => resolveModelConfig({ sampling }, { numCpus: 1 });
  expect(resolve({ top_p: 0.5 })).toThrow('unknown option "top_p" (did you mean topP');
  expect(resolve({ temperature: -1 })).toThrow('option "sampling.temperature" must be a number from 0 to 100');
  expect(resolve({ topK: 20, temperature: 0 })).not.toThrow();
});
