import { setTimeout as sleep } from 'node:timers/promises';
import { createRandom } from '../../../src/core/random.ts';
import {
  findPostgres,
  freePort,
  startMachineServer,
} from '../../../src/platform/node/memory/postgres-server.contract.ts';
import { createServeFolder } from '../../../test/support/serve-process.ts';
import { type Supervised, superviseRuvllm } from './supervised.ts';

const MIN_KILL_MS = 2000;
const MAX_KILL_MS = 5000;
const POLL_MS = 250;

export interface BatchChaosOptions {
  readonly numLines: number;
  readonly numBatches: number;
  /** 1: a memory in a folder; more: servers that share PostgreSQL. */
  readonly numServers: number;
  readonly seed: number;
  readonly log: (line: string) => void;
}

interface BatchBody {
  readonly id: string;
  readonly status: string;
  readonly output_file_id?: string | null;
  readonly error_file_id?: string | null;
  readonly request_counts: { readonly completed: number; readonly failed: number };
}

/** Runs batches while their servers are killed, and compares the results with the lines. True: each line has one result. */
export async function benchBatchChaos({
  numLines,
  numBatches,
  numServers,
  seed,
  log,
}: BatchChaosOptions): Promise<boolean> {
  // prettier-ignore
  const bin = numServers === 1 ? null : findPostgres();
  if (numServers > 1 && bin === null) throw new Error('several servers require PostgreSQL');
  const postgres = bin === null ? null : await startMachineServer(bin);
  const folder = createServeFolder({ contextLength: 64, environment: { RUVLLM_KERNELS: '' } });
  const servers: Supervised[] = [];
  const urls: string[] = [];
  const random = createRandom(seed);
  let numKills = 0;
  const startMs = performance.now();

  /** Of any server that answers. */
  async function ask(path: string, init: RequestInit = {}): Promise<string> {
    for (let i = 0; ; i++) {
      try {
        const response = await fetch(urls[i % urls.length]! + path, init);
        const text = await response.text();
        if (response.ok) return text;
        if (response.status < 500) throw new Error(`${path}: ${response.status} ${text}`);
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
      }
      await sleep(POLL_MS);
    }
  }

  async function create(index: number): Promise<string> {
    const lines = Array.from({ length: numLines / numBatches }, (_, i) => ({ custom_id: `line-${index}-${i}`, method: 'POST', url: '/v1/completions', body: { model: 'm', prompt: `a ${i % 10}`, max_tokens: 1, seed: 1, ignore_eos: true } })); // prettier-ignore
    const form = new FormData();
    form.set('purpose', 'batch');
    form.set('file', new File([lines.map((line) => JSON.stringify(line)).join('\n')], 'requests.jsonl'));
    const file = JSON.parse(await ask('/v1/files', { method: 'POST', body: form })) as { id: string };
    const body = JSON.stringify({ input_file_id: file.id, endpoint: '/v1/completions', completion_window: '24h' });
    const headers = { 'content-type': 'application/json' };
    return (JSON.parse(await ask('/v1/batches', { method: 'POST', headers, body })) as { id: string }).id;
  }
  const read = async (id: string): Promise<BatchBody> => JSON.parse(await ask(`/v1/batches/${id}`)) as BatchBody;

  try {
    const place = postgres === null ? `${folder.path}/memory` : `${postgres.connectionString}?vectors=sealed`;
    for (let i = 0; i < numServers; i++) {
      const port = await freePort();
      const args = [`m=${folder.model}`, '--memory', place, '--memory-embedder', 'static', '--no-learning', '--no-dashboard', '--threads', '1', '--batch-concurrency', '16', '--port', String(port)]; // prettier-ignore
      servers.push(await superviseRuvllm(folder, { name: `server ${i + 1}`, command: 'serve', args, onErrorOutput() {} })); // prettier-ignore
      urls.push(`http://127.0.0.1:${port}`);
    }
    const ids = await Promise.all(Array.from({ length: numBatches }, (_, index) => create(index)));
    const over = new AbortController();
    const killing = (async () => {
      while (!over.signal.aborted) {
        await sleep(MIN_KILL_MS + random.next() * (MAX_KILL_MS - MIN_KILL_MS), null, { signal: over.signal }).catch(() => {}); // prettier-ignore
        if (over.signal.aborted) return;
        const victim = Math.floor(random.next() * servers.length);
        numKills++;
        await servers[victim]!.kill();
        // On a busy machine a start takes seconds: a server that is always killed before it runs proves nothing.
        while (!over.signal.aborted && !(await isHealthy(urls[victim]!))) await sleep(POLL_MS);
      }
    })();
    for (let last = -1; ;) {
      const batches = await Promise.all(ids.map(read));
      const numDone = batches.reduce((sum, { request_counts: counts }) => sum + counts.completed + counts.failed, 0);
      if (Math.floor(numDone / 500) > last) {
        last = Math.floor(numDone / 500);
        log(
          `${numDone} of ${numLines} lines after ${Math.round((performance.now() - startMs) / 1000)} s and ${numKills} kills`,
        );
      }
      if (batches.every(({ status }) => status === 'completed')) break;
      await sleep(4 * POLL_MS);
    }
    over.abort();
    await killing;

    const count = new Map<string, number>();
    let numErrors = 0;
    for (const id of ids) {
      const { output_file_id: output, error_file_id: errors } = await read(id);
      for (const file of [output, errors]) {
        if (file == null) continue;
        const lines = (await ask(`/v1/files/${file}/content`)).split('\n').filter((line) => line !== '');
        if (file === errors) numErrors += lines.length;
        for (const line of lines) {
          const { custom_id: name } = JSON.parse(line) as { custom_id: string };
          count.set(name, (count.get(name) ?? 0) + 1);
        }
      }
    }
    const times = [...count.values()];
    const isExactlyOnce = count.size === numLines && times.every((one) => one === 1) && numErrors === 0;
    console.log(
      JSON.stringify({
        bench: 'fleet batch',
        lines: numLines,
        batches: numBatches,
        servers: numServers,
        seed,
        kills: numKills,
        results: times.reduce((sum, one) => sum + one, 0),
        missing: numLines - count.size,
        twice: times.filter((one) => one > 1).length,
        errors: numErrors,
        seconds: Math.round((performance.now() - startMs) / 1000),
        batch_exactly_once: isExactlyOnce ? 1 : 0,
      }),
    );
    return isExactlyOnce;
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
    folder.dispose();
    await postgres?.stop();
  }
}

const isHealthy = (url: string): Promise<boolean> =>
  fetch(`${url}/health`).then(
    ({ ok }) => ok,
    () => false,
  );
