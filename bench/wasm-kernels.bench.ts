// Matmul and attention of the WASM builds on one thread, interleaved; the shortest of many runs, which load on the
// machine affects least.
//   npm run bench -- wasm-kernels
import type { TensorTypeName } from '../src/core/tensor-type.ts';
import type { KernelPack } from '../src/kernels/contract.ts';
import type { WasmModule } from '../src/kernels/wasm/platform.ts';
import { randomBlocks } from '../test/support/random-blocks.ts';
import { importBuilt } from './support/dist.ts';
import { printTable } from './support/report.ts';

const { createNodeWasmPlatform } = await importBuilt<typeof import('../src/platform/node/kernels/wasm-platform.ts')>('platform/node/kernels/wasm-platform'); // prettier-ignore
const { createWasmPackFactory } = await importBuilt<typeof import('../src/kernels/wasm/wasm-pack.ts')>('kernels/wasm/wasm-pack'); // prettier-ignore

const BUILDS: readonly WasmModule['build'][] = ['signed-dot', 'relaxed-simd', 'simd128'];
/** More memory than 32-bit addresses reach; it is never touched. */
const FAR = 2 ** 32;
const TYPES: readonly TensorTypeName[] = ['Q4_0', 'Q8_0', 'Q4_K', 'Q6_K', 'IQ4_NL'];
const [NUM_ROWS, NUM_COLS] = [512, 2048];
/** One token reads weights that no near cache still holds. */
const NUM_COPIES = 24;
const NUM_ROUNDS = 60;

interface Task {
  readonly name: string;
  readonly macs: number;
  /** Records the `round`th run on the pack. */
  record(round: number): void;
}

const wave = (length: number): Float32Array => Float32Array.from({ length }, (_, i) => Math.sin(1.7 * i));

function createMatmuls(pack: KernelPack): Task[] {
  const put = (values: Float32Array): number => {
    const offset = pack.arena.allocate(values.byteLength, 'input');
    pack.arena.f32(offset, values.length).set(values);
    return offset;
  };
  return TYPES.flatMap((type) => {
    const bytes = randomBlocks(type, NUM_ROWS * NUM_COLS, 1);
    const readInto = (target: Uint8Array, at: number): void => target.set(bytes.subarray(at, at + target.length));
    const shape = { name: type, type, numRows: NUM_ROWS, numCols: NUM_COLS, readInto };
    const weights = Array.from({ length: NUM_COPIES }, () => pack.loadMatrix(shape));
    return [1, 16].map((numTokens): Task => {
      const x = put(wave(NUM_COLS * numTokens));
      const out = put(new Float32Array(NUM_ROWS * numTokens));
      const output = { out, bias: null, accumulate: false };
      return {
        name: `${type}, ${numTokens === 1 ? '1 token' : `${numTokens} tokens`}`,
        macs: NUM_ROWS * NUM_COLS * numTokens,
        record: (round) =>
          pack.matmul({ x, numTokens, outputs: [{ ...output, weight: weights[round % NUM_COPIES]! }] }),
      };
    });
  });
}

function createAttention(pack: KernelPack, numTokens: number, context: number): Task {
  const [numHeads, numKvHeads, headDim] = [32, 8, 64];
  const numPages = context / 16;
  const pageBytes = 2 * 16 * numKvHeads * headDim * 2;
  const base = pack.arena.allocate(numPages * pageBytes, 'pages');
  const region = { numPages, numKvHeads, headDim, precision: 'f16' } as const;
  const kv = { base, pageBytes, layerBytes: numPages * pageBytes, ...region };
  const ints = (values: readonly number[]): number => {
    const offset = pack.arena.allocate(values.length * 4, 'input');
    pack.arena.i32(offset, values.length).set(values);
    return offset;
  };
  const q = pack.arena.allocate(numTokens * numHeads * headDim * 8, 'rows');
  const out = q + numTokens * numHeads * headDim * 4;
  // Memory that was never written is one page of zeros to the caches, and slow to read at many addresses at once.
  pack.arena.u8(base, numPages * pageBytes).fill(0);
  pack.arena.f32(q, numTokens * numHeads * headDim * 2).fill(1);
  const tables = { sequences: ints([0, numTokens, context, 0]), pageTables: ints([...Array(numPages).keys()]) };
  const limits = { numSequences: 1, scale: 0.125, window: 0, softcap: 0 };
  return {
    name: `attention, ${numTokens} of ${context}`,
    macs: 2 * numTokens * numHeads * headDim * context,
    record: () => pack.attention({ kv, layer: 0, q, out, numHeads, ...tables, ...limits }),
  };
}

async function open(
  build: WasmModule['build'],
  addressBits: 32 | 64,
): Promise<{ build: string; pack: KernelPack; tasks: Task[] } | null> {
  const platform = createNodeWasmPlatform([build]);
  const failure = await platform.loadModule().then(() => null, (error: Error) => error.message); // prettier-ignore
  if (failure !== null) {
    console.log(`${build}: skipped, ${failure}`);
    return null;
  }
  if (addressBits === 64 && !platform.hasMemory64) return null;
  const options = {
    arenaBytes: 2 ** 28 + (addressBits === 64 ? FAR : 0),
    numThreads: 1,
    maxTokens: 64,
    maxCols: NUM_COLS,
  };
  const pack = await createWasmPackFactory(platform).create(options);
  return {
    build: addressBits === 64 ? `${build}, 64-bit` : build,
    pack,
    tasks: [...createMatmuls(pack), createAttention(pack, 8, 512), createAttention(pack, 1, 2048)],
  };
}

const entrants = (await Promise.all(BUILDS.flatMap((build) => [open(build, 32), open(build, 64)]))).filter(
  (entrant) => entrant !== null,
);
const best = entrants.map(({ tasks }) => tasks.map(() => Infinity));
for (let round = 0; round < NUM_ROUNDS; round++) {
  for (const [e, { pack, tasks }] of entrants.entries()) {
    for (const [t, task] of tasks.entries()) {
      task.record(2 * round); // Not timed: the caches are still those of the previous task.
      await pack.sync();
      const start = performance.now();
      task.record(2 * round + 1);
      await pack.sync();
      best[e]![t] = Math.min(best[e]![t]!, performance.now() - start);
    }
  }
}
const names = entrants.map(({ build }) => build);
const speeds = entrants[0]!.tasks.map(({ name, macs }, t) => ({ name, gmacs: best.map((ms) => macs / ms[t]! / 1e6) }));
printTable([
  ['GMAC/s', ...names],
  ...speeds.map(({ name, gmacs }) => [name, ...gmacs.map((value) => value.toFixed(1))]),
]);
console.log(JSON.stringify({ bench: 'wasm-kernels', builds: names, speeds }));
for (const { pack } of entrants) await pack.dispose();
