import type { ByteSource } from '../core/byte-source.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';

/** A metadata value. u64 and i64 become numbers if safe, otherwise bigints. */
export type MetadataValue = string | number | boolean | bigint | MetadataArray;
/** Numeric arrays stay typed arrays. */
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

/** The scalar value types of GGUF by our names; value-types.ts has ids and codecs. */
export type ScalarTypeName =
  'u8' | 'i8' | 'u16' | 'i16' | 'u32' | 'i32' | 'f32' | 'bool' | 'string' | 'u64' | 'i64' | 'f64';
/** `array<array>` has the inner types in the inner values. */
export type MetadataTypeName = ScalarTypeName | `array<${ScalarTypeName | 'array'}>`;

/** A key with its type in the file, as written and read. */
export interface MetadataEntry {
  readonly key: string;
  readonly type: MetadataTypeName;
  readonly value: MetadataValue;
}

/** Typed lookups in the key/value section; a value of the wrong kind is `invalid_model_file` with the key. */
export interface Metadata {
  readonly keys: readonly string[];
  get(key: string): MetadataValue | undefined;
  /** Without a default the key is required: a missing key is `invalid_model_file` with its name. */
  string(key: string, defaultValue?: string): string;
  number(key: string, defaultValue?: number): number;
  boolean(key: string, defaultValue?: boolean): boolean;
  strings(key: string, defaultValue?: readonly string[]): readonly string[];
  numbers(key: string, defaultValue?: ArrayLike<number>): ArrayLike<number>;
}

/** A tensor of a GGUF file: its type, dimensions and position. */
export interface TensorInfo {
  readonly name: string;
  readonly type: TensorTypeName;
  /** In GGUF order: dims[0] (columns) is contiguous, dims[1] are the rows. */
  readonly dims: readonly number[];
  readonly numElements: number;
  /** Absolute byte offset in the file. */
  readonly offset: number;
  readonly sizeBytes: number;
}

/** An open model file: header in memory, tensor bytes read on demand. */
export interface GgufFile {
  readonly version: number;
  readonly metadata: Metadata;
  /** The key/value section in file order with types, ready for `writeGguf`. */
  readonly entries: readonly MetadataEntry[];
  /** Alignment of tensor data in bytes. */
  readonly alignment: number;
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  readonly source: ByteSource;
  /** The tensor, or `invalid_model_file` with its name. */
  tensor(name: string): TensorInfo;
  /** Fills `target` with the tensor's bytes starting at `byteOffset`; never reads past the tensor. */
  readTensor(tensor: TensorInfo, target: Uint8Array, byteOffset?: number): void;
}
