import { RuvLLMError } from '../../core/errors.ts';
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
import { GROUP_ROWS, WASM_LAYOUTS } from './layouts.ts';
import { type AddressBits, createMemory, toAddress } from './memory64.ts';
import type { HelperThread, WasmPlatform } from './platform.ts';
import { createProgram, programBytes } from './program.ts';
import { writeTables } from './tables.ts';

const WASM_PAGE = 65536;
/** The first page holds the module's data and the threads' control block (assembly/control.ts). */
const FIRST_FREE = WASM_PAGE;
/** The last page stays unused so that the end address fits, too. Engines limit 64-bit addresses to 16 GiB. */
const MAX_MEMORY: Readonly<Record<AddressBits, number>> = { 32: 65_535 * WASM_PAGE, 64: 262_143 * WASM_PAGE };
/** Buffer for raw rows between the file and the packed layout. */
const STAGING_BYTES = 4 << 20;
/** Tokens of one attention tile (assembly/attention.ts). */
const TILE_TOKENS = 8;
/** Rounded activations of one pass over a chunk of rows, sized to stay in the L1 cache with the weights. */
const PASS_BYTES = 48 << 10;

interface KernelExports {
  run(program: number | bigint, numOps: number, numThreads: number, scratch: number | bigint): void;
  stopHelpers(numThreads: number): void;
}

/**
 * The portable fast pack: AssemblyScript kernels on shared memory with helper threads. Addresses have 64 bits only where the
 * memory requires it: engines guard 32-bit addresses with unmapped pages, but check 64-bit ones at every access.
 */
export function createWasmPackFactory(platform: WasmPlatform): KernelPackFactory {
  return {
    name: 'wasm',
    maxArenaBytes: MAX_MEMORY[platform.hasMemory64 ? 64 : 32],
    fastArenaBytes: MAX_MEMORY[32],
    ...(platform.hasMemory64 ? {} : { limitReason: MISSING_MEMORY64 }),
    matrixBytes: (type, numRows, numCols) => packedBytes(WASM_LAYOUTS[type], GROUP_ROWS, numRows, numCols),
    create: (options) => createWasmPack(platform, options),
  };
}

const MISSING_MEMORY64 = 'this JavaScript engine has no WebAssembly Memory64, which allows 16 GiB';

function threadScratchBytes(maxCols: number): number {
  const attention = 2 * MAX_HEAD_DIM * PAGE_TOKENS * 4 + TILE_TOKENS * MAX_HEAD_GROUP * 80;
  return alignArena(Math.max(attention, 64 + 4 * maxCols * 4));
}

async function createWasmPack(platform: WasmPlatform, options: KernelPackOptions): Promise<KernelPack> {
  const { numThreads } = options;
  const scratchBytes = threadScratchBytes(options.maxCols);
  const roundings = roundedBytes(WASM_LAYOUTS, options);
  const otherBytes =
    FIRST_FREE +
    STAGING_BYTES +
    ARENA_ALIGNMENT +
    numThreads * scratchBytes +
    roundings.reduce((a, b) => a + b, 0) +
    options.arenaBytes;
  const addressBits = platform.hasMemory64 && otherBytes + programBytes(32) > MAX_MEMORY[32] ? 64 : 32;
  const totalBytes = otherBytes + programBytes(addressBits);
  const limitBytes = MAX_MEMORY[addressBits];
  if (totalBytes > limitBytes) {
    const reason = addressBits === 32 ? `: ${MISSING_MEMORY64}` : '';
    throw new RuvLLMError(
      'out_of_memory',
      `the model needs ${totalBytes} bytes, WASM memory is limited to ${limitBytes}${reason}`,
      { data: { neededBytes: totalBytes, limitBytes } },
    );
  }
  const pages = Math.ceil(totalBytes / WASM_PAGE);
  const memory = allocateMemory(addressBits, pages);
  const { module, build } = await platform.loadModule(addressBits);
  const kernels = new WebAssembly.Instance(module, { env: { memory } }).exports as unknown as KernelExports;

  // The signed-dot kernels always compute four groups: a smaller chunk would compute some of them twice.
  const groupsPerCall = build === 'signed-dot' ? 4 : 1;

  writeTables(memory.buffer);
  const arena = createArena(memory.buffer, FIRST_FREE);
  const programAt = arena.allocate(programBytes(addressBits), 'program');
  const stagingAt = arena.allocate(STAGING_BYTES, 'staging');
  const scratchAt = arena.allocate(numThreads * scratchBytes, 'thread scratch');
  const roundedAt = roundings.map((bytes) => arena.allocate(bytes, 'rounded activations'));
  const refusedAt = arena.allocate(ARENA_ALIGNMENT, 'refused scales');

  const started = new Int32Array(memory.buffer, stagingAt, 1);
  const helpers = await startHelpers(started, numThreads, (thread) =>
    platform.spawnHelper({
      module,
      memory,
      scratch: toAddress(addressBits, scratchAt + thread * scratchBytes),
      started: toAddress(addressBits, stagingAt),
    }),
  );
  let failure: unknown = null;
  for (const helper of helpers) helper.failed.catch((error: unknown) => (failure ??= error));

  const [programAddress, scratchAddress] = [toAddress(addressBits, programAt), toAddress(addressBits, scratchAt)];
  const program = createProgram(memory.buffer, programAt, addressBits, runNow);
  function runNow(): void {
    if (program.numRecords === 0) return;
    const numOps = program.numRecords;
    program.clear();
    if (failure !== null) {
      throw new RuvLLMError('kernel_failed', `the kernels stopped: ${String(failure)}`, { cause: failure });
    }
    try {
      kernels.run(programAddress, numOps, numThreads, scratchAddress);
    } catch (cause) {
      // The helpers wait in the middle of this program: another one would make them run the wrong operations.
      failure = cause;
      throw new RuvLLMError('kernel_failed', `WASM kernels trapped: ${String(cause)}`, { cause });
    }
  }

  return createRecordedPack({
    name: addressBits === 64 ? `wasm (${build}, 64-bit addresses)` : `wasm (${build})`,
    numThreads,
    arena,
    layouts: WASM_LAYOUTS,
    groupRows: GROUP_ROWS,
    maxCols: options.maxCols,
    maxTokens: options.maxTokens,
    staging: { at: stagingAt, sizeBytes: STAGING_BYTES },
    refusedAt,
    roundedAt,
    passBytes: PASS_BYTES,
    isFusing: false,
    groupsPerChunk(numGroups) {
      const share = Math.min(16, Math.floor(numGroups / (numThreads * 4)));
      return Math.max(groupsPerCall, share - (share % groupsPerCall));
    },
    record: program.record,
    run: runNow,
    async dispose() {
      failure ??= 'the pack is disposed';
      kernels.stopHelpers(numThreads);
      await Promise.all(helpers.map((helper) => helper.terminate()));
    },
  });
}

function allocateMemory(addressBits: AddressBits, pages: number): WebAssembly.Memory {
  try {
    return createMemory(addressBits, pages, pages);
  } catch (cause) {
    throw new RuvLLMError('out_of_memory', `cannot allocate ${pages * WASM_PAGE} bytes of WASM memory`, {
      cause,
      data: { neededBytes: pages * WASM_PAGE },
    });
  }
}

/** Starts helpers and waits until each is in its loop: they would miss a program published earlier. */
async function startHelpers(
  counter: Int32Array<ArrayBufferLike>,
  numThreads: number,
  spawn: (thread: number) => HelperThread,
): Promise<HelperThread[]> {
  Atomics.store(counter, 0, 0);
  const helpers: HelperThread[] = [];
  for (let thread = 1; thread < numThreads; thread++) {
    helpers.push(spawn(thread));
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
  // Not earlier: only the helpers keep the process alive while it waits for them.
  for (const helper of helpers) helper.detach();
  return helpers;
}
