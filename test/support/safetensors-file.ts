/** A tensor of a checkpoint: floats, or bytes of packed blocks. */
export interface CheckpointTensor {
  readonly shape: readonly number[];
  readonly values: Float32Array | Uint8Array;
}

export interface NamedTensor extends CheckpointTensor {
  readonly name: string;
}

/** The bytes of a safetensors file with F32 and U8 tensors. */
export function safetensors(tensors: readonly NamedTensor[]): Uint8Array {
  let end = 0;
  const header = Object.fromEntries(
    tensors.map(({ name, shape, values }) => {
      const begin = end;
      end += values.byteLength;
      const dtype = values instanceof Float32Array ? 'F32' : 'U8';
      return [name, { dtype, shape, data_offsets: [begin, end] }];
    }),
  );
  const json = Buffer.from(JSON.stringify(header));
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(BigInt(json.length));
  const parts = tensors.map(({ values }) => new Uint8Array(values.slice().buffer));
  return Buffer.concat([prefix, json, ...parts]);
}
