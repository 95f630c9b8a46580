// Savings of the prefix cache: time to first token with and without it, interleaved in one process; the same after a
// restart of the process; and lookup times.
//   npm run bench -- prefix [--size 1b] [--rounds 5]
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { loadModel, type Model } from 'ruvllm';
import { benchModel } from './support/bench-model.ts';
import { createTokenSource, timeFirstToken } from './support/first-token.ts';
import { measurePrefixLookup } from './support/prefix-lookup.ts';
import { type Comparison, compareBatch, compareShared, ratioOf } from './support/prefix-workloads.ts';
import { median, printTable } from './support/report.ts';
import { measureSessionLookup } from './support/session-lookup.ts';

const { values } = parseArgs({
  options: {
    size: { type: 'string', default: '1b' },
    rounds: { type: 'string', default: '5' },
    /** Set in the restarted process: the folder of the pages. */
    restarted: { type: 'string' },
    seed: { type: 'string', default: '1' },
  },
});
const numRounds = Number(values.rounds);
const file = benchModel(values.size, 'Q4_0');
const RAG_TOKENS = 1000;
const QUESTION_TOKENS = 16;

const load = (folder: string | null): Promise<Model> =>
  loadModel(file.path, {
    maxContext: 2048,
    kvCacheTokens: 16_384,
    maxSequences: 32,
    kvPacking: 'off', // The same computation in both columns: only time is compared.
    ...(folder === null ? {} : { kvSpill: { folder, limitBytes: 4 * 2 ** 30, masterKey: new Uint8Array(32).fill(7) } }),
  });

const ragPrompt = (model: Model): number[] =>
  createTokenSource(model.modelInfo().vocabSize, Number(values.seed))(RAG_TOKENS + QUESTION_TOKENS);

/** One process: computes a prompt, or restores it from the previous process. */
async function runRestarted(folder: string): Promise<void> {
  const model = await load(folder);
  const warm = createTokenSource(model.modelInfo().vocabSize, 99_000)(4);
  await timeFirstToken(model, warm, { cachePrefix: false }); // The first request of a process pays for more than its prompt.
  const prompt = ragPrompt(model);
  const on = await timeFirstToken(model, prompt);
  const off = await timeFirstToken(model, prompt, { cachePrefix: false });
  await model.dispose();
  process.stdout.write(JSON.stringify({ on, off }));
}

function compareRestart(): Comparison {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-prefix-'));
  try {
    const run = (seed: number): { on: { ms: number; cachedTokens: number }; off: { ms: number } } => {
      const args = [process.argv[1]!, '--size', values.size, '--restarted', folder, '--seed', `${seed}`];
      return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }));
    };
    const rounds = Array.from({ length: Math.min(numRounds, 3) }, (_, seed) => {
      run(seed);
      return run(seed);
    });
    const [onMs, offMs] = [median(rounds.map(({ on }) => on.ms)), median(rounds.map(({ off }) => off.ms))];
    const { cachedTokens } = rounds[0]!.on;
    return { name: 'restart, the same 1,000', offMs, onMs, promptTokens: RAG_TOKENS + QUESTION_TOKENS, cachedTokens };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runAll(): Promise<void> {
  const model = await load(null);
  const share = (name: string, sharedTokens: number, questionTokens: number): Promise<Comparison> =>
    compareShared(model, name, { sharedTokens, questionTokens, numRounds });
  const chat = await share('chat, question of 8', 200, 8);
  const longer = [await share('chat, question of 16', 200, 16), await share('chat, question of 32', 200, 32)];
  const rag = await share('retrieval, 1,000', RAG_TOKENS, QUESTION_TOKENS);
  const batch = await compareBatch(model, '100 concurrent requests, 50', {
    numRequests: 100,
    sharedTokens: 50,
    questionTokens: 6,
    numRounds: Math.min(numRounds, 2),
  });
  const { kernels } = model.modelInfo();
  await model.dispose();
  const restart = compareRestart();
  const lookup = measurePrefixLookup();
  const session = measureSessionLookup();

  console.log(`${file.name}, ${kernels}, ${numRounds} rounds; median time to first token`);
  printTable([
    ['shared beginning', 'prompt', 'cached', 'off ms', 'on ms', 'ratio'],
    ...[chat, ...longer, rag, batch, restart].map((row) => [
      row.name,
      `${row.promptTokens}`,
      `${row.cachedTokens}`,
      row.offMs.toFixed(1),
      row.onMs.toFixed(1),
      ratioOf(row).toFixed(1),
    ]),
  ]);
  console.log(
    `\nlookup of 4,096 tokens among ${lookup.numPages} pages: ${lookup.medianUs.toFixed(1)} µs, p99 ${lookup.p99Us.toFixed(1)}`,
  );
  console.log(
    `state of one session of ${session.numSessions}: ${session.medianUs.toFixed(2)} µs, p99 ${session.p99Us.toFixed(2)}`,
  );
  console.log(
    JSON.stringify({
      bench: 'prefix',
      model: file.name,
      kernels,
      ttft_chat: ratioOf(chat),
      ttft_rag: ratioOf(rag),
      ttft_batch: ratioOf(batch),
      ttft_restart: ratioOf(restart),
      lookup_us: lookup.medianUs,
      session_lookup_us: session.medianUs,
    }),
  );
}

await (values.restarted === undefined ? runAll() : runRestarted(values.restarted));
