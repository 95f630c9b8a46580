import type { Adapter } from '../../src/adapters/index.ts';
import { createMemorySink, createMemorySource, openGguf, writeGguf } from '../../src/gguf/index.ts';

/** The tensor with a target's matrix, and the offset in it. */
function placeOf(
  rowsOf: ReadonlyMap<string, number>,
  { target, layer, numRows }: Adapter['factors'][number],
): { name: string; firstRow: number } {
  const block = `blk.${layer}.`;
  if (target === 'output') return { name: 'output.weight', firstRow: 0 };
  const name = `${block}${target}.weight`;
  const stacked = `${block}attn_qkv.weight`;
  const numStacked = rowsOf.get(stacked);
  if (numStacked !== undefined) {
    if (target === 'attn_q') return { name: stacked, firstRow: 0 };
    if (target === 'attn_k') return { name: stacked, firstRow: numStacked - 2 * numRows };
    if (target === 'attn_v') return { name: stacked, firstRow: numStacked - numRows };
  }
  const up = `${block}ffn_up.weight`;
  if (target === 'ffn_gate') return { name: rowsOf.has(name) ? name : up, firstRow: 0 };
  return { name, firstRow: target === 'ffn_up' ? rowsOf.get(up)! - numRows : 0 };
}

/**
 * The F32 model file with W + scale · B·A in place of each W, computed in double precision: the adapter's expected
 * result. A tied output matrix becomes a separate one.
 */
export function mergeIntoModel(
  bytes: Uint8Array,
  adapters: readonly { adapter: Adapter; scale: number }[],
): Uint8Array {
  const gguf = openGguf(createMemorySource(bytes));
  const rowsOf = new Map<string, number>();
  const values = new Map<string, { dims: readonly number[]; data: Float64Array }>();
  for (const tensor of gguf.tensors.values()) {
    const raw = new Uint8Array(tensor.sizeBytes);
    gguf.readTensor(tensor, raw);
    values.set(tensor.name, { dims: tensor.dims, data: new Float64Array(new Float32Array(raw.buffer)) });
    rowsOf.set(tensor.name, tensor.dims[1] ?? 1);
  }
  if (!values.has('output.weight')) {
    const { dims, data } = values.get('token_embd.weight')!;
    values.set('output.weight', { dims, data: data.slice() });
  }
  for (const { adapter, scale: factor } of adapters) {
    for (const factors of adapter.factors) {
      const { numCols, numRows, rank, scale, a, b } = factors;
      const { name, firstRow } = placeOf(rowsOf, factors);
      const { data } = values.get(name)!;
      for (let row = 0; row < numRows; row++) {
        for (let col = 0; col < numCols; col++) {
          let sum = 0;
          for (let r = 0; r < rank; r++) sum += b[row * rank + r]! * a[r * numCols + col]!;
          const at = (firstRow + row) * numCols + col;
          data[at] = data[at]! + factor * scale * sum;
        }
      }
    }
  }
  const sink = createMemorySink();
  const tensors = [...values].map(([name, { dims, data }]) => {
    return { name, type: 'F32' as const, dims, data: new Uint8Array(new Float32Array(data).buffer) };
  });
  writeGguf({ metadata: gguf.entries, tensors }, sink);
  return sink.toBytes();
}
