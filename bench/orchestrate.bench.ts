// Cost of a request besides generation: embedding, memory, router, audit log and learning, with a model that answers at
// once.
//   npm run bench -- orchestrate [--requests N] [--records N] [--pause MS] [--warm-up N] [--answer-words N] [--model FILE]
// The time of a request ends when the audit log has its entry and the learner its trajectory. The rows after a start are of the first
// requests: for about 2000 requests V8 compiles in threads of its own, which on two cores take turns with the serving thread.
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
    'warm-up': { type: 'string', default: '3000' },
    'answer-words': { type: 'string', default: '1' },
  },
});
if (!existsSync(values.model)) {
  console.error(`error: no model at ${values.model} to embed with: pass --model FILE`);
  process.exit(2);
}
const numRequests = Number(values.requests);
const FIRST = 100;
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
  const orchestra = await openOrchestra(memory, Number(values.records), Number(values['answer-words']));
  const rows = [['', 'p50 ms', 'p99 ms', 'time to first token p50', 'p99', 'longest stall ms']];
  const parts: string[][] = [];
  const figures: Record<string, number> = {};
  async function measure(name: string, wish: boolean, prefix: string): Promise<void> {
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
    Object.assign(figures, { [`${prefix}p50_ms`]: cells[0], [`${prefix}p99_ms`]: cells[1], [`${prefix}longest_block_ms`]: blockMs }); // prettier-ignore
  }
  /** A few at a time, as clients send them: without pauses the background work would pile up. */
  async function warmUp(num: number, wish: boolean): Promise<void> {
    for (let i = 0; i < num; i++) {
      await orchestra.ask(i, wish);
      if (i % 4 === 3) await pause();
    }
  }
  for (const [name, wish, prefix] of [
    ['routed', false, ''],
    ['routed, five texts recalled', true, 'recall_'],
  ] as const) {
    await warmUp(FIRST, wish);
    await measure(`${name}, after a start`, wish, `start_${prefix}`);
    await warmUp(Number(values['warm-up']), wish);
    await measure(name, wish, prefix);
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
