// Cost of a request besides generation: embedding, memory, router, audit log and learning, with a model that answers at
// once.
//   npm run bench -- orchestrate [--requests N] [--records N] [--pause MS] [--model FILE]
// The time of a request ends when the audit log has its entry and the learner its trajectory.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { importBuilt } from './support/dist.ts';
import { openOrchestra } from './support/orchestra.ts';
import { percentile, printTable } from './support/report.ts';

const { openNodeMemory } = await importBuilt<typeof import('../src/node/memory/open-memory.ts')>('node/memory/open-memory'); // prettier-ignore

const { values } = parseArgs({
  options: {
    model: { type: 'string', default: '../shared/models/stories15M-q8_0.gguf' },
    requests: { type: 'string', default: '500' },
    records: { type: 'string', default: '10000' },
    pause: { type: 'string', default: '2' },
  },
});
if (!existsSync(values.model)) {
  console.error(`error: no model at ${values.model} to embed with: pass --model FILE`);
  process.exit(2);
}
const numRequests = Number(values.requests);
const WARM_UP = 100;
const RESOLUTION_MS = 1;
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, Number(values.pause)));

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-bench-orchestrate-'));
const memory = await openNodeMemory({
  place: join(folder, 'memory'),
  masterKey: { key: new Uint8Array(32).fill(5) },
  modelPath: values.model,
});
try {
  console.error(`filling a memory with ${values.records} records …`);
  const orchestra = await openOrchestra(memory, Number(values.records));
  const rows = [['', 'p50 ms', 'p99 ms', 'time to first token p50', 'p99', 'longest stall ms']];
  const parts: string[][] = [];
  const figures: Record<string, number> = {};
  for (const [name, wish] of [
    ['routed', false],
    ['routed, five texts recalled', true],
  ] as const) {
    for (let i = 0; i < WARM_UP; i++) await orchestra.ask(i, wish);
    const blocks = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    blocks.enable();
    const times = { whole: [] as number[], first: [] as number[] };
    for (let i = 0; i < numRequests; i++) {
      const { wholeMs, firstMs } = await orchestra.ask(i, wish);
      times.whole.push(wholeMs);
      times.first.push(firstMs);
      await pause();
    }
    blocks.disable();
    const [whole, first] = [times.whole, times.first].map((some) => some.sort((a, b) => a - b)) as [number[], number[]];
    const blockMs = Math.max(0, blocks.max / 1e6 - RESOLUTION_MS);
    const cells = [percentile(whole, 0.5), percentile(whole, 0.99), percentile(first, 0.5), percentile(first, 0.99), blockMs]; // prettier-ignore
    rows.push([name, ...cells.map((value) => value.toFixed(3))]);
    parts.push(...(await orchestra.parts(numRequests)).map((cells) => [name, ...cells]));
    const prefix = wish ? 'recall_' : '';
    Object.assign(figures, { [`${prefix}p50_ms`]: cells[0], [`${prefix}p99_ms`]: cells[1], [`${prefix}longest_block_ms`]: blockMs }); // prettier-ignore
  }
  printTable(rows);
  printTable([['from the audit log', 'part', 'p50 ms', 'p99 ms'], ...parts]);
  await orchestra.close();
  const { p50_ms, p99_ms } = figures as { p50_ms: number; p99_ms: number };
  console.log(p50_ms < 1 && p99_ms < 2 ? 'p50 below 1 ms and p99 below 2 ms: reached' : 'p50 below 1 ms and p99 below 2 ms: NOT reached'); // prettier-ignore
  console.log(JSON.stringify(figures));
} finally {
  await memory.close();
  rmSync(folder, { recursive: true, force: true });
}
