// Adds texts to a memory and recalls the nearest ones into the prompt. node examples/memory.mjs [MODEL]
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadModel, openMemory } from 'ruvllm';
import { modelPath } from './default-model.mjs';

const folder = await mkdtemp(join(tmpdir(), 'ruvllm-memory-')); // Yours would stay: `place` has a default.
// Vectors come from the model's token table. Without `modelPath`, a sentence encoder is downloaded once and finds more.
const memory = await openMemory({ place: folder, modelPath });
const model = await loadModel(modelPath, { memory });

for (const text of [
  'The library opens at nine in the morning.',
  'The swimming pool is closed on Mondays.',
  'The bakery sells bread until noon.',
]) {
  await memory.add('local', { text, source: 'notice-board' });
}

const question = 'When does the library open?';
const { results } = await memory.search('local', { text: question, k: 3 });
for (const { text, score } of results) console.log(score.toFixed(3), text);

const messages = [{ role: 'user', content: question }];
const options = { maxTokens: 30, temperature: 0 };
const plain = await model.generate(messages, options);
const withMemory = await model.generate(messages, { ...options, memory: { k: 2, tokenBudget: 128 } });
console.log(`without memory: ${plain.usage.promptTokens} prompt tokens:`, plain.text);
console.log(`with memory:    ${withMemory.usage.promptTokens} prompt tokens:`, withMemory.text);

await model.dispose();
// Both calls are in the audit log; its hash chain shows that no entry was changed or removed.
await memory.audit.flush(); // Written in the background, so that no call waits for the disk.
const { isIntact, numChecked } = await memory.audit.verify('local');
console.log(`${numChecked} calls in the audit log, ${isIntact ? 'intact' : 'CHANGED'}`);
await memory.close();
await rm(folder, { recursive: true });
