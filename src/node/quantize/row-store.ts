import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import type { RequantizedTensor } from '../../gguf/requantize/requantize.ts';
import { toFileError } from '../../platform/node/files/file-errors.ts';

/** Encoded rows that wait in a temporary file: they are computed in another order than they are written. */
export interface RowStore {
  write(entry: RequantizedTensor, firstRow: number, bytes: Uint8Array): void;
  read(entry: RequantizedTensor, firstRow: number, numRows: number): Uint8Array;
  dispose(): void;
}

/** Room for some tensors, in a file beside `path`. */
export function createRowStore(path: string, entries: readonly RequantizedTensor[]): RowStore {
  const folder = mkdtempSync(join(dirname(path), '.ruvllm-rows-'));
  const fd = openSync(join(folder, 'rows'), 'w+');
  const starts = new Map<string, number>();
  let end = 0;
  for (const { tensor, sizeBytes } of entries) {
    starts.set(tensor.name, end);
    end += sizeBytes;
  }
  const bytesPerRow = ({ tensor, sizeBytes }: RequantizedTensor): number =>
    (sizeBytes / tensor.numElements) * tensor.dims[0]!;
  const startOf = (entry: RequantizedTensor, row: number): number =>
    starts.get(entry.tensor.name)! + row * bytesPerRow(entry);
  return {
    write(entry, firstRow, bytes) {
      const at = startOf(entry, firstRow);
      try {
        for (let done = 0; done < bytes.length;) {
          done += writeSync(fd, bytes, done, bytes.length - done, at + done);
        }
      } catch (error) {
        throw toFileError(error, `cannot write ${bytes.length} bytes of ${entry.tensor.name} beside`, path);
      }
    },
    read(entry, firstRow, numRows) {
      const bytes = new Uint8Array(numRows * bytesPerRow(entry));
      const numBytes = readSync(fd, bytes, 0, bytes.length, startOf(entry, firstRow));
      if (numBytes === bytes.length) return bytes;
      throw new RuvLLMError('io', `read ${numBytes} of ${bytes.length} bytes of ${entry.tensor.name} beside ${path}`);
    },
    dispose() {
      closeSync(fd);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
