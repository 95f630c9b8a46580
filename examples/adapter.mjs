// One model, answering with and without a LoRA. node examples/adapter.mjs MODEL ADAPTER
// An adapter is a GGUF file or a folder saved by PEFT; this creates one:
//   ruvllm train sft data.jsonl --model MODEL --output mine.gguf
import { loadModel } from 'ruvllm';
import { modelPath } from './default-model.mjs';

const adapterPath = process.argv[3];
if (adapterPath === undefined) {
  console.error('usage: node examples/adapter.mjs MODEL ADAPTER');
  process.exit(2);
}

const model = await loadModel(modelPath);
const { numMatrices, rank, sizeBytes } = await model.loadAdapter(adapterPath, { name: 'mine' });
console.log(`the adapter changes ${numMatrices} matrices with rank ${rank} (${sizeBytes} bytes)`);

const prompt = process.argv[4] ?? 'Once upon a time';
const options = { maxTokens: 16, temperature: 0 };
const settings = { 'without adapter': null, 'with adapter': 'mine', 'with scale 0.5': { name: 'mine', scale: 0.5 } };
// All three run in one batch.
const answers = await Promise.all(
  Object.entries(settings).map(async ([label, adapter]) => [
    label,
    await model.generate(prompt, { ...options, adapter }),
  ]),
);
for (const [label, { text }] of answers) console.log(`${label}:${' '.repeat(17 - label.length)}${prompt}${text}`);

console.log('unloaded:', model.unloadAdapter('mine'));
await model.dispose();
