import type { HeaderCursor } from './header-cursor.ts';
import type { HeaderWriter } from './header-writer.ts';
import type { GgufLimits } from './limits.ts';
import { invalidFile } from './failures.ts';
import type { MetadataArray, MetadataValue, ScalarTypeName } from './types.ts';
import { invalidEntry } from './header-writer.ts';

/** Inputs of a value reader besides the bytes. */
export interface ValueContext {
  readonly cursor: HeaderCursor;
  readonly limits: Readonly<GgufLimits>;
  /** The key in errors, without the source's name. */
  readonly what: string;
}

/** Encoding of one scalar type and of its arrays. */
export interface ScalarCodec {
  readonly name: ScalarTypeName;
  /** The value type number in GGUF files. */
  readonly id: number;
  /** The minimum of one value, which limits an array's length by the remaining bytes before allocation. */
  readonly minBytes: number;
  read(context: ValueContext): MetadataValue;
  /** The file has at least `length * minBytes` bytes. */
  readArray(context: ValueContext, length: number): MetadataArray;
  write(writer: HeaderWriter, value: MetadataValue, what: string): void;
  writeArray(writer: HeaderWriter, value: MetadataArray, what: string): void;
}

type NumericArray = Extract<MetadataArray, ArrayBufferView>;
interface NumericArrayClass {
  new (length: number): NumericArray;
  new (buffer: ArrayBuffer): NumericArray;
  readonly BYTES_PER_ELEMENT: number;
}

// Typed arrays are read and written as in memory: all supported hosts are little-endian, like WebAssembly.
function numeric(name: ScalarTypeName, id: number, ArrayClass: NumericArrayClass, isExact: boolean): ScalarCodec {
  const minBytes = ArrayClass.BYTES_PER_ELEMENT;
  const is64Bit = name === 'u64' || name === 'i64';
  const readArray = ({ cursor, what }: ValueContext, length: number): NumericArray =>
    new ArrayClass(cursor.bytes(length * minBytes, what).buffer);
  return {
    name,
    id,
    minBytes,
    read(context) {
      const value = readArray(context, 1)[0]!;
      return typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value;
    },
    readArray,
    write(writer, value, what) {
      const number = is64Bit && Number.isSafeInteger(value) ? BigInt(value as number) : value;
      if (typeof number !== (is64Bit ? 'bigint' : 'number')) invalidEntry(what, name, value);
      const one = new ArrayClass(1);
      (one as { [index: number]: unknown })[0] = number;
      if (isExact && one[0] !== number) invalidEntry(what, name, value);
      writer.bytes(new Uint8Array(one.buffer));
    },
    writeArray(writer, value, what) {
      if (!(value instanceof ArrayClass)) invalidEntry(what, `array<${name}> (${ArrayClass.name})`, value);
      writer.bytes(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
    },
  };
}

function listOf(codec: Pick<ScalarCodec, 'name' | 'id' | 'minBytes' | 'read' | 'write'>): ScalarCodec {
  return {
    ...codec,
    readArray(context, length) {
      const values: MetadataValue[] = [];
      for (let i = 0; i < length; i++) values.push(codec.read(context));
      return values as unknown as MetadataArray;
    },
    writeArray(writer, value, what) {
      if (!Array.isArray(value)) invalidEntry(what, `array<${codec.name}>`, value);
      for (const item of value as MetadataValue[]) codec.write(writer, item, what);
    },
  };
}

const bool = listOf({
  name: 'bool',
  id: 7,
  minBytes: 1,
  read({ cursor, what }) {
    const byteOffset = cursor.offset;
    const value = cursor.u8(what);
    if (value > 1)
      invalidFile(`${cursor.sourceName}: ${what}: byte ${byteOffset} is ${value}, a bool must be 0 or 1`, {
        byteOffset,
      });
    return value === 1;
  },
  write(writer, value, what) {
    if (typeof value !== 'boolean') invalidEntry(what, 'bool', value);
    writer.bytes(Uint8Array.of(value ? 1 : 0));
  },
});

const string = listOf({
  name: 'string',
  id: 8,
  minBytes: 8,
  read: ({ cursor, limits, what }) => cursor.string(limits.maxStringBytes, what),
  write(writer, value, what) {
    if (typeof value !== 'string') invalidEntry(what, 'string', value);
    writer.string(value, what);
  },
});

/** The value type number of arrays; the element type follows it in the file. */
export const ARRAY_TYPE_ID = 9;

/** Every scalar type of the format. */
export const scalarCodecs: Readonly<Record<ScalarTypeName, ScalarCodec>> = {
  u8: numeric('u8', 0, Uint8Array, true),
  i8: numeric('i8', 1, Int8Array, true),
  u16: numeric('u16', 2, Uint16Array, true),
  i16: numeric('i16', 3, Int16Array, true),
  u32: numeric('u32', 4, Uint32Array, true),
  i32: numeric('i32', 5, Int32Array, true),
  f32: numeric('f32', 6, Float32Array, false),
  bool,
  string,
  u64: numeric('u64', 10, BigUint64Array, true),
  i64: numeric('i64', 11, BigInt64Array, true),
  f64: numeric('f64', 12, Float64Array, false),
};

export const codecById: ReadonlyMap<number, ScalarCodec> = new Map(
  Object.values(scalarCodecs).map((codec) => [codec.id, codec]),
);
