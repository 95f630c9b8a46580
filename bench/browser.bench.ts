// Speed in a page: this library and wllama (llama.cpp in WebAssembly), in one Chromium, on one file, in turns.
//   npm run bench -- browser [--model PATH] [--rounds N] [--tokens N] [--threads N] [--single]
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Page } from 'playwright-core';
import { openBrowser } from '../test/dashboard/support/browser.ts';
import { waitForLibrary } from '../test/browser/support/library-page.ts';
import { canRun, startSite, STORIES } from '../test/browser/support/site.ts';
import { median, printTable } from './support/report.ts';

const { values } = parseArgs({
  options: {
    model: { type: 'string', default: STORIES },
    rounds: { type: 'string', default: '7' },
    tokens: { type: 'string', default: '64' },
    threads: { type: 'string' },
    single: { type: 'boolean', default: false },
  },
});
if (!canRun) process.exit(2);

const root = fileURLToPath(new URL('..', import.meta.url.replace('/.cache/tools/', '/')));
const PEER = join(root, '.cache/browser-peers/node_modules/@wllama/wllama/esm');
const NUM_TOKENS = Number(values.tokens);
const FILE = basename(values.model);
const CONTEXT = 256;

/** Different beginnings, so that no cache helps anyone. About 130 tokens each. */
const promptOf = (round: number): string =>
  `Story number ${round}. ${'The boy and the girl went to the park with a dog and a red ball. '.repeat(6)}Then they saw`;

interface Run {
  readonly promptTokens: number;
  readonly newTokens: number;
  readonly ms: number;
}
/** A page with a loaded model. */
interface Contestant {
  readonly page: Page;
  generate(prompt: string, maxTokens: number): Promise<Run>;
}

interface OurOptions {
  /** Default: one per core. */
  readonly numThreads?: number;
  /** For pages; a budget beyond 4 GiB requires 64-bit addresses. Most pages are never touched. */
  readonly memoryBudgetBytes?: number;
}

async function openOurs(page: Page, url: string, ours: OurOptions): Promise<Contestant> {
  await page.goto(`${url}blank.html`);
  await waitForLibrary(page);
  await page.evaluate(
    async ({ file, maxContext, given }) => {
      // Drafts would make repeated texts faster, and the peer has none.
      const options = { maxContext, speculation: 'off', prefixCache: false, ...given } as const;
      const model = await ruvllm.loadModel(`/files/${file}`, options);
      globalThis.kept = { ...globalThis.kept, model };
    },
    { file: FILE, maxContext: CONTEXT, given: ours },
  );
  const generate: Contestant['generate'] = (prompt, maxTokens) =>
    page.evaluate(
      async (given) => {
        const startMs = performance.now();
        const { usage } = await globalThis.kept.model.generate(given.prompt, {
          maxTokens: given.maxTokens,
          temperature: 0,
        });
        const ms = performance.now() - startMs;
        return { promptTokens: usage.promptTokens, newTokens: usage.completionTokens, ms };
      },
      { prompt, maxTokens },
    );
  return { page, generate };
}

interface Peer {
  loadModelFromUrl(url: string, options: object): Promise<void>;
  createCompletion(options: object): Promise<{ usage: { prompt_tokens: number; completion_tokens: number } }>;
}
declare global {
  var Wllama: new (paths: object, config: object) => Peer;
  var peer: Peer;
}

async function openPeer(page: Page, url: string): Promise<Contestant> {
  await page.goto(`${url}peer.html`);
  await page.waitForFunction(() => globalThis.Wllama !== undefined);
  await page.evaluate(
    async ({ file, contextTokens }) => {
      const quiet = { debug() {}, log() {}, warn() {}, error() {} };
      globalThis.peer = new globalThis.Wllama({ default: '/peer/wasm/wllama.wasm' }, { logger: quiet });
      const threads = crossOriginIsolated ? navigator.hardwareConcurrency : 1;
      await globalThis.peer.loadModelFromUrl(new URL(`/files/${file}`, location.href).href, {
        n_ctx: contextTokens,
        n_batch: 512,
        n_threads: threads,
        n_gpu_layers: 0,
      });
    },
    { file: FILE, contextTokens: CONTEXT },
  );
  const generate: Contestant['generate'] = (prompt, maxTokens) =>
    page.evaluate(
      async (given) => {
        const startMs = performance.now();
        const { usage } = await globalThis.peer.createCompletion({
          prompt: given.prompt,
          max_tokens: given.maxTokens,
          temperature: 0,
          cache_prompt: false,
        });
        const ms = performance.now() - startMs;
        return { promptTokens: usage.prompt_tokens, newTokens: usage.completion_tokens, ms };
      },
      { prompt, maxTokens },
    );
  return { page, generate };
}

interface Speed {
  readonly prefill: number;
  readonly decode: number;
}

/** One token is the prompt's time; the further ones are decoded. */
async function measure({ page, generate }: Contestant, round: number): Promise<Speed> {
  await page.bringToFront(); // browsers slow down timers of pages in the background
  const first = await generate(promptOf(2 * round), 1);
  const whole = await generate(promptOf(2 * round + 1), NUM_TOKENS + 1);
  const decodeMs = Math.max(0.001, whole.ms - first.ms);
  return {
    prefill: (1000 * first.promptTokens) / first.ms,
    decode: (1000 * (whole.newTokens - first.newTokens)) / decodeMs,
  };
}

await using site = await startSite({
  isIsolated: !values.single,
  isStrict: false,
  files: { [FILE]: values.model },
  folders: { '/peer/': PEER },
});
const context = await (await openBrowser()).newContext();
context.setDefaultTimeout(600_000);
const threads = values.threads === undefined ? {} : { numThreads: Number(values.threads) };
const contestants: Readonly<Record<string, Contestant>> = {
  RuvLLM: await openOurs(await context.newPage(), site.url, threads),
  'wllama 3.8.1': await openPeer(await context.newPage(), site.url),
  '64-bit addresses': await openOurs(await context.newPage(), site.url, { ...threads, memoryBudgetBytes: 5 * 2 ** 30 }),
  ...(values.single ? {} : { 'one thread': await openOurs(await context.newPage(), site.url, { numThreads: 1 }) }),
};
const names = Object.keys(contestants);
const results: Readonly<Record<string, Speed>>[] = [];
for (let round = -2; round < Number(values.rounds); round++) {
  // The order changes: the machine may become faster or slower meanwhile.
  const first = (round + 2) % names.length;
  const result: Record<string, Speed> = {};
  for (const name of [...names.slice(first), ...names.slice(0, first)]) {
    result[name] = await measure(contestants[name]!, round + 10);
  }
  if (round >= 0) results.push(result);
}
await context.close();
const of = (name: string, what: keyof Speed): number => median(results.map((result) => result[name]![what]));
const ratio = (what: keyof Speed, name = 'wllama 3.8.1'): number => of('RuvLLM', what) / of(name, what);
printTable([
  ['tokens/s, median', ...names],
  ...(['prefill', 'decode'] as const).map((what) => [what, ...names.map((name) => of(name, what).toFixed(1))]),
]);
const round2 = (value: number): number => Math.round(value * 100) / 100;
console.log(
  JSON.stringify({
    model: FILE,
    isolated: !values.single,
    browser_decode: round2(ratio('decode')),
    browser_prefill: round2(ratio('prefill')),
    narrow_decode: round2(ratio('decode', '64-bit addresses')),
    narrow_prefill: round2(ratio('prefill', '64-bit addresses')),
    ...(values.single
      ? {}
      : {
          threads_decode: round2(ratio('decode', 'one thread')),
          threads_prefill: round2(ratio('prefill', 'one thread')),
        }),
  }),
);
process.exit(0);
