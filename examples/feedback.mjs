// Learns from feedback on its answers, and rolls back. node examples/feedback.mjs [MODEL]
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadModel, openLearning, openMemory } from 'ruvllm';
import { modelPath } from './default-model.mjs';

const folder = await mkdtemp(join(tmpdir(), 'ruvllm-feedback-'));
const memory = await openMemory({ place: folder, modelPath });
// Above the default, so that a few corrections have a visible effect.
const learning = await openLearning({ memory, instantLearningRate: 0.05 });
const model = await loadModel(modelPath, { memory, learning, modelName: 'mine' });

const prompt = 'The best colour of all is';
const correction = ' purple';
async function ask() {
  const requestId = crypto.randomUUID();
  const { text } = await model.generate(prompt, { requestId, maxTokens: 8, temperature: 0 });
  return { requestId, text };
}

const before = (await ask()).text;
console.log('before:', prompt + before);
let numCorrections = 0;
for (; numCorrections < 30; numCorrections++) {
  const { requestId, text } = await ask();
  if (text.startsWith(correction)) break;
  const { learned } = await learning.feedback('local', { requestId, correction });
  // One small step in the model's last matrix, refused if it would change other answers.
  const { outcome, reason } = await learned;
  console.log(`  ${outcome}: ${reason}`);
}
console.log(`after ${numCorrections} corrections:`, prompt + (await ask()).text);

await learning.rollback('local', 'mine', 0);
console.log(
  (await ask()).text === before ? 'after a rollback it answers as before' : 'BUG: the rollback changed the answer',
);

await model.dispose();
await learning.close();
await memory.close();
await rm(folder, { recursive: true });
