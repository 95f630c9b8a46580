// Compares mixtures of experts with node-llama-cpp: the same file, the same number of threads, interleaved in one run. Then measures what
// the second turn of a hybrid model costs, the speed and memory of quantize, and how far its result is from that of llama.cpp.
//   npm run bench -- models                  a mixture with the shape of a 7B model that uses 1B per token
//   npm run bench -- models --layers 4       fewer layers of the same shape
//   npm run bench -- models --quick          small files: shows that everything runs, its figures mean nothing
//   npm run bench -- models --skip mixture   leaves out mixture, hybrid or quantize; several times
//   npm run bench -- models --clean          deletes the random files afterwards
import { readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { type BenchModel, benchHybrid, benchMixture, benchModel } from './support/bench-model.ts';
import { importBuilt } from './support/dist.ts';
import { findNativeEntrants, peer, wasm } from './support/entrants.ts';
import { measureHybridReuse } from './support/hybrid-reuse.ts';
import { measureQuantize, quantizeWithLlamaCpp } from './support/quantize-run.ts';
import { race, type RaceResult, ratio } from './support/race.ts';
import { printRace } from './support/race-table.ts';
import type { TaskName } from './support/tasks.ts';

const { values: options } = parseArgs({
  options: {
    layers: { type: 'string', default: '16' },
    rounds: { type: 'string', default: '3' },
    threads: { type: 'string', default: String(availableParallelism()) },
    prompt: { type: 'string', default: '512' },
    decode: { type: 'string', default: '64' },
    quick: { type: 'boolean', default: false },
    skip: { type: 'string', multiple: true, default: [] },
    clean: { type: 'boolean', default: false },
  },
});
const { quick } = options;
const number = (name: 'layers' | 'rounds' | 'threads' | 'prompt' | 'decode', max: number): number => {
  const value = Number(options[name]);
  if (Number.isInteger(value) && value >= 1 && value <= max) return value;
  console.error(`error: --${name} is "${options[name]}", must be a whole number from 1 to ${max}`);
  process.exit(2);
};
const settings = {
  numThreads: number('threads', 256),
  numRounds: number('rounds', 100),
  numPrompt: number('prompt', 8000),
  numDecode: number('decode', 4000),
  depth: 0,
};

const isSkipped = (part: string): boolean => options.skip.includes(part);
const unknownPart = options.skip.find((part) => !['mixture', 'hybrid', 'quantize'].includes(part));
if (unknownPart !== undefined) {
  console.error(`error: --skip is "${unknownPart}", must be mixture, hybrid or quantize`);
  process.exit(2);
}
const used: string[] = [];
const keep = (model: BenchModel): BenchModel => {
  used.push(model.path);
  return model;
};

/** The mixture against the peer. */
async function raceMixture() {
  const { best } = await findNativeEntrants();
  const ours = best ?? wasm;
  const model = keep(benchMixture('Q4_0', quick ? 1 : number('layers', 64)));
  const sizes = quick ? { ...settings, numRounds: 1, numPrompt: 64, numDecode: 8 } : settings;
  const result = await race(model, { prefill: [ours, peer], decode: [ours, peer] }, sizes, null);
  printRace(result);
  const against = ({ figures }: RaceResult, task: TaskName): number =>
    ratio(figures.get(ours.name)!.speeds[task]!, figures.get(peer.name)!.speeds[task]!);
  return {
    build: ours.name,
    model: model.name,
    moe_prefill: against(result, 'prefill'),
    moe_decode: against(result, 'decode'),
    figures: Object.fromEntries(result.figures),
  };
}

/** What the second turn costs of the first. */
async function reuseHybrid() {
  const model = keep(benchHybrid('Q4_0', quick ? 3 : 18));
  const result = await measureHybridReuse(model.path, quick ? 300 : 2000, settings.numThreads);
  const { firstMs, secondMs, cachedTokens, promptTokens, isEqual } = result;
  console.log(
    `hybrid (${model.name}): first turn ${firstMs.toFixed(0)} ms for ${promptTokens} tokens, second ${secondMs.toFixed(0)} ms ` +
      `with ${cachedTokens} cached, tokens ${isEqual ? 'equal to' : 'DIFFERENT from'} those without a cache`,
  );
  if (!isEqual) process.exitCode = 1;
  return { hybrid_reuse: firstMs / secondMs, hybrid_equal: isEqual, hybrid: result };
}

/** Speed and memory of quantize, and the divergence of its result beside that of llama.cpp. */
async function quantize() {
  const { compareTokens } =
    await importBuilt<typeof import('../src/node/quantize/text-logits.ts')>('node/quantize/text-logits');
  const model = keep(benchModel(quick ? '15m' : '0.5b', 'F32'));
  const target = '.cache/bench/quantized.gguf';
  const theirs = '.cache/bench/quantized-llama-cpp.gguf';
  try {
    const run = await measureQuantize(model.path, target);
    const peakMb = (run.peakBytes - run.largestTensorBytes) / 2 ** 20;
    const speed = run.sourceBytes / 1e6 / run.seconds;
    const tokens = Array.from(
      { length: quick ? 64 : 256 },
      (_, i) => 300 + ((i * 7919 + ((i * i) % 101) * 31) % 20_000),
    );
    const how = { kernels: 'auto', numThreads: settings.numThreads } as const;
    const kl = (await compareTokens(model.path, target, tokens, how)).meanKl;
    const peerFile = quantizeWithLlamaCpp(model.path, theirs);
    const peerKl = peerFile === null ? null : (await compareTokens(model.path, peerFile, tokens, how)).meanKl;
    console.log(
      `quantize (${model.name} to Q4_K_M): ${speed.toFixed(1)} MB/s, ${peakMb.toFixed(0)} MiB above the largest tensor, ` +
        `KL ${kl.toExponential(2)}; llama.cpp ${peerKl === null ? 'not measured' : peerKl.toExponential(2)}`,
    );
    return { quantize_peak_mb: peakMb, quantize_mb_per_s: speed, quantize_kl: kl, llama_cpp_kl: peerKl };
  } finally {
    for (const path of [target, theirs]) rmSync(path, { force: true });
  }
}

/** Formats whose decoding the tests compare with ggml, and architectures that `npm run compare` compares with llama.cpp. */
async function countProven() {
  const { architectures } = await importBuilt<typeof import('../src/models/registry.ts')>('models/registry');
  const { quantFormats } = await importBuilt<typeof import('../src/quant/index.ts')>('quant/index');
  const golden = JSON.parse(readFileSync('src/quant/golden.json', 'utf8')) as Record<'dequantize' | 'quantize', object>;
  const compared = readFileSync('bench/compare.ts', 'utf8');
  const formats = Object.keys(quantFormats).filter(
    (name) => name === 'F32' || name in golden.dequantize || name in golden.quantize,
  );
  const proven = [...architectures.keys()].filter((name) => compared.includes(`'${name}'`));
  return { formats: formats.length, architectures: proven.length };
}

const mixture = isSkipped('mixture') ? { moe_prefill: null, moe_decode: null } : await raceMixture();
const hybrid = isSkipped('hybrid') ? { hybrid_reuse: null } : await reuseHybrid();
const quantized = isSkipped('quantize') ? { quantize_peak_mb: null } : await quantize();
if (options.clean) for (const path of used) rmSync(path, { force: true });
const { moe_prefill, moe_decode, ...mixtureDetails } = mixture;
const { hybrid_reuse, ...hybridDetails } = hybrid;
const { quantize_peak_mb, ...quantizeDetails } = quantized;
console.log(
  JSON.stringify({
    bench: 'models',
    arch: process.arch,
    quick,
    ...settings,
    moe_prefill,
    moe_decode,
    hybrid_reuse,
    quantize_peak_mb,
    ...(await countProven()),
    ...mixtureDetails,
    ...hybridDetails,
    ...quantizeDetails,
  }),
);
