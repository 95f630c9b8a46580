import { RuvLLMError } from '../../core/errors.ts';
import { quantFormats, rowBytes } from '../../quant/index.ts';
import { createArena } from '../arena.ts';
import { checkedMatrixBytes } from '../matrix-bytes.ts';
import {
  alignArena,
  ARENA_ALIGNMENT,
  type KernelPack,
  type KernelPackFactory,
  type KernelPackOptions,
  type KvRegion,
  PAGE_TOKENS,
  type WeightMatrix,
} from '../contract.ts';
import { activationBytes, matrixBytes, NUM_ROUNDINGS, WASM_LAYOUTS, type WasmLayout } from './layouts.ts';
import type { HelperThread, WasmPlatform } from './platform.ts';
import { createProgram, OPCODES, PROGRAM_BYTES } from './program.ts';
import { writeTables } from './tables.ts';

const WASM_PAGE = 65536;
/** The first page holds the module's own data and the threads' control block (assembly/control.ts). */
const FIRST_FREE = WASM_PAGE;
/** 32-bit addresses; the last page stays unused so that the address behind the end is one too. */
const MAX_MEMORY = 65535 * WASM_PAGE;
/** Raw rows on their way from the file into a packed layout. */
const STAGING_BYTES = 4 << 20;
/** Largest head and head group the attention scratch is sized for. */
const MAX_HEAD_DIM = 512;
const MAX_HEAD_GROUP = 64;
const TILE_TOKENS = 8;
/** Rounded activations of one pass over a chunk of rows: what stays in the first-level cache beside the weights. */
const PASS_BYTES = 48 << 10;

const MAP_KINDS = { add: 0, silu: 1, gelu: 2, softcap: 3, scale: 4 } as const;

interface KernelExports {
  run(program: number, numOps: number, numThreads: number, scratch: number): void;
  help(scratch: number, started: number): void;
  stopHelpers(numThreads: number): void;
}

interface WasmMatrix extends WeightMatrix {
  readonly layout: WasmLayout;
}

/** The portable fast pack: AssemblyScript kernels on shared memory, spread over helper threads. */
export function createWasmPackFactory(platform: WasmPlatform): KernelPackFactory {
  return {
    name: 'wasm',
    maxArenaBytes: MAX_MEMORY,
    matrixBytes,
    create: (options) => createWasmPack(platform, options),
  };
}

function threadScratchBytes(maxCols: number): number {
  const attention = 2 * MAX_HEAD_DIM * PAGE_TOKENS * 4 + TILE_TOKENS * MAX_HEAD_GROUP * 80;
  return alignArena(Math.max(attention, 64 + 4 * maxCols * 4));
}

function roundingBytes(options: KernelPackOptions): number[] {
  const bytes = Array.from({ length: NUM_ROUNDINGS }, () => 0);
  for (const layout of Object.values(WASM_LAYOUTS)) {
    if (layout.activation === null) continue;
    const size = alignArena(activationBytes(layout, options.maxCols, options.maxTokens));
    bytes[layout.activation] = Math.max(bytes[layout.activation]!, size);
  }
  return bytes;
}

async function createWasmPack(platform: WasmPlatform, options: KernelPackOptions): Promise<KernelPack> {
  const { numThreads } = options;
  const scratchBytes = threadScratchBytes(options.maxCols);
  const roundings = roundingBytes(options);
  const ownBytes =
    FIRST_FREE +
    PROGRAM_BYTES +
    STAGING_BYTES +
    ARENA_ALIGNMENT +
    numThreads * scratchBytes +
    roundings.reduce((a, b) => a + b, 0);
  const totalBytes = ownBytes + options.arenaBytes;
  if (totalBytes > MAX_MEMORY) {
    throw new RuvLLMError('out_of_memory', `the model needs ${totalBytes} bytes, WASM memory ends at ${MAX_MEMORY}`, {
      data: { neededBytes: totalBytes, limitBytes: MAX_MEMORY },
    });
  }
  const pages = Math.ceil(totalBytes / WASM_PAGE);
  const memory = allocateMemory(pages);
  const { module, build } = await platform.loadModule();
  const kernels = new WebAssembly.Instance(module, { env: { memory } }).exports as unknown as KernelExports;

  writeTables(memory.buffer);
  const arena = createArena(memory.buffer, FIRST_FREE);
  const programAt = arena.allocate(PROGRAM_BYTES, 'program');
  const stagingAt = arena.allocate(STAGING_BYTES, 'staging');
  const scratchAt = arena.allocate(numThreads * scratchBytes, 'thread scratch');
  const roundedAt = roundings.map((bytes) => arena.allocate(bytes, 'rounded activations'));
  const refusedAt = arena.allocate(ARENA_ALIGNMENT, 'refused scales');

  const helpers = await startHelpers(
    platform,
    module,
    memory,
    numThreads,
    stagingAt,
    (i) => scratchAt + i * scratchBytes,
  );
  let failure: unknown = null;
  for (const helper of helpers) helper.failed.catch((error: unknown) => (failure ??= error));

  const program = createProgram(memory.buffer, programAt, runNow);
  function runNow(): void {
    if (program.numRecords === 0) return;
    const numOps = program.numRecords;
    program.clear();
    if (failure !== null) {
      throw new RuvLLMError('kernel_failed', `the kernels stopped: ${String(failure)}`, { cause: failure });
    }
    try {
      kernels.run(programAt, numOps, numThreads, scratchAt);
    } catch (cause) {
      // The helpers wait in the middle of this program: with another they would run the wrong operations.
      failure = cause;
      throw new RuvLLMError('kernel_failed', `WASM kernels trapped: ${String(cause)}`, { cause });
    }
  }

  function recordKv(kv: KvRegion, layer: number): number[] {
    return [kv.base, kv.pageBytes, layer * kv.layerBytes, kv.numKvHeads, kv.headDim];
  }

  function map(kind: number, x: number, y: number, out: number, count: number, factor = 0): void {
    program.record(OPCODES.map, [kind, x, y, out, count, { f32: factor }]);
  }

  return {
    name: `wasm (${build})`,
    numThreads,
    arena,

    loadMatrix(source) {
      const { name, type, numRows, numCols } = source;
      checkedMatrixBytes(source);
      const layout = WASM_LAYOUTS[type];
      const sourceRowBytes = rowBytes(type, numCols);
      const rowsPerStrip = Math.floor(STAGING_BYTES / sourceRowBytes / 4) * 4;
      if (rowsPerStrip === 0 || numCols > options.maxCols) {
        throw new RuvLLMError(
          'unsupported',
          `${name} has ${numCols} columns, this pack was made for ${options.maxCols}`,
        );
      }
      const sizeBytes = matrixBytes(type, numRows, numCols);
      const offset = arena.allocate(sizeBytes, name);
      const groupBytes = (numCols / layout.blockCols) * layout.blockBytes;
      for (let row = 0; row < numRows; row += rowsPerStrip) {
        const rows = Math.min(rowsPerStrip, numRows - row);
        source.readInto(arena.u8(stagingAt, rows * sourceRowBytes), row * sourceRowBytes);
        const target = offset + (row / 4) * groupBytes;
        const typeId = quantFormats[type].ggufId;
        const words = [stagingAt, typeId, rows, numCols, sourceRowBytes, target, layout.id, refusedAt];
        program.record(OPCODES.repack, words);
        runNow();
        if (arena.i32(refusedAt, 1)[0] !== 0) {
          arena.i32(refusedAt, 1)[0] = 0;
          throw new RuvLLMError(
            'invalid_model_file',
            `${name} (${type}) has a scale that is infinite or not a number in rows ${row} to ${row + rows - 1}`,
            { data: { name, type, firstRow: row, numRows: rows } },
          );
        }
      }
      const matrix: WasmMatrix = { name, type, numRows, numCols, offset, sizeBytes, layout };
      return matrix;
    },

    gatherRows({ table, ids, out, numRows, scale }) {
      const { layout } = table as WasmMatrix;
      program.record(OPCODES.gather, [table.offset, layout.id, table.numCols, ids, out, numRows, { f32: scale }]);
    },

    matmul({ x, numTokens, outputs }) {
      if (numTokens === 0) return;
      if (numTokens > options.maxTokens) {
        // The rounded activations would run over the caller's memory.
        throw new RuvLLMError('internal', `matmul of ${numTokens} tokens, this pack was made for ${options.maxTokens}`);
      }
      const numCols = outputs[0]!.weight.numCols;
      const layouts = outputs.map(({ weight }) => (weight as WasmMatrix).layout);
      const tileOf = (layout: WasmLayout): number => (layout.isTiled && numTokens > 1 ? 4 : 1);
      const roundings = new Map(layouts.map((layout) => [layout.activation, tileOf(layout)]));
      roundings.delete(null);
      let numLeft = roundings.size;
      for (const [kind, tile] of roundings) {
        program.record(OPCODES.round, [x, roundedAt[kind!]!, kind!, numCols, numTokens, tile], --numLeft === 0);
      }
      outputs.forEach(({ weight, out, bias, accumulate }, i) => {
        const layout = layouts[i]!;
        const kind = layout.activation;
        const groups = Math.ceil(weight.numRows / 4);
        const groupsPerChunk = Math.max(1, Math.min(16, Math.floor(groups / (numThreads * 4))));
        const tileBytes = layout.activationBytesPerCol * numCols * 4;
        const tilesPerPass = layout.isTiled ? Math.max(1, Math.floor(PASS_BYTES / tileBytes)) : 1;
        program.record(
          OPCODES.matmul,
          [
            weight.offset,
            layout.id,
            weight.numRows,
            numCols,
            kind === null ? x : roundedAt[kind]!,
            kind ?? 0,
            numTokens,
            tileOf(layout),
            out,
            bias ?? 0,
            accumulate ? 1 : 0,
            groupsPerChunk,
            tilesPerPass,
          ],
          i === outputs.length - 1,
        );
      });
    },

    rmsNorm: ({ x, weight, out, numRows, dim, epsilon }) =>
      program.record(OPCODES.rmsNorm, [x, weight, out, numRows, dim, { f32: epsilon }]),

    rope: ({ x, cosSin, numTokens, numHeads, headDim, rotaryDim, pairing }) =>
      program.record(OPCODES.rope, [x, cosSin, numTokens, numHeads, headDim, rotaryDim, pairing === 'halves' ? 1 : 0]),

    writeKv: ({ kv, layer, k, v, slots, numTokens }) =>
      program.record(OPCODES.writeKv, [...recordKv(kv, layer), k, v, slots, numTokens, kv.precision === 'f32' ? 1 : 0]),

    attention({ kv, layer, q, out, numHeads, sequences, numSequences, pageTables, scale, window, softcap }) {
      const group = numHeads / kv.numKvHeads;
      if (kv.headDim > MAX_HEAD_DIM || kv.headDim % 4 !== 0 || group > MAX_HEAD_GROUP || !Number.isInteger(group)) {
        throw new RuvLLMError(
          'unsupported',
          `attention with ${numHeads} heads over ${kv.numKvHeads} KV heads of ${kv.headDim} values: at most ` +
            `${MAX_HEAD_GROUP} heads a KV head and ${MAX_HEAD_DIM} values, in fours`,
        );
      }
      const tables = [sequences, numSequences, pageTables];
      const words = [
        q,
        out,
        numHeads,
        ...tables,
        { f32: scale },
        window,
        { f32: softcap },
        kv.precision === 'f32' ? 1 : 0,
      ];
      program.record(OPCODES.attention, [...recordKv(kv, layer), ...words]);
    },

    gatedActivation: ({ gate, up, out, count, activation }) => map(MAP_KINDS[activation], gate, up, out, count),
    add: ({ x, y, out, count }) => map(MAP_KINDS.add, x, y, out, count),
    softcap: ({ x, count, cap }) => map(MAP_KINDS.softcap, x, x, x, count, cap),
    scale: ({ x, count, factor }) => map(MAP_KINDS.scale, x, x, x, count, factor),
    copyRows: ({ x, rows, out, numRows, dim }) => program.record(OPCODES.copyRows, [x, rows, out, numRows, dim]),

    async sync() {
      runNow();
    },

    async dispose() {
      failure ??= 'the pack is disposed';
      kernels.stopHelpers(numThreads);
      await Promise.all(helpers.map((helper) => helper.terminate()));
    },
  };
}

function allocateMemory(pages: number): WebAssembly.Memory {
  try {
    return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  } catch (cause) {
    throw new RuvLLMError('out_of_memory', `the system refused ${pages * WASM_PAGE} bytes of WASM memory`, {
      cause,
      data: { neededBytes: pages * WASM_PAGE },
    });
  }
}

/** Starts helpers and waits until each sits in its loop: a program published earlier would be missed. */
async function startHelpers(
  platform: WasmPlatform,
  module: WebAssembly.Module,
  memory: WebAssembly.Memory,
  numThreads: number,
  counterAt: number,
  scratchOf: (thread: number) => number,
): Promise<HelperThread[]> {
  const counter = new Int32Array(memory.buffer, counterAt, 1);
  Atomics.store(counter, 0, 0);
  const helpers: HelperThread[] = [];
  for (let thread = 1; thread < numThreads; thread++) {
    helpers.push(platform.spawnHelper({ module, memory, scratch: scratchOf(thread), started: counterAt }));
  }
  const failures = helpers.map((helper) => helper.failed);
  const allUp = async (): Promise<void> => {
    for (let up = Atomics.load(counter, 0); up < numThreads - 1; up = Atomics.load(counter, 0)) {
      const change = Atomics.waitAsync(counter, 0, up);
      if (change.async) await change.value;
    }
  };
  try {
    await Promise.race([allUp(), ...failures]);
  } catch (error) {
    await Promise.all(helpers.map((helper) => helper.terminate()));
    throw error;
  }
  // Not earlier: nothing else may hold the process while it waits for its threads.
  for (const helper of helpers) helper.detach();
  return helpers;
}
