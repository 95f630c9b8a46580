// Compares the webgpu kernels with node-llama-cpp's Vulkan build on one GPU: the same file, in separate processes.
//   npm run bench -- webgpu               a random 1B model in Q4_0, written on first use
//   npm run bench -- webgpu --model FILE  another model
//   npm run bench -- webgpu --alone       without the peer
//   npm run bench -- webgpu --layers 4,8  instead: only these layers on the GPU, beside the processor alone
import { statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { benchModel } from './support/bench-model.ts';
import type { Contestant } from './support/contestant.ts';
import { type Entrant, findNativeEntrants, vulkanPeer, wasm, webgpu, withContestants } from './support/entrants.ts';
import { median, printTable } from './support/report.ts';
import { measureReadBandwidth } from './support/read-bandwidth.ts';

const PROMPT = 512;
const DEPTH = 128;
const SEQUENCES = 32;
const { values: flags } = parseArgs({
  options: {
    model: { type: 'string' },
    alone: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '5' },
    decode: { type: 'string', default: '128' },
    layers: { type: 'string' },
  },
});
const numRounds = Number(flags.rounds);
const numDecode = Number(flags.decode);
const bench = flags.model === undefined ? benchModel('1b', 'Q4_0') : null;
const path = bench?.path ?? flags.model!;
const decodeBytes = bench?.decodeBytes ?? statSync(path).size;

/** Tokens per second, each the median of the rounds after a warm-up. */
interface Speeds {
  readonly prefill: number;
  readonly decode: number;
  readonly b32: number;
}

async function measure(contestant: Contestant): Promise<Speeds> {
  const speedOf = async (work: () => ReturnType<Contestant['ask']>): Promise<number> => {
    await work();
    const speeds: number[] = [];
    for (let round = 0; round < numRounds; round++) {
      const { ms, numTokens } = await work();
      speeds.push((numTokens * 1000) / ms);
    }
    return median(speeds);
  };
  const decode = (numSequences: number, numTokens: number) => () =>
    contestant.ask({ do: 'decode', numTokens, numSequences, depth: DEPTH });
  return {
    prefill: await speedOf(() => contestant.ask({ do: 'prefill', numTokens: PROMPT })),
    decode: await speedOf(decode(1, numDecode)),
    b32: await speedOf(decode(SEQUENCES, Math.ceil(numDecode / 2))),
  };
}

/** One engine at a time: two on one GPU would slow each other down. */
async function run(
  entrant: Entrant,
  options: { numThreads?: number; gpuLayers?: number } = {},
): Promise<Speeds | string> {
  try {
    const sizes = { context: PROMPT + DEPTH + numDecode, numSequences: SEQUENCES };
    const request = { path, numThreads: 4, ...sizes, ...options };
    return await withContestants([entrant], request, ([contestant]) => measure(contestant!));
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

const cell = (speeds: Speeds | string, name: keyof Speeds): string =>
  typeof speeds === 'string' ? '-' : speeds[name].toFixed(1);
const names = ['decode', 'prefill', 'b32'] as const;

/** Each number of layers on the GPU beside the processor alone. */
async function runSplits(layers: readonly number[]): Promise<never> {
  const numThreads = availableParallelism();
  const processor = (await findNativeEntrants()).best ?? wasm;
  const rows = [{ layers: 0, speeds: await run(processor, { numThreads }) }];
  for (const gpuLayers of layers)
    rows.push({ layers: gpuLayers, speeds: await run(webgpu, { numThreads, gpuLayers }) });
  printTable([
    ['layers on the GPU', ...names],
    ...rows.map(({ layers: count, speeds }) => [String(count), ...names.map((name) => cell(speeds, name))]),
  ]);
  for (const { speeds } of rows) if (typeof speeds === 'string') console.log(speeds);
  console.log(JSON.stringify({ bench: 'webgpu-split', processor: processor.name, rows }));
  process.exit(0);
}
if (flags.layers !== undefined) await runSplits(flags.layers.split(',').map(Number));

const bandwidth = await measureReadBandwidth(2 ** 30);
console.log(`A shader reads ${(bandwidth / 1e9).toFixed(0)} GB/s`);
const ours = await run(webgpu);
const theirs = flags.alone ? 'not asked' : await run(vulkanPeer);
printTable([
  ['tokens/s', webgpu.name, vulkanPeer.name],
  ...names.map((name) => [name, cell(ours, name), cell(theirs, name)]),
]);
for (const speeds of [ours, theirs]) if (typeof speeds === 'string') console.log(speeds);
const ratio = (name: keyof Speeds): number | null =>
  typeof ours === 'string' || typeof theirs === 'string' ? null : ours[name] / theirs[name];
const share = typeof ours === 'string' ? null : (ours.decode * decodeBytes) / bandwidth;
if (share !== null) console.log(`decode reads weights at ${(100 * share).toFixed(1)} % of that`);
console.log(
  JSON.stringify({
    bench: 'webgpu',
    ...Object.fromEntries(names.map((name) => [`gpu_${name}`, ratio(name)])),
    ours,
    theirs,
    readBytesPerSecond: bandwidth,
    decodeShare: share,
  }),
);
process.exit(0); // Dawn keeps threads alive
