// Two models behind one name. node examples/routing.mjs [SMALL] [LARGE], default: the same model twice
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadModel, openLearning, openMemory, openRouter } from 'ruvllm';
import { modelPath } from './default-model.mjs';

const folder = await mkdtemp(join(tmpdir(), 'ruvllm-routing-'));
const memory = await openMemory({ place: folder, modelPath });
const learning = await openLearning({ memory });
const router = await openRouter({
  models: { small: await loadModel(modelPath), large: await loadModel(process.argv[3] ?? modelPath) },
  routes: {
    candidates: [
      { kind: 'local', id: 'small', model: 'small', latency: 'low' },
      { kind: 'local', id: 'large', model: 'large', latency: 'high' },
    ],
    default: 'small', // Answers until ratings show when the large one is better.
    weights: { perSecond: 0.05, perCost: 0 }, // The quality that a second of waiting is worth.
  },
  memory,
  learning,
});

const question = [{ role: 'user', content: 'What is the capital of France?' }];
for (const model of ['auto', 'large']) {
  const { requestId, route, model: answering } = await router.generate(question, { model, maxTokens: 16 });
  console.log(`model ${model}: ${answering} answered (${route?.reason ?? 'named'})`);
  // The tenant's router is trained from ratings, once there are enough.
  const rating = { source: 'api', score: model === 'large' ? 1 : 0.4, correction: null, comment: null };
  const receipt = await learning.feedback('local', requestId, rating);
  console.log(`  rated: ${receipt.verdict}`);
}

await router.dispose();
await learning.close();
await memory.close();
await rm(folder, { recursive: true });
