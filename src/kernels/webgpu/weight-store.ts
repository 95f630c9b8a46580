import { rowBytes } from '../../quant/index.ts';
import type { MatrixSource, WeightMatrix } from '../contract.ts';
import { checkedMatrixBytes } from '../matrix-bytes.ts';
import { BUFFER_USAGE, type GpuBuffer, type GpuDevice } from './gpu.ts';
import type { HostArena } from './host-arena.ts';
import { repackRows } from './repack.ts';
import { BLOCK_COLS, layoutBytes, matrixBytes, partRows, typeLayout, type TypeLayout } from './weight-layouts.ts';

/** Rows of a matrix in one buffer. */
export interface MatrixPart {
  readonly firstRow: number;
  readonly numRows: number;
  /** Index of the buffer, and the part's first vec4 in it. */
  readonly chunk: number;
  readonly vector: number;
}

export interface GpuMatrix extends WeightMatrix {
  readonly layout: TypeLayout;
  /** Blocks of a row. */
  readonly blocks: number;
  readonly parts: readonly MatrixPart[];
}

/** The buffers of the weights. */
export interface WeightStore {
  readonly chunks: readonly GpuBuffer[];
  load(source: MatrixSource): GpuMatrix;
}

/** Larger buffers save few switches; the unused rest of the last one is lost. */
const CHUNK_BYTES = 2 ** 28;
/** File bytes that are repacked at a time. */
const STRIP_BYTES = 2 ** 22;

export function createWeightStore(device: GpuDevice, arena: HostArena, arenaBytes: number): WeightStore {
  const chunks: GpuBuffer[] = [];
  let usedInLast = Infinity;
  const limit = Math.min(device.limits['maxStorageBufferBindingSize']!, device.limits['maxBufferSize']!);

  /** Reserves part of a buffer, in a new one if the last is full. */
  function place(sizeBytes: number): { chunk: number; at: number } {
    if (usedInLast + sizeBytes > (chunks.at(-1)?.size ?? 0)) {
      const size = Math.max(sizeBytes, Math.min(limit, CHUNK_BYTES, Math.ceil(arenaBytes / 256) * 256));
      chunks.push(device.createBuffer({ size, usage: BUFFER_USAGE.storage | BUFFER_USAGE.copyDst, label: 'weights' }));
      usedInLast = 0;
    }
    const at = usedInLast;
    usedInLast += Math.ceil(sizeBytes / 256) * 256;
    return { chunk: chunks.length - 1, at };
  }

  function fill(source: MatrixSource, layout: TypeLayout, part: MatrixPart): void {
    const { name, type, numCols } = source;
    const fileRowBytes = rowBytes(type, numCols);
    const blocks = Math.ceil(numCols / BLOCK_COLS);
    const quantBytes = blocks * layout.layout.quantVectors * 16;
    const infoBytes = blocks * layout.infoBytesPerBlock;
    const rowsPerStrip = Math.max(8, Math.floor(STRIP_BYTES / fileRowBytes / 8) * 8);
    const infoAt = part.vector * 16 + part.numRows * quantBytes;
    for (let row = 0; row < part.numRows; row += rowsPerStrip) {
      const numRows = Math.min(rowsPerStrip, part.numRows - row);
      const bytes = new Uint8Array(numRows * fileRowBytes);
      source.readInto(bytes, (part.firstRow + row) * fileRowBytes);
      const quants = new Uint8Array(numRows * quantBytes);
      const info = new Uint8Array(Math.ceil((numRows * infoBytes) / 4) * 4);
      repackRows(name, type, part.firstRow + row, { bytes, numRows, numCols, quants, info });
      device.queue.writeBuffer(chunks[part.chunk]!, part.vector * 16 + row * quantBytes, quants);
      if (info.length > 0) device.queue.writeBuffer(chunks[part.chunk]!, infoAt + row * infoBytes, info);
    }
  }

  return {
    chunks,
    load(source) {
      const { name, type, numRows, numCols } = source;
      checkedMatrixBytes(source);
      const layout = typeLayout(type);
      const sizeBytes = matrixBytes(type, numRows, numCols);
      arena.reserveMatrix(sizeBytes, name);
      let firstRow = 0;
      const parts = partRows(layout, numRows, numCols).map((rows): MatrixPart => {
        const { chunk, at } = place(layoutBytes(layout, rows, numCols));
        firstRow += rows;
        return { firstRow: firstRow - rows, numRows: rows, chunk, vector: at / 16 };
      });
      for (const part of parts) fill(source, layout, part);
      const blocks = Math.ceil(numCols / BLOCK_COLS);
      return { name, type, numRows, numCols, offset: 0, sizeBytes, layout, blocks, parts };
    },
  };
}
