// A conversation that moves to another node: time to the first token of its second turn with pages in a shared folder, in S3-compatible
// storage, and without shared pages; the nodes take turns. Then how pages are best cut into objects: one page each, or runs of eight.
//   npm run bench -- shared-pages [--size 0.5b] [--words 600] [--rounds 5] [--latency 10] [--seed 1]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createFolderObjects } from '../src/platform/node/shared-pages/folder-objects.ts';
import type { ObjectStore } from '../src/platform/node/shared-pages/object-store.ts';
import { createS3Objects } from '../src/platform/node/shared-pages/s3-objects.ts';
import { S3_KEYS, S3_REGION, startS3Server } from '../test/support/s3-server.ts';
import { createServeFolder, type ServeProcess } from '../test/support/serve-process.ts';
import { benchModel } from './support/bench-model.ts';
import { createFleetTrace } from './support/fleet-trace.ts';
import { median, printTable } from './support/report.ts';

const { values } = parseArgs({
  options: {
    size: { type: 'string', default: '0.5b' },
    words: { type: 'string', default: '600' },
    rounds: { type: 'string', default: '5' },
    latency: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
  },
});
const count = (name: 'words' | 'rounds' | 'latency' | 'seed'): number => {
  const value = Number(values[name]);
  if (Number.isSafeInteger(value) && value > 0) return value;
  console.error(`error: --${name} must be a whole number above 0`);
  process.exit(2);
};
const PAGE_TOKENS = 16;
const model = benchModel(values.size, 'Q8_0');
const s3 = await startS3Server();
const folder = createServeFolder({
  contextLength: 512,
  environment: {
    RUVLLM_KERNELS: '',
    RUVLLM_FLEET_SECRET: 'the secret of the fleet in this benchmark',
    AWS_ACCESS_KEY_ID: S3_KEYS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: S3_KEYS.secretAccessKey,
    AWS_REGION: S3_REGION,
    AWS_ENDPOINT_URL: s3.url,
  },
});

const startNode = (place: string | null): Promise<ServeProcess> =>
  folder.launch({ onErrorOutput() {} }, `m=${model.path}`, '--no-memory', '--no-dashboard', '--threads', '1', ...(place === null ? [] : ['--kv-shared', place])); // prettier-ignore

interface Turn {
  readonly ms: number;
  readonly numTokens: number;
  readonly numCached: number;
}

/** Milliseconds until the first event of a stream. */
async function send({ url }: ServeProcess, prompt: string): Promise<Turn> {
  const body = { model: 'm', prompt, max_tokens: 2, ignore_eos: true, temperature: 0, stream: true, stream_options: { include_usage: true } }; // prettier-ignore
  const startMs = performance.now();
  const response = await fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (response.status !== 200) throw new Error(`status ${response.status}: ${await response.text()}`);
  let [text, ms] = ['', NaN];
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    if (/"text":/.test(text + chunk) && Number.isNaN(ms)) ms = performance.now() - startMs;
    text += chunk;
  }
  const usage = /"usage":(\{"prompt_tokens".*?\}\})/.exec(text);
  if (usage === null) throw new Error('a stream without usage');
  const { prompt_tokens: numTokens, prompt_tokens_details: details } = JSON.parse(usage[1]!) as { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } }; // prettier-ignore
  return { ms, numTokens, numCached: details.cached_tokens };
}

async function untilStored({ url }: ServeProcess): Promise<void> {
  for (;;) {
    const text = await (await fetch(`${url}/metrics`)).text();
    if (/ruvllm_shared_pages_waiting\{[^}]*\} 0$/m.test(text)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Second turns at nodes that have not seen the first, with pages in `place` and without, in turns. */
async function measure(place: string, seed: number) {
  const [a, withPages, without] = await Promise.all([startNode(place), startNode(place), startNode(null)]);
  const trace = createFleetTrace({ numConversations: count('rounds') + 1, numTurns: 2, firstWords: count('words'), turnWords: 20, seed }); // prettier-ignore
  const conversations = [...new Set(trace.map(({ conversation }) => conversation))].map((id) =>
    trace.filter(({ conversation }) => conversation === id).map(({ prompt }) => prompt),
  );
  const turns: { shared: Turn; alone: Turn }[] = [];
  for (const [round, [first, second]] of conversations.entries()) {
    await send(a, first!);
    await untilStored(a);
    const order = round % 2 === 0 ? [withPages, without] : [without, withPages];
    const results = new Map<ServeProcess, Turn>();
    for (const node of order) results.set(node, await send(node, second!));
    if (round > 0) turns.push({ shared: results.get(withPages)!, alone: results.get(without)! }); // the first warms up
  }
  folder.killAll();
  return {
    sharedMs: median(turns.map(({ shared }) => shared.ms)),
    aloneMs: median(turns.map(({ alone }) => alone.ms)),
    numTokens: median(turns.map(({ alone }) => alone.numTokens)),
    cachedShare: median(turns.map(({ shared }) => shared.numCached / shared.numTokens)),
  };
}

const unlimited = (): AbortSignal => new AbortController().signal;
const NUM_PAGES = 64;
const AT_ONCE = 16;

/** Milliseconds to read 64 pages in objects of `run` pages, 16 at once. */
async function transfer(objects: ObjectStore, pageBytes: number, run: number): Promise<number> {
  const names = Array.from({ length: NUM_PAGES / run }, (_, i) => `v1/${run}-${i}`);
  const bytes = new Uint8Array(run * pageBytes).fill(7);
  for (const name of names) await objects.put(name, bytes, unlimited());
  const times: number[] = [];
  for (let round = 0; round < 5; round++) {
    const startMs = performance.now();
    const queue = [...names];
    const work = async (): Promise<void> => {
      for (let name = queue.shift(); name !== undefined; name = queue.shift())
        await objects.get(name, bytes.length, unlimited());
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    times.push(performance.now() - startMs);
  }
  return median(times);
}

const scratch = mkdtempSync(join(tmpdir(), 'ruvllm-bench-'));
try {
  const byFolder = await measure(join(folder.path, 'shared'), count('seed'));
  const byS3 = await measure('s3://pages', count('seed') + 1);
  const row = (name: string, ms: number, share: number): string[] => [name, ms.toFixed(0), share.toFixed(3)];
  console.log(`second turns of ${byFolder.numTokens} tokens, ${model.name}, one thread for each node`);
  printTable([
    ['', 'time to first token, ms p50', 'cached share of the prompt'],
    row('without shared pages', (byFolder.aloneMs + byS3.aloneMs) / 2, 0),
    row('shared folder', byFolder.sharedMs, byFolder.cachedShare),
    row('S3-compatible storage', byS3.sharedMs, byS3.cachedShare),
  ]);
  const pageBytes = model.kvBytesPerToken * PAGE_TOKENS;
  const place = { type: 's3', endpoint: s3.url, region: S3_REGION, bucket: 'b', prefix: '', credentials: { ...S3_KEYS, sessionToken: null } } as const; // prettier-ignore
  const storages: [string, ObjectStore, number][] = [
    ['folder', createFolderObjects(scratch), 0],
    ['S3', createS3Objects(place), 0],
    [`S3, ${count('latency')} ms away`, createS3Objects(place), count('latency')],
  ];
  const transfers: number[][] = [];
  for (const [, objects, delayMs] of storages) {
    s3.delayMs = delayMs;
    transfers.push([await transfer(objects, pageBytes, 1), await transfer(objects, pageBytes, 8)]);
  }
  console.log(`\n${NUM_PAGES} pages of ${Math.round(pageBytes / 1024)} KiB, ${AT_ONCE} reads at once, ms p50`);
  printTable([
    ['', 'one page each', 'runs of 8'],
    ...storages.map(([name], i) => [name, ...transfers[i]!.map((ms) => ms.toFixed(1))]),
  ]);
  console.log(
    JSON.stringify({
      bench: 'shared-pages',
      prompt_tokens: byFolder.numTokens,
      ttft_ms_alone: Number(byFolder.aloneMs.toFixed(1)),
      ttft_ms_folder: Number(byFolder.sharedMs.toFixed(1)),
      ttft_ms_alone_beside_s3: Number(byS3.aloneMs.toFixed(1)),
      ttft_ms_s3: Number(byS3.sharedMs.toFixed(1)),
      gain_folder: Number((byFolder.aloneMs / byFolder.sharedMs).toFixed(2)),
      gain_s3: Number((byS3.aloneMs / byS3.sharedMs).toFixed(2)),
      cached_share: Number(byFolder.cachedShare.toFixed(3)),
      page_bytes: pageBytes,
      transfer_ms_folder: transfers[0]!.map((ms) => Number(ms.toFixed(1))),
      transfer_ms_s3: transfers[1]!.map((ms) => Number(ms.toFixed(1))),
      transfer_ms_s3_away: transfers[2]!.map((ms) => Number(ms.toFixed(1))),
    }),
  );
} finally {
  folder.dispose();
  await s3.close();
  rmSync(scratch, { recursive: true, force: true });
}
