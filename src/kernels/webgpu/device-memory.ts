import { RuvLLMError } from '../../core/errors.ts';
import type { ArenaRange } from '../contract.ts';
import { BUFFER_USAGE, type GpuBuffer, type GpuCommandEncoder, type GpuDevice, MAP_READ } from './gpu.ts';
import type { HostArena } from './host-arena.ts';
import { mergeRanges } from '../ranges.ts';

/** The device's side of the arena, and its exchange with the host's. */
export interface DeviceMemory {
  /** Changes with every new buffer: commands that were encoded before name buffers that are gone. */
  readonly generation: number;
  /** The arena on the device, at least as large as its data so far. */
  ensureData(): GpuBuffer;
  ensureScratch(vectors: number): GpuBuffer;
  /** Records that a kernel writes these bytes. */
  markWritten(range: ArenaRange): void;
  /** The bytes that are marked while `record` runs. */
  marksOf(record: () => void): readonly ArenaRange[];
  /** Copies the bytes that the host may have changed. */
  upload(): void;
  /** Records copies of the results for the host; all that kernels wrote, unless `reads` says which. */
  encodeReads(encoder: GpuCommandEncoder, reads: readonly ArenaRange[] | undefined): readonly ArenaRange[];
  /** Completes them once the device is done. */
  finishReads(ranges: readonly ArenaRange[]): Promise<void>;
  dispose(): void;
}

const roundUp = (bytes: number, unit: number): number => Math.ceil(bytes / unit) * unit;

export function createDeviceMemory(device: GpuDevice, arena: HostArena): DeviceMemory {
  let generation = 0;
  const limit = Math.min(device.limits['maxStorageBufferBindingSize']!, device.limits['maxBufferSize']!);
  const storage = BUFFER_USAGE.storage | BUFFER_USAGE.copyDst | BUFFER_USAGE.copySrc;
  let data: GpuBuffer | null = null;
  let scratch: GpuBuffer | null = null;
  let staging: GpuBuffer | null = null;
  /** Sizes by offset: steps write the same places again and again. */
  let written = new Map<number, number>();
  /** The last results as they came: a view of them that still holds the same bytes was only read. */
  let fetched: { readonly range: ArenaRange; readonly bytes: Uint8Array }[] = [];

  function check(what: string, neededBytes: number): void {
    if (neededBytes <= limit) return;
    throw new RuvLLMError(
      'out_of_memory',
      `${what} needs ${neededBytes} bytes in one buffer, this device binds at most ${limit}; reduce the KV cache or the batch`,
      { data: { neededBytes, limitBytes: limit } },
    );
  }
  function isUnchanged(range: ArenaRange): boolean {
    const copy = fetched.find(
      (entry) =>
        entry.range.offset <= range.offset &&
        range.offset + range.sizeBytes <= entry.range.offset + entry.range.sizeBytes,
    );
    if (copy === undefined) return false;
    const from = range.offset - copy.range.offset;
    const before = copy.bytes.subarray(from, from + range.sizeBytes);
    const now = arena.bytesOf(range);
    const [a, b] = [wordsOf(before), wordsOf(now)];
    // A loop: with `every`, the logits of 32 rows take 15 ms.
    for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
    return true;
  }

  function markWritten({ offset, sizeBytes }: ArenaRange): void {
    written.set(offset, Math.max(sizeBytes, written.get(offset) ?? 0));
  }
  /** Moves the contents of a buffer to a larger one. */
  function grow(from: GpuBuffer | null, to: GpuBuffer): GpuBuffer {
    if (from === null) return to;
    const encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(from, 0, to, 0, from.size);
    device.queue.submit([encoder.finish()]);
    from.destroy();
    return to;
  }
  function createBuffer(label: string, size: number, usage: number): GpuBuffer {
    generation++;
    return device.createBuffer({ size, usage, label });
  }

  return {
    get generation() {
      return generation;
    },
    ensureData() {
      const neededBytes = Math.max(256, roundUp(arena.dataBytes, 256));
      if (data !== null && data.size >= neededBytes) return data;
      check('the arena without weights', neededBytes);
      // Growing is for callers that allocate between steps, like tests; doubling keeps that rare.
      const size = data === null ? neededBytes : Math.min(limit, Math.max(neededBytes, 2 * data.size));
      return (data = grow(data, createBuffer('arena', size, storage)));
    },
    ensureScratch(vectors) {
      const neededBytes = Math.max(256, roundUp(vectors * 16, 256));
      if (scratch !== null && scratch.size >= neededBytes) return scratch;
      check('scratch', neededBytes);
      return (scratch = grow(scratch, createBuffer('scratch', neededBytes, storage)));
    },
    markWritten,
    marksOf(record) {
      const before = written;
      written = new Map();
      try {
        record();
        return rangesOf(written);
      } finally {
        const marked = rangesOf(written);
        written = before;
        marked.forEach(markWritten);
      }
    },
    upload() {
      for (const range of arena.takeViewed()) {
        if (isUnchanged(range)) continue;
        device.queue.writeBuffer(data!, range.offset, arena.bytesOf(range));
      }
      fetched = [];
    },
    encodeReads(encoder, reads) {
      const wanted = mergeRanges(reads ?? rangesOf(written));
      if (reads === undefined) written.clear();
      const ranges = wanted.flatMap((range) => arena.splitAtSegments(range));
      const totalBytes = ranges.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      if (totalBytes === 0) return ranges;
      if (staging === null || staging.size < totalBytes) {
        staging?.destroy();
        const size = roundUp(totalBytes, 65536);
        staging = createBuffer('results', size, BUFFER_USAGE.mapRead | BUFFER_USAGE.copyDst);
      }
      let at = 0;
      for (const { offset, sizeBytes } of ranges) {
        encoder.copyBufferToBuffer(data!, offset, staging, at, sizeBytes);
        at += sizeBytes;
      }
      return ranges;
    },
    async finishReads(ranges) {
      const totalBytes = ranges.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      if (totalBytes === 0) return device.queue.onSubmittedWorkDone();
      await staging!.mapAsync(MAP_READ, 0, totalBytes);
      const all = new Uint8Array(staging!.getMappedRange(0, totalBytes)).slice();
      staging!.unmap();
      let at = 0;
      for (const range of ranges) {
        const bytes = all.subarray(at, at + range.sizeBytes);
        arena.bytesOf(range).set(bytes);
        fetched.push({ range, bytes });
        at += range.sizeBytes;
      }
    },
    dispose() {
      for (const buffer of [data, scratch, staging]) buffer?.destroy();
    },
  };
}

const rangesOf = (sizes: ReadonlyMap<number, number>): ArenaRange[] =>
  Array.from(sizes, ([offset, sizeBytes]) => ({ offset, sizeBytes }));

function wordsOf(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
}
