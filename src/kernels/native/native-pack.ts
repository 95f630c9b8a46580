import { RuvLLMError } from '../../core/errors.ts';
import { IQ2_XXS_GRID } from '../../quant/iq2-xxs-grid.ts';
import { createArena } from '../arena.ts';
import {
  alignArena,
  ARENA_ALIGNMENT,
  type KernelPack,
  type KernelPackFactory,
  type KernelPackOptions,
} from '../contract.ts';
import { createRecordedPack, MAX_HEAD_DIM, MAX_HEAD_GROUP, packedBytes, roundedBytes } from '../recorded-pack.ts';
import type { Follow, RecordedPackParts } from '../recorded-parts.ts';
import { createImages, IMAGE_ALIGNMENT } from './images.ts';
import { GROUP_ROWS, NATIVE_LAYOUTS, TILE_TOKENS } from './layouts.ts';
import type { NativeAddon, NativeBuild } from './addon.ts';

export interface NativePackOptions {
  /** Largest ArrayBuffer of the runtime. */
  readonly maxArenaBytes?: number;
  /** Pauses before a waiting thread takes over other work; 0 makes threads do so all the time. */
  readonly spins?: number;
}

const FOLLOW: Readonly<Record<Follow, number>> = { nothing: 0, barrier: 1, chain: 2 };
const RECORD_WORDS = 32;
const MAX_RECORDS = 2048;
const STAGING_BYTES = 8 << 20;
/** Offset 0 means "none" in records, so the start is reserved. */
const FIRST_FREE = 4096;
/** Tokens and row groups whose sums a thread holds at a time, and columns unpacked at a time (c/matmul.c). */
const PASS_TOKENS = 512;
const MAX_CHUNK_GROUPS = 4;
const STRIP_BLOCKS = 64;
const TOKENS_WORD = 31;
/** Far above any machine's memory; offsets stay exact in a double. */
const MAX_ARENA = 2 ** 46;
/** About 20 µs of pauses: most decode operations end within that. */
const SPINS = 500;

/** The pack in C: sixteen rows at a time, with its own threads. */
export function createNativePackFactory(
  native: NativeBuild,
  { maxArenaBytes = MAX_ARENA, spins = SPINS }: NativePackOptions = {},
): KernelPackFactory {
  return {
    name: 'native',
    maxArenaBytes: Math.min(MAX_ARENA, maxArenaBytes),
    matrixBytes: (type, numRows, numCols) => packedBytes(NATIVE_LAYOUTS[type], GROUP_ROWS, numRows, numCols),
    create: async (options) => createNativePack(native, options, spins),
  };
}

function scratchBytesFor(maxCols: number): number {
  // c/attention.c: four pages of K and V, their scores for 64 rows, and the rows' states.
  const attention = 2 * 64 * MAX_HEAD_DIM * 4 + MAX_HEAD_GROUP * (64 * 4 + 8);
  const sums = 2 * MAX_CHUNK_GROUPS * PASS_TOKENS * GROUP_ROWS * 4;
  const panels = 2 * (STRIP_BLOCKS * 640 + (STRIP_BLOCKS / 8) * 384); // unpacked weights (c/tiles-amx.c)
  return alignArena(Math.max(attention, sums + Math.max(panels, maxCols * 4)));
}

function createNativePack({ addon, build }: NativeBuild, options: KernelPackOptions, spins: number): KernelPack {
  const { numThreads, maxCols, maxTokens } = options;
  const scratchBytes = scratchBytesFor(maxCols);
  const roundings = roundedBytes(NATIVE_LAYOUTS, options);
  const ownBytes =
    FIRST_FREE +
    STAGING_BYTES +
    ARENA_ALIGNMENT +
    IMAGE_ALIGNMENT +
    numThreads * scratchBytes +
    roundings.reduce((sum, bytes) => sum + bytes, 0);
  const buffer = allocate(addon, ownBytes + options.arenaBytes);
  const arena = createArena(buffer, FIRST_FREE);
  const staging = { at: arena.allocate(STAGING_BYTES, 'staging'), sizeBytes: STAGING_BYTES };
  const scratchAt = arena.allocate(numThreads * scratchBytes, 'thread scratch');
  const roundedAt = roundings.map((bytes) => arena.allocate(bytes, 'rounded activations'));
  const refusedAt = arena.allocate(ARENA_ALIGNMENT, 'refused scales');
  const pool = addon.startPool(buffer, numThreads, scratchAt, scratchBytes, Int8Array.from(IQ2_XXS_GRID), spins);

  // The caller's memory starts at a whole page, so that weights can be mapped from files.
  arena.allocate(-arena.usedBytes & (IMAGE_ALIGNMENT - 1), 'a whole page');

  const program = new Float64Array(MAX_RECORDS * RECORD_WORDS);
  let numRecords = 0;
  let isStopped = false;
  const run = (): void => {
    if (isStopped) throw new RuvLLMError('not_loaded', 'the kernel pack was disposed');
    if (numRecords === 0) return;
    const numOps = numRecords;
    numRecords = 0;
    // All threads must have arrived when a program ends: the last record always has a barrier.
    program[(numOps - 1) * RECORD_WORDS + 1] = 1;
    addon.run(pool, program, numOps);
  };

  const record: RecordedPackParts['record'] = (opcode, words, follow = 'barrier', numTokens = 0) => {
    if (numRecords === MAX_RECORDS) run();
    const base = numRecords++ * RECORD_WORDS;
    program[base] = opcode;
    program[base + 1] = FOLLOW[follow];
    program.fill(0, base + 2, base + RECORD_WORDS); // omitted arguments are 0
    words.forEach((word, i) => (program[base + 2 + i] = typeof word === 'number' ? word : word.f32));
    program[base + TOKENS_WORD] = numTokens;
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
    passBytes: 0,
    isFusing: true,
    groupsPerChunk: (groups, numTokens) => {
      const share = Math.floor(groups / (numThreads * 4));
      if (numTokens >= TILE_TOKENS) return Math.max(1, Math.min(MAX_CHUNK_GROUPS, share));
      return share < 4 ? Math.max(1, share) : 4; // few tokens: memory is read in four streams
    },
    record,
    run,
    prepare: (offset, sizeBytes) => addon.prepareMemory(buffer, offset, sizeBytes),
    images: createImages({ addon, buffer, arena, sumsAt: staging.at, record, run }),
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
    throw new RuvLLMError('out_of_memory', `cannot allocate ${sizeBytes} bytes for the model`, {
      cause,
      data: { neededBytes: sizeBytes },
    });
  }
}
