import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { buildTableData, openTokenTable } from './shared-table.ts';
import { createTokenTable } from './token-table.ts';
import { openVocabulary, type VocabularyData } from './vocabulary-data.ts';

/** Pieces of JSON strings with quotes, escapes and broken characters; some control tokens, and an end token. */
const tokens = fc.array(
  fc.record({
    text: fc.array(fc.constantFrom(0x22, 0x5c, 0x61, 0x62, 0x75, 0x30, 0xc3, 0xa9, 0x0a), { maxLength: 7 }),
    isControl: fc.nat(5).map((value) => value === 0),
  }),
  { minLength: 1, maxLength: 200 },
);

function flatten(all: readonly { readonly text: readonly number[]; readonly isControl: boolean }[]): VocabularyData {
  const offsets = new Int32Array(all.length + 1);
  for (const [id, { text }] of all.entries()) offsets[id + 1] = offsets[id]! + text.length;
  return {
    bytes: Uint8Array.from(all.flatMap(({ text }) => text)),
    offsets,
    isControl: Uint8Array.from(all, ({ isControl }) => Number(isControl)),
    endIds: [all.length - 1],
  };
}

function arraysOf(value: object): ArrayBufferView[] {
  return Object.values(value).flatMap((inner: unknown) => {
    if (ArrayBuffer.isView(inner)) return [inner];
    return typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? arraysOf(inner) : [];
  });
}

test('[G27] a table from another thread equals one built locally, and all its arrays are shared', () => {
  fc.assert(
    fc.property(tokens, (all) => {
      const data = flatten(all);
      const built = buildTableData(data);
      expect(arraysOf(built)).toHaveLength(6 * 10 + 4 + 3);
      for (const { buffer } of arraysOf(built)) expect(buffer).toBeInstanceOf(SharedArrayBuffer);
      const { vocabulary, ...opened } = openTokenTable(structuredClone(built));
      const { vocabulary: own, ...inPlace } = createTokenTable(openVocabulary(data));
      expect(opened).toEqual(inPlace);
      expect([vocabulary.size, vocabulary.endIds]).toEqual([own.size, own.endIds]);
      for (const [id, { text, isControl }] of all.entries()) {
        expect([...vocabulary.bytes(id)]).toEqual(text);
        expect(vocabulary.isControl(id)).toBe(isControl);
      }
    }),
  );
});
