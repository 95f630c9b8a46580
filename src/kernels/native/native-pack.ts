import { RuvLLMError } from '../../core/errors.ts';
import { IQ2_XXS_GRID } from '../../quant/iq2-xxs-grid.ts';
import { createArena } from '../arena.ts';
import {
  alignArena,
  ARENA_ALIGNMENT,
  type KernelPack,
  type KernelPackFactory,
  type KernelPackOptions,
  PAGE_TOKENS,
} from '../contract.ts';
import { createRecordedPack, MAX_HEAD_DIM, MAX_HEAD_GROUP, packedBytes, roundedBytes } from '../recorded-pack.ts';
import { GROUP_ROWS, NATIVE_LAYOUTS } from './layouts.ts';

/** The functions of the addon (c/addon.c). */
export interface NativeAddon {
  createArena(sizeBytes: number): ArrayBuffer;
  startPool(arena: ArrayBuffer, numThreads: number, scratchAt: number, scratchBytes: number, grid: Int8Array): object;
  run(pool: object, program: Float64Array, numOps: number): void;
  stopPool(pool: object): void;
}

export interface NativeBuild {
  readonly addon: NativeAddon;
  /** The instruction set it was compiled for. */
  readonly build: string;
}

const RECORD_WORDS = 32;
const MAX_RECORDS = 2048;
const STAGING_BYTES = 8 << 20;
/** Offset 0 means "none" in records, so nothing may live there. */
const FIRST_FREE = 4096;
const TILE_TOKENS = 8;
const PASS_BYTES = 256 << 10;
/** Far above any machine's memory; offsets stay exact in a double. */
const MAX_ARENA = 2 ** 46;

/** The pack in C: the same contract, sixteen rows at a time, threads of its own. */
export function createNativePackFactory(native: NativeBuild): KernelPackFactory {
  return {
    name: 'native',
    maxArenaBytes: MAX_ARENA,
    matrixBytes: (type, numRows, numCols) => packedBytes(NATIVE_LAYOUTS[type], GROUP_ROWS, numRows, numCols),
    create: async (options) => createNativePack(native, options),
  };
}

function scratchBytesFor(maxCols: number): number {
  const attention = 2 * MAX_HEAD_DIM * PAGE_TOKENS * 4 + TILE_TOKENS * MAX_HEAD_GROUP * 8;
  const panel = GROUP_ROWS * maxCols + (maxCols / 32) * 64; // unpacked weights of one row group (c/tiles-amx.c)
  return alignArena(Math.max(attention, maxCols * 4, panel));
}

function createNativePack({ addon, build }: NativeBuild, options: KernelPackOptions): KernelPack {
  const { numThreads, maxCols, maxTokens } = options;
  const scratchBytes = scratchBytesFor(maxCols);
  const roundings = roundedBytes(NATIVE_LAYOUTS, options);
  const ownBytes =
    FIRST_FREE +
    STAGING_BYTES +
    ARENA_ALIGNMENT +
    numThreads * scratchBytes +
    roundings.reduce((sum, bytes) => sum + bytes, 0);
  const buffer = allocate(addon, ownBytes + options.arenaBytes);
  const arena = createArena(buffer, FIRST_FREE);
  const staging = { at: arena.allocate(STAGING_BYTES, 'staging'), sizeBytes: STAGING_BYTES };
  const scratchAt = arena.allocate(numThreads * scratchBytes, 'thread scratch');
  const roundedAt = roundings.map((bytes) => arena.allocate(bytes, 'rounded activations'));
  const refusedAt = arena.allocate(ARENA_ALIGNMENT, 'refused scales');
  const pool = addon.startPool(buffer, numThreads, scratchAt, scratchBytes, Int8Array.from(IQ2_XXS_GRID));

  const program = new Float64Array(MAX_RECORDS * RECORD_WORDS);
  let numRecords = 0;
  let isStopped = false;
  const run = (): void => {
    if (isStopped) throw new RuvLLMError('not_loaded', 'the kernel pack was disposed');
    if (numRecords === 0) return;
    const numOps = numRecords;
    numRecords = 0;
    // Whatever ends a program, all threads must have arrived: the last record always has a barrier.
    program[(numOps - 1) * RECORD_WORDS + 1] = 1;
    addon.run(pool, program, numOps);
  };

  return createRecordedPack({
    name: `native (${build})`,
    numThreads,
    arena,
    layouts: NATIVE_LAYOUTS,
    groupRows: GROUP_ROWS,
    maxCols,
    maxTokens,
    staging,
    refusedAt,
    roundedAt,
    passBytes: PASS_BYTES,
    record(opcode, words, barrierAfter = true) {
      if (numRecords === MAX_RECORDS) run();
      const base = numRecords++ * RECORD_WORDS;
      program[base] = opcode;
      program[base + 1] = barrierAfter ? 1 : 0;
      words.forEach((word, i) => (program[base + 2 + i] = typeof word === 'number' ? word : word.f32));
    },
    run,
    async dispose() {
      if (isStopped) return;
      isStopped = true;
      addon.stopPool(pool);
    },
  });
}

function allocate(addon: NativeAddon, sizeBytes: number): ArrayBuffer {
  try {
    return addon.createArena(sizeBytes);
  } catch (cause) {
    throw new RuvLLMError('out_of_memory', `the system refused ${sizeBytes} bytes for the model`, {
      cause,
      data: { neededBytes: sizeBytes },
    });
  }
}
