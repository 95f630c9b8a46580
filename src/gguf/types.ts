import type { ByteSource } from '../core/byte-source.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';

/** A metadata value. u64/i64 become number when safe, else stay bigint. */
export type MetadataValue = string | number | boolean | bigint | MetadataArray;
/** Numeric arrays keep their typed form; nothing is boxed. */
export type MetadataArray =
  | readonly string[]
  | readonly boolean[]
  | readonly MetadataArray[]
  | BigUint64Array
  | BigInt64Array
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | Float64Array;

/** The scalar value types of GGUF, by our name; ids and codecs stand in value-types.ts. */
export type ScalarTypeName =
  'u8' | 'i8' | 'u16' | 'i16' | 'u32' | 'i32' | 'f32' | 'bool' | 'string' | 'u64' | 'i64' | 'f64';
/** `array<array>` leaves the inner types to the inner values. */
export type MetadataTypeName = ScalarTypeName | `array<${ScalarTypeName | 'array'}>`;

/** One key with the type it has in the file: what the writer takes and the reader gives back. */
export interface MetadataEntry {
  readonly key: string;
  readonly type: MetadataTypeName;
  readonly value: MetadataValue;
}

/** Typed look-ups over the key/value section; a value of the wrong kind is an `invalid_model_file` that names the key. */
export interface Metadata {
  readonly keys: readonly string[];
  get(key: string): MetadataValue | undefined;
  /** Without a default the key is required: absent is an `invalid_model_file` that names it. */
  string(key: string, defaultValue?: string): string;
  number(key: string, defaultValue?: number): number;
  boolean(key: string, defaultValue?: boolean): boolean;
  strings(key: string, defaultValue?: readonly string[]): readonly string[];
  numbers(key: string, defaultValue?: ArrayLike<number>): ArrayLike<number>;
}

/** A tensor of a GGUF file: what it is and where it lies. */
export interface TensorInfo {
  readonly name: string;
  readonly type: TensorTypeName;
  /** In GGUF order: dims[0] is the contiguous one (columns), dims[1] the rows. */
  readonly dims: readonly number[];
  readonly numElements: number;
  /** Absolute byte offset in the file. */
  readonly offset: number;
  readonly sizeBytes: number;
}

/** An opened model file: header in memory, tensor bytes read by range on demand. */
export interface GgufFile {
  readonly version: number;
  readonly metadata: Metadata;
  /** The key/value section in file order with its types, ready for `writeGguf`. */
  readonly entries: readonly MetadataEntry[];
  /** Bytes that tensor data is aligned to. */
  readonly alignment: number;
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  readonly source: ByteSource;
  /** The tensor, or `invalid_model_file` naming it. */
  tensor(name: string): TensorInfo;
  /** Fills `target` with the tensor's bytes from `byteOffset` on; never reads past the tensor. */
  readTensor(tensor: TensorInfo, target: Uint8Array, byteOffset?: number): void;
}
