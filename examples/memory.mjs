// Answers with what it was told: texts go into a memory, and the nearest ones into the prompt. node examples/memory.mjs [MODEL]
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadModel, openMemory } from 'ruvllm';
import { modelPath } from './default-model.mjs';

const folder = await mkdtemp(join(tmpdir(), 'ruvllm-memory-')); // yours would stay: `place` has a default
// Vectors come from the token rows of the model; `embedder: 'model'` runs it instead, best with a sentence encoder.
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
const alone = await model.generate(messages, options);
const told = await model.generate(messages, { ...options, memory: { k: 2, tokenBudget: 128 } });
console.log(`without the memory: ${alone.usage.promptTokens} tokens in the prompt:`, alone.text);
console.log(`with it:            ${told.usage.promptTokens} tokens in the prompt:`, told.text);

await model.dispose();
// Both calls are in the audit log; its hash chain shows that none was changed or cut out.
await memory.audit.flush(); // it is written aside, so that no call waits for the disk
const { isIntact, numChecked } = await memory.audit.verify('local');
console.log(`${numChecked} calls in the audit log, ${isIntact ? 'as they were written' : 'CHANGED SINCE'}`);
await memory.close();
await rm(folder, { recursive: true });
