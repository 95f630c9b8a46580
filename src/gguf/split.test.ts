import { describe, expect, test } from 'vitest';
import { createMemorySource } from '../core/byte-source.ts';
import { createMemorySink } from './header-writer.ts';
import { openGguf } from './reader.ts';
import { openSplitGguf } from './split.ts';
import { type GgufToWrite, writeGguf } from './writer.ts';

function write(metadata: GgufToWrite['metadata'], tensors: GgufToWrite['tensors']): Uint8Array {
  const sink = createMemorySink();
  writeGguf({ metadata, tensors }, sink);
  return sink.toBytes();
}

describe('split files', () => {
  const part = (no: number, count: number, name: string, fill: number): Uint8Array =>
    write(
      [
        { key: 'split.no', type: 'u16', value: no },
        { key: 'split.count', type: 'u16', value: count },
        { key: 'split.tensors.count', type: 'i32', value: 2 },
      ],
      [{ name, type: 'F32', dims: [4], data: new Uint8Array(16).fill(fill) }],
    );
  const sources = (...parts: Uint8Array[]) => parts.map((bytes, i) => createMemorySource(bytes, `part${i}`));

  test('rejects a single part as unsupported and says so', () => {
    const open = () => openGguf(createMemorySource(part(0, 2, 'a', 1), 'm.gguf'));
    const message = expect.stringContaining('m.gguf is part 1 of a model split over 2 files');
    expect(open).toThrow(expect.objectContaining({ code: 'unsupported', message }));
  });

  test('reads all parts together as one file', () => {
    const file = openSplitGguf(sources(part(0, 2, 'a', 1), part(1, 2, 'b', 2)));
    const bytes = new Uint8Array(16);
    file.readTensor(file.tensor('b'), bytes);
    expect([...file.tensors.keys()]).toEqual(['a', 'b']);
    expect(bytes).toEqual(new Uint8Array(16).fill(2));
    const all = new Uint8Array(file.source.sizeBytes);
    file.source.readInto(all, 0);
    expect(all).toEqual(Uint8Array.from([...part(0, 2, 'a', 1), ...part(1, 2, 'b', 2)]));
  });

  test('rejects parts that are out of order, missing, repeated or lack a tensor', () => {
    expect(() => openSplitGguf(sources(part(1, 2, 'b', 2), part(0, 2, 'a', 1)))).toThrow(
      'is part 2 of 2 but was passed as part 1 of 2',
    );
    expect(() => openSplitGguf(sources(part(0, 2, 'a', 1)))).toThrow('is part 1 of 2 but was passed as part 1 of 1');
    expect(() => openSplitGguf(sources(part(0, 2, 'a', 1), part(1, 2, 'a', 2)))).toThrow(
      '"a" is also in an earlier part',
    );
    expect(() => openSplitGguf(sources(part(0, 1, 'a', 1)))).toThrow('declares 2 tensors, its 1 parts contain 1');
    expect(() => openSplitGguf([])).toThrow('1 to 4096 files, got 0');
  });
});
