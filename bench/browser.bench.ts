// Speed in a page: this library and wllama (llama.cpp in WebAssembly), in one Chromium, on one file, in turns.
//   npm run bench -- browser [--model PATH] [--rounds N] [--tokens N] [--single]
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

async function openOurs(page: Page, url: string): Promise<Contestant> {
  await page.goto(`${url}blank.html`);
  await waitForLibrary(page);
  await page.evaluate(
    async ({ file, maxContext }) => {
      // Drafts would make repeated texts faster, and the peer has none.
      const model = await ruvllm.loadModel(`/files/${file}`, { maxContext, speculation: 'off', prefixCache: false });
      globalThis.kept = { ...globalThis.kept, model };
    },
    { file: FILE, maxContext: CONTEXT },
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
const ours = await openOurs(await context.newPage(), site.url);
const theirs = await openPeer(await context.newPage(), site.url);
const results: { readonly ours: Speed; readonly theirs: Speed }[] = [];
for (let round = -2; round < Number(values.rounds); round++) {
  // The order changes: the machine may become faster or slower meanwhile.
  const isOursFirst = round % 2 === 0;
  const [a, b] = isOursFirst ? [ours, theirs] : [theirs, ours];
  const one = await measure(a, round + 10);
  const other = await measure(b, round + 10);
  if (round >= 0) results.push(isOursFirst ? { ours: one, theirs: other } : { ours: other, theirs: one });
}
await context.close();
const of = (who: 'ours' | 'theirs', what: keyof Speed): number => median(results.map((result) => result[who][what]));
const ratio = (what: keyof Speed): number => of('ours', what) / of('theirs', what);
printTable([
  ['tokens/s, median', 'RuvLLM', 'wllama 3.8.1', 'ratio'],
  ...(['prefill', 'decode'] as const).map((what) => [
    what,
    of('ours', what).toFixed(1),
    of('theirs', what).toFixed(1),
    `${ratio(what).toFixed(2)}x`,
  ]),
]);
const round2 = (value: number): number => Math.round(value * 100) / 100;
console.log(JSON.stringify({ model: FILE, isolated: !values.single, browser_decode: round2(ratio('decode')), browser_prefill: round2(ratio('prefill')) })); // prettier-ignore
process.exit(0);
