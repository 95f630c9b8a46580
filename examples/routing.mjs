// Two models behind one name, and who answered. node examples/routing.mjs [SMALL] [LARGE], default the same model twice
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { modelPath } from './default-model.mjs';

const folder = await mkdtemp(join(tmpdir(), 'ruvllm-routing-'));
const config = {
  candidates: [
    { kind: 'local', id: 'small', model: 'small', latency: 'low' },
    { kind: 'local', id: 'large', model: 'large', latency: 'high' },
  ],
  default: 'small', // answers until ratings have taught when the large one is better
  weights: { perSecond: 0.05, perCost: 0 }, // quality that a second of waiting is worth
};
await writeFile(join(folder, 'routes.json'), JSON.stringify(config));

// In a shell: ruvllm serve small=SMALL large=LARGE --route-config routes.json
const ruvllm = fileURLToPath(new URL('../bin/ruvllm.mjs', import.meta.url));
const models = [`small=${modelPath}`, `large=${process.argv[3] ?? modelPath}`];
const options = [
  '--route-config',
  join(folder, 'routes.json'),
  '--memory',
  join(folder, 'memory'),
  '--port',
  '0',
  '--json',
];
const server = spawn(process.execPath, [ruvllm, 'serve', ...models, ...options], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const [ready] = await server.stdout.take(1).toArray(); // one line, when it listens
const { url } = JSON.parse(ready);

async function post(path, body) {
  const headers = {
    'content-type': 'application/json',
    authorization: `Bearer ${process.env.RUVLLM_API_KEY ?? 'none'}`,
  };
  const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${path}: ${answer.error.message}`);
  return { answer, headers: response.headers };
}

const question = { role: 'user', content: 'What is the capital of France?' };
const told = await post('/v1/route', { messages: [question] });
console.log(`it would be ${told.answer.candidate}: ${told.answer.detail}`);

for (const model of ['auto', 'large']) {
  const { answer, headers } = await post('/v1/chat/completions', { model, messages: [question], max_tokens: 16 });
  console.log(
    `asked for ${model}: ${headers.get('x-route') ?? answer.model} answered (${headers.get('x-route-reason') ?? 'named'})`,
  );
  // Ratings are what the tenant's router is trained from, once there are enough.
  const rated = await post('/v1/feedback', { request_id: answer.id, score: model === 'large' ? 1 : 0.4 });
  console.log(`  rated: ${rated.answer.verdict}`);
}

server.kill('SIGTERM');
await new Promise((resolve) => server.once('exit', resolve));
await rm(folder, { recursive: true });
