// One model, answering with a LoRA and without. node examples/adapter.mjs MODEL ADAPTER
// An adapter is a GGUF file or a folder that PEFT has saved; this makes one:
//   ruvllm adapters train --model MODEL --data pairs.jsonl --output mine.gguf
import { loadModel } from 'ruvllm';
import { modelPath } from './default-model.mjs';

const adapterPath = process.argv[3];
if (adapterPath === undefined) {
  console.error('usage: node examples/adapter.mjs MODEL ADAPTER');
  process.exit(2);
}

const model = await loadModel(modelPath);
const { numMatrices, rank, sizeBytes } = await model.loadAdapter(adapterPath, { name: 'mine' });
console.log(`the adapter changes ${numMatrices} matrices by rank ${rank}, in ${sizeBytes} bytes`);

const prompt = process.argv[4] ?? 'Once upon a time';
const options = { maxTokens: 16, temperature: 0 };
const wishes = { 'without it': null, 'with it': 'mine', 'with half of it': { name: 'mine', scale: 0.5 } };
// All three are computed side by side, in one batch.
const answers = await Promise.all(
  Object.entries(wishes).map(async ([what, adapter]) => [what, await model.generate(prompt, { ...options, adapter })]),
);
for (const [what, { text }] of answers) console.log(`${what}:${' '.repeat(17 - what.length)}${prompt}${text}`);

console.log('unloaded:', model.unloadAdapter('mine'));
await model.dispose();
