// Effect of other clients' grammars on a stream: a hundred large ones and the hostile ones of the tests arrive 5 ms apart while
// one client reads plain text. Reports the longest inter-token latency with and without grammars, and the longest stall of the
// caller's thread.
//   npm run bench -- grammar-stall [--model FILE.gguf] [--seconds 3]
import { existsSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { GrammarSource } from '../src/sampling/grammar/index.ts';
import { HOSTILE_GRAMMARS } from '../test/support/hostile-grammars.ts';
import { importBuilt } from './support/dist.ts';
import { hostileGrammars } from './support/hostile-grammars.ts';
import { printTable } from './support/report.ts';

const GRAMMARS = [...hostileGrammars(100), ...Object.values(HOSTILE_GRAMMARS).map((create) => create())];
const APART_MS = 5;

const { values } = parseArgs({
  options: {
    model: { type: 'string', default: '../shared/models/stories15M-q8_0.gguf' },
    seconds: { type: 'string', default: '3' },
  },
});
const seconds = Number(values.seconds);
if (!(seconds > 0 && seconds <= 600)) {
  console.error(`error: --seconds is "${values.seconds}", must be above 0 and at most 600`);
  process.exit(2);
}
if (!existsSync(values.model)) {
  console.error(`no model at ${values.model}\nnext: npm run bench -- grammar-stall --model FILE.gguf`);
  process.exit(2);
}

interface Reading {
  readonly numTokens: number;
  readonly medianMs: number;
  readonly longestMs: number;
  readonly blockMs: number;
}

const { loadModel } = await importBuilt<typeof import('../src/index.ts')>('index');
const model = await loadModel(values.model, { numThreads: 1 });

/** Reads tokens until the work is done; the work starts with the first token. */
async function readBeside(work: () => Promise<unknown>): Promise<Reading> {
  const gaps: number[] = [];
  const over = new AbortController();
  let working: Promise<void> | null = null;
  const delay = monitorEventLoopDelay({ resolution: 1 });
  while (!over.signal.aborted) {
    let last: number | null = null; // The first token of a stream waits for its turn.
    const options = { maxTokens: 200, temperature: 0, ignoreEos: true };
    for await (const _ of model.generateStream('Once upon a time', options)) {
      const now = performance.now();
      if (last !== null) gaps.push(now - last);
      last = now;
      if (working === null) {
        delay.enable();
        working = work().then(() => over.abort());
      }
      if (over.signal.aborted) break;
    }
  }
  await working;
  delay.disable();
  gaps.sort((a, b) => a - b);
  return {
    numTokens: gaps.length,
    medianMs: gaps[gaps.length >> 1]!,
    longestMs: gaps.at(-1)!,
    blockMs: delay.max / 1e6,
  };
}

const verdicts = new Map<string, number>();
async function ask(grammar: GrammarSource): Promise<void> {
  const verdict = await model.generate('a', { maxTokens: 4, temperature: 0, grammar }).then(
    () => 'answered',
    (error: { code?: string }) => error.code ?? 'unknown',
  );
  verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1);
}

async function askAll(): Promise<void> {
  const requests: Promise<void>[] = [];
  for (const grammar of GRAMMARS) {
    await sleep(APART_MS);
    requests.push(ask(grammar));
  }
  await Promise.all(requests);
}

await readBeside(() => sleep(1000)); // Warm-up of code that never ran.
const control = await readBeside(() => sleep(1000 * seconds));
// Includes the model's first grammar: its vocabulary is not prepared yet.
const beside = await readBeside(askAll);
await model.dispose();

const row = (name: string, { numTokens, medianMs, longestMs, blockMs }: Reading): string[] => [
  name,
  String(numTokens),
  ...[medianMs, longestMs, blockMs].map((ms) => ms.toFixed(1)),
];
printTable([
  ['a stream', 'tokens', 'median latency, ms', 'longest latency, ms', 'longest stall, ms'],
  row('alone', control),
  row(`beside ${GRAMMARS.length} grammars`, beside),
]);
console.log([...verdicts].map(([verdict, count]) => `${count} ${verdict}`).join(', '));
console.log(
  JSON.stringify({
    bench: 'grammar-stall',
    longest_gap_ms: beside.longestMs,
    control_gap_ms: control.longestMs,
    longest_block_ms: beside.blockMs,
  }),
);
