import { invalidFile, quote } from './failures.ts';
import type { HeaderCursor } from './header-cursor.ts';
import { type HeaderWriter, invalidEntry } from './header-writer.ts';
import type { GgufLimits } from './limits.ts';
import type { MetadataArray, MetadataEntry, MetadataTypeName, MetadataValue, ScalarTypeName } from './types.ts';
import { ARRAY_TYPE_ID, codecById, scalarCodecs, type ScalarCodec, type ValueContext } from './value-types.ts';

/** A nested array has at least its element type (u32) and its length (u64). */
const MIN_ARRAY_BYTES = 12;

/** Reads `count` key/value pairs; the caller has checked `count` against the limits. */
export function readKeyValues(cursor: HeaderCursor, limits: Readonly<GgufLimits>, count: number): MetadataEntry[] {
  const entries: MetadataEntry[] = [];
  const keys = new Set<string>();
  const budget = { innerArrays: limits.maxInnerArrays };
  for (let i = 0; i < count; i++) {
    const byteOffset = cursor.offset;
    const key = cursor.string(limits.maxKeyBytes, `metadata key ${i}`);
    const what = `metadata key ${quote(key)}`;
    const where = `${cursor.sourceName}: ${what} at byte ${byteOffset}`;
    if (key.length === 0) invalidFile(`${where} is empty`, { byteOffset });
    if (keys.has(key)) invalidFile(`${where} is duplicated`, { key, byteOffset });
    keys.add(key);
    entries.push({ key, ...readValue({ cursor, limits, what }, budget) });
  }
  return entries;
}

function readValue(context: ValueContext, budget: { innerArrays: number }): Omit<MetadataEntry, 'key'> {
  const byteOffset = context.cursor.offset;
  const id = context.cursor.u32(context.what);
  if (id === ARRAY_TYPE_ID) return readArray(context, 1, budget);
  const codec = codecById.get(id);
  if (codec === undefined) unknownType(context, id, byteOffset);
  return { type: codec.name, value: codec.read(context) };
}

function readArray(
  context: ValueContext,
  depth: number,
  budget: { innerArrays: number },
): { type: MetadataTypeName; value: MetadataArray } {
  const { cursor, limits, what } = context;
  const byteOffset = cursor.offset;
  const where = `${cursor.sourceName}: ${what} at byte ${byteOffset}`;
  if (depth > limits.maxArrayDepth) {
    invalidFile(`${where}: arrays nested deeper than ${limits.maxArrayDepth}`, { byteOffset });
  }
  const id = cursor.u32(what);
  const codec = codecById.get(id);
  if (codec === undefined && id !== ARRAY_TYPE_ID) unknownType(context, id, byteOffset);
  const length = cursor.count(what);
  if (length > limits.maxArrayLength) {
    invalidFile(`${where}: ${length} elements, the limit is ${limits.maxArrayLength}`, {
      byteOffset,
    });
  }
  cursor.need(length * (codec?.minBytes ?? MIN_ARRAY_BYTES), `${what} (array of ${length})`);
  if (codec !== undefined) return { type: `array<${codec.name}>`, value: codec.readArray(context, length) };
  budget.innerArrays -= length;
  if (budget.innerArrays < 0) {
    invalidFile(`${where}: more than ${limits.maxInnerArrays} nested arrays`, { byteOffset });
  }
  const value: MetadataArray[] = [];
  for (let i = 0; i < length; i++) value.push(readArray(context, depth + 1, budget).value);
  return { type: 'array<array>', value };
}

function unknownType({ cursor, what }: ValueContext, id: number, byteOffset: number): never {
  invalidFile(`${cursor.sourceName}: ${what}: unknown value type ${id} at byte ${byteOffset}`, {
    byteOffset,
    valueType: id,
  });
}

/** Writes one pair; a value that does not have its declared type is `invalid_option`. */
export function writeKeyValue(writer: HeaderWriter, entry: MetadataEntry): void {
  const what = `metadata key ${quote(entry.key)}`;
  writer.string(entry.key, what);
  const element = /^array<(.+)>$/.exec(entry.type)?.[1];
  if (element === undefined) {
    const codec = codecNamed(entry.type, what);
    writer.u32(codec.id);
    codec.write(writer, entry.value, what);
  } else {
    writer.u32(ARRAY_TYPE_ID);
    writeArray(writer, element, entry.value, what, 1);
  }
}

/** Deeper than any reader accepts; also ends the recursion for a value that contains itself. */
const MAX_WRITTEN_DEPTH = 4;

function writeArray(writer: HeaderWriter, element: string, value: MetadataValue, what: string, depth: number): void {
  if (!Array.isArray(value) && !ArrayBuffer.isView(value)) invalidEntry(what, `array<${element}>`, value);
  const array = value as MetadataArray;
  if (element !== 'array') {
    const codec = codecNamed(element, what);
    writer.u32(codec.id);
    writer.u64(array.length);
    codec.writeArray(writer, array, what);
    return;
  }
  if (depth === MAX_WRITTEN_DEPTH) invalidEntry(what, `nested at most ${MAX_WRITTEN_DEPTH} deep`, value);
  writer.u32(ARRAY_TYPE_ID);
  writer.u64(array.length);
  for (const inner of array as readonly MetadataArray[]) {
    writeArray(writer, elementTypeOf(inner), inner, what, depth + 1);
  }
}

const elementTypes: readonly (readonly [(value: MetadataArray) => boolean, ScalarTypeName | 'array'])[] = [
  [(value) => value instanceof Uint8Array, 'u8'],
  [(value) => value instanceof Int8Array, 'i8'],
  [(value) => value instanceof Uint16Array, 'u16'],
  [(value) => value instanceof Int16Array, 'i16'],
  [(value) => value instanceof Uint32Array, 'u32'],
  [(value) => value instanceof Int32Array, 'i32'],
  [(value) => value instanceof Float32Array, 'f32'],
  [(value) => value instanceof BigUint64Array, 'u64'],
  [(value) => value instanceof BigInt64Array, 'i64'],
  [(value) => value instanceof Float64Array, 'f64'],
  [(value) => typeof value[0] === 'object', 'array'],
  [(value) => typeof value[0] === 'boolean', 'bool'],
];

function elementTypeOf(value: MetadataArray): ScalarTypeName | 'array' {
  return elementTypes.find(([matches]) => matches(value))?.[1] ?? 'string';
}

function codecNamed(name: string, what: string): ScalarCodec {
  if (!Object.hasOwn(scalarCodecs, name)) invalidEntry(what, `one of ${Object.keys(scalarCodecs).join(', ')}`, name);
  return scalarCodecs[name as ScalarTypeName];
}
