import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createByteBuffer } from './byte-buffer.ts';
import { findJsonExcess, findTopValue } from './json-shape.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;

test('finds the depth of any JSON', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.boolean(), (value, isIndented) => {
      const text = bytes(JSON.stringify(value, null, isIndented ? 2 : 0));
      const depth = depthOf(value);
      expect(findJsonExcess(text, { maxJsonDepth: depth, maxJsonValues: Infinity })).toBeNull();
      if (depth > 0)
        expect(findJsonExcess(text, { maxJsonDepth: depth - 1, maxJsonValues: Infinity })?.of).toBe('depth');
    }),
  );
});

test('finds the id of any message without parsing it', () => {
  const id = fc.oneof(fc.string({ maxLength: 40, unit: 'binary' }), fc.integer());
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), id, fc.boolean(), (fields, value, isFirst) => {
      const { id: _, ...others } = fields as Record<string, unknown>;
      const message = isFirst ? { id: value, ...others } : { ...others, id: value };
      expect(findTopValue(bytes(JSON.stringify(message)), 'id', 1000)).toEqual(JSON.parse(JSON.stringify(value)));
      expect(findTopValue(bytes(JSON.stringify({ x: message, y: [message] })), 'id', 1000)).toBeNull();
    }),
  );
});

test('a buffer returns what was appended, once', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 3000 })), (pieces) => {
      const buffer = createByteBuffer();
      for (const piece of pieces) buffer.append(piece);
      const whole = Uint8Array.from(pieces.flatMap((piece) => [...piece]));
      expect(buffer.length).toBe(whole.length);
      expect(buffer.take()).toEqual(whole);
      expect([buffer.length, buffer.take().length]).toEqual([0, 0]);
    }),
  );
});
