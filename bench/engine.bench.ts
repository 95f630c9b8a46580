// Our engine beside node-llama-cpp: the same file, the same number of threads, taking turns in one run.
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import type { TensorTypeName } from '../src/core/tensor-type.ts';
import { type BenchModel, benchModel } from './support/bench-model.ts';
import { type Contestant, type Request, startContestant } from './support/contestant.ts';
import { median, printTable } from './support/report.ts';

const { values: options } = parseArgs({
  options: {
    size: { type: 'string', default: '1b' },
    type: { type: 'string', default: 'Q4_0' },
    threads: { type: 'string', default: String(availableParallelism()) },
    rounds: { type: 'string', default: '3' },
    prompt: { type: 'string', default: '512' },
    decode: { type: 'string', default: '64' },
    depth: { type: 'string', default: '0' },
    kernels: { type: 'string', default: 'wasm' },
  },
});
const numThreads = Number(options.threads);
const numRounds = Number(options.rounds);
const numPrompt = Number(options.prompt);
const numDecode = Number(options.decode);
const depth = Number(options.depth);
const context = Math.ceil((Math.max(numPrompt, depth) + numDecode + 64) / 256) * 256;

const model = benchModel(options.size, options.type as TensorTypeName);
const kvBytes = context * 2 * model.shape.numLayers * model.shape.numKvHeads * model.shape.headDim * 2;
const kernels = options.kernels === 'native' ? 'native' : 'wasm';
const ours = startContestant(`ruvllm ${kernels}`, new URL('support/ruvllm-contestant.js', import.meta.url));
const peer = startContestant('node-llama-cpp', new URL('support/llama-cpp-contestant.js', import.meta.url));

interface Figures {
  loadMs: number;
  rssBytes: number;
  /** Tokens per second, a number a round. */
  prefill: number[];
  decode: number[];
}

async function race(contestants: readonly Contestant[], { path }: BenchModel): Promise<Map<string, Figures>> {
  const figures = new Map<string, Figures>();
  for (const contestant of contestants) {
    const { ms } = await contestant.ask({ do: 'load', path, numThreads, context, kernels });
    figures.set(contestant.name, { loadMs: ms, rssBytes: 0, prefill: [], decode: [] });
  }
  // Round -1 warms caches, page tables and compilers of both, and is not counted.
  for (let round = -1; round < numRounds; round++) {
    for (const task of ['prefill', 'decode'] as const) {
      for (const contestant of round % 2 === 0 ? contestants : contestants.toReversed()) {
        const numTokens = task === 'prefill' ? numPrompt : numDecode;
        const request: Request = task === 'prefill' ? { do: task, numTokens } : { do: task, numTokens, depth };
        const { ms, rssBytes } = await contestant.ask(request);
        const entry = figures.get(contestant.name)!;
        entry.rssBytes = Math.max(entry.rssBytes, rssBytes);
        if (round >= 0) entry[task].push((numTokens * 1000) / ms);
      }
    }
  }
  return figures;
}

try {
  const figures = await race([ours, peer], model);
  const us = figures.get(ours.name)!;
  const them = figures.get(peer.name)!;
  const row = (name: string, { loadMs, rssBytes, prefill, decode }: Figures): string[] => [
    name,
    median(prefill).toFixed(1),
    median(decode).toFixed(2),
    ((median(decode) * model.sizeBytes) / 1e9).toFixed(1),
    loadMs.toFixed(0),
    (rssBytes / 2 ** 20).toFixed(0),
  ];
  const ratios: Record<string, number> = {
    [`${kernels}_prefill`]: median(us.prefill.map((speed, round) => speed / them.prefill[round]!)),
    [`${kernels}_decode`]: median(us.decode.map((speed, round) => speed / them.decode[round]!)),
    memory: us.rssBytes / (model.sizeBytes + kvBytes),
  };
  console.log(`${options.size} ${options.type}, ${numThreads} threads, ${numRounds} rounds, medians`);
  printTable([
    ['', `prompt ${numPrompt} tok/s`, `decode ${numDecode} tok/s`, 'decode GB/s', 'load ms', 'memory MiB'],
    row(ours.name, us),
    row(peer.name, them),
  ]);
  console.log(`memory of ours / (file + KV): ${ratios['memory']!.toFixed(2)}`);
  console.log(JSON.stringify({ bench: 'engine', ...options, model: model.path, ...ratios, ours: us, peer: them }));
} finally {
  ours.stop();
  peer.stop();
}
