// Corrects an answer once: the next request and paraphrases follow it, also after a restart, until it is rolled back.
// node examples/teach.mjs [MODEL]
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadModel, openLearning, openMemory } from 'ruvllm';
import { modelPath } from './default-model.mjs';

const folder = await mkdtemp(join(tmpdir(), 'ruvllm-teach-'));
async function start() {
  // Paraphrases are found with a sentence encoder, which is downloaded once.
  const memory = await openMemory({ place: folder, report: (message) => console.log(`note: ${message}`) });
  const learning = await openLearning({ memory });
  const model = await loadModel(modelPath, { memory, learning, modelName: 'mine' });
  return { memory, learning, model };
}
async function stop({ memory, learning, model }) {
  await model.dispose();
  await learning.close();
  await memory.close();
}
async function ask({ model }, question) {
  const requestId = crypto.randomUUID();
  const messages = [{ role: 'user', content: question }];
  const { text } = await model.generate(messages, { requestId, maxTokens: 24, temperature: 0 });
  console.log(`  ${question}\n    ${text.trim().split('\n')[0]}`);
  return { requestId, text };
}

let running = await start();
console.log('before:');
const before = await ask(running, 'What is my dog called?');
const elsewhere = await ask(running, 'What is the capital of France?');

const feedback = { requestId: before.requestId, correction: 'Your dog is called Biscuit.' };
const { outcome } = await running.learning.feedback('local', feedback);
const { state, reason } = await outcome;
console.log(`corrected once, ${state}: ${reason}`);
await ask(running, 'What is my dog called?');
await ask(running, "What is my dog's name?");
const same = await ask(running, 'What is the capital of France?');
console.log(same.text === elsewhere.text ? 'other answers are unchanged' : 'BUG: another answer changed');

await stop(running);
running = await start();
console.log('after a restart:');
await ask(running, 'What is my dog called?');

await running.learning.rollback('local', 'mine', 0);
console.log('after a rollback:');
const after = await ask(running, 'What is my dog called?');
console.log(after.text === before.text ? 'it answers as before' : 'BUG: the rollback changed the answer');

await stop(running);
await rm(folder, { recursive: true });
