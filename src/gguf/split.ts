import type { ByteSource } from '../core/byte-source.ts';
import { RuvLLMError } from '../core/errors.ts';
import { invalidFile, quote } from './failures.ts';
import type { GgufLimits } from './limits.ts';
import { createTensorAccess, openGgufPart } from './reader.ts';
import type { GgufFile, TensorInfo } from './types.ts';

/** More parts than any published model has. */
const MAX_PARTS = 4096;

/**
 * Opens a model split into several files (`…-00001-of-00003.gguf`), passed in order, as one file: the metadata comes
 * from the first part, and `source` concatenates the parts.
 */
export function openSplitGguf(sources: readonly ByteSource[], limits?: Partial<GgufLimits>): GgufFile {
  if (sources.length < 1 || sources.length > MAX_PARTS) {
    throw new RuvLLMError('invalid_option', `a split model has 1 to ${MAX_PARTS} files, got ${sources.length}`);
  }
  const parts = sources.map((source) => openGgufPart(source, limits));
  const first = parts[0]!;
  const tensors = new Map<string, TensorInfo>();
  let base = 0;
  parts.forEach((part, index) => {
    checkPart(part, index, parts.length);
    for (const tensor of part.tensors.values()) {
      if (tensors.has(tensor.name)) {
        invalidFile(`${part.source.name}: tensor ${quote(tensor.name)} is also in an earlier part`, {
          tensor: tensor.name,
        });
      }
      tensors.set(tensor.name, Object.freeze({ ...tensor, offset: base + tensor.offset }));
    }
    base += part.source.sizeBytes;
  });
  const announced = first.metadata.number('split.tensors.count', tensors.size);
  if (announced !== tensors.size) {
    invalidFile(
      `${first.source.name} declares ${announced} tensors, its ${parts.length} parts contain ${tensors.size}`,
    );
  }
  return { ...first, ...createTensorAccess(concatenate(sources), tensors) };
}

function checkPart({ metadata, source }: GgufFile, index: number, numParts: number): void {
  const count = metadata.number('split.count', 1);
  const number = metadata.number('split.no', 0);
  if (count !== numParts || number !== index) {
    invalidFile(`${source.name} is part ${number + 1} of ${count} but was passed as part ${index + 1} of ${numParts}`, {
      part: number,
      numParts: count,
    });
  }
}

/** Concatenates the sources; a read may span several. */
function concatenate(sources: readonly ByteSource[]): ByteSource {
  const sizeBytes = sources.reduce((sum, source) => sum + source.sizeBytes, 0);
  return {
    name: sources[0]!.name,
    sizeBytes,
    readInto(target, offset) {
      if (!(offset >= 0) || offset + target.byteLength > sizeBytes) {
        throw new RuvLLMError(
          'io',
          `cannot read ${target.byteLength} bytes at byte ${offset}, the parts have ${sizeBytes}`,
        );
      }
      let start = 0;
      for (const source of sources) {
        const from = Math.max(offset, start);
        const to = Math.min(offset + target.byteLength, start + source.sizeBytes);
        if (from < to) source.readInto(target.subarray(from - offset, to - offset), from - start);
        start += source.sizeBytes;
      }
    },
    close() {
      for (const source of sources) source.close();
    },
  };
}
