import { expect, test } from 'vitest';
import { randomAdapter, SMALL_BASE } from '../../test/support/random-adapter.ts';
import { normals } from '../../test/support/random-values.ts';
import { createMemorySource, openSafetensors } from '../gguf/index.ts';
import { type Adapter, type AdapterBase, readPeftAdapter } from './index.ts';

type Tensor = { readonly shape: readonly number[]; readonly values: Float32Array };

function writeSafetensors(tensors: Readonly<Record<string, Tensor>>): Uint8Array {
  let offset = 0;
  const header: Record<string, unknown> = {};
  for (const [name, { shape, values }] of Object.entries(tensors)) {
    header[name] = { dtype: 'F32', shape, data_offsets: [offset, (offset += values.byteLength)] };
  }
  const json = new TextEncoder().encode(JSON.stringify(header));
  const bytes = new Uint8Array(8 + json.length + offset);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(json.length), true);
  bytes.set(json, 8);
  let at = 8 + json.length;
  for (const { values } of Object.values(tensors)) {
    bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), at);
    at += values.byteLength;
  }
  return bytes;
}

const CONFIG = { peft_type: 'LORA', r: 2, lora_alpha: 6, bias: 'none', fan_in_fan_out: false, modules_to_save: null };
const Q = 'base_model.model.model.layers.1.self_attn.q_proj';
const pair = (module: string, numCols: number, numRows: number, rank = 2): Record<string, Tensor> => ({
  [`${module}.lora_A.weight`]: { shape: [rank, numCols], values: normals(rank * numCols, 1) },
  [`${module}.lora_B.weight`]: {
    shape: [numRows, rank],
    values: Float32Array.from({ length: numRows * rank }, (_, i) => i),
  },
});

function read(
  tensors: Readonly<Record<string, Tensor>>,
  config: object = {},
  base: AdapterBase = SMALL_BASE,
): Promise<Adapter> {
  const file = openSafetensors(createMemorySource(writeSafetensors(tensors), 'adapter_model.safetensors'));
  return readPeftAdapter({ config: { ...CONFIG, ...config }, tensors: file }, base);
}

const rowsOf = ({ factors }: Adapter, at = 0): number[] => {
  const { b, rank } = factors[at]!;
  return Array.from({ length: b.length / rank }, (_, row) => b[row * rank]! / rank);
};

test('reorders rows of q and k by the pairs that the GGUF file rotates, and keeps those of v', async () => {
  const adapter = await read({
    ...pair(Q, 16, 16),
    ...pair(Q.replace('q_proj', 'k_proj'), 16, 8),
    ...pair(Q.replace('q_proj', 'v_proj'), 16, 8),
  });
  // Heads of 4: rows 0 and 2 were one pair, 1 and 3 the other.
  expect(rowsOf(adapter, 0)).toEqual([0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15]);
  expect(rowsOf(adapter, 1)).toEqual([0, 2, 1, 3, 4, 6, 5, 7]);
  expect(rowsOf(adapter, 2)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  const halves = await read(pair(Q, 16, 16), {}, { ...SMALL_BASE, architecture: 'qwen2' });
  expect(rowsOf(halves)).toEqual(Array.from({ length: 16 }, (_, row) => row));
});

test('finds all modules and splits stacked ones', async () => {
  const block = 'base_model.model.model.layers.0';
  const adapter = await read({
    ...pair(`${block}.self_attn.qkv_proj`, 16, 32),
    ...pair(`${block}.self_attn.o_proj`, 16, 16),
    ...pair(`${block}.mlp.gate_up_proj`, 16, 48),
    ...pair(`${block}.mlp.down_proj`, 24, 16),
    ...pair('base_model.model.lm_head', 16, 40),
  });
  const { factors } = await randomAdapter(SMALL_BASE, { seed: 1, layers: [0] });
  const facts = ({ layer, target, numCols, numRows }: (typeof factors)[number]) => [layer, target, numCols, numRows];
  expect(adapter.factors.map(facts)).toEqual(factors.map(facts));
});

test.each<[object, number]>([
  [{}, 3],
  [{ use_rslora: true }, 6 / Math.SQRT2],
  [{ alpha_pattern: { q_proj: 10 } }, 5],
  [{ alpha_pattern: { 'self_attn.q_proj': 10 } }, 5],
  [{ alpha_pattern: { '^model\\.layers\\.1\\.self_attn\\.q_proj$': 10 } }, 5],
  [{ alpha_pattern: { k_proj: 10, _proj: 20 } }, 3],
  [{ rank_pattern: { q_proj: 2 }, r: 8 }, 3],
])('%j scales by %d', async (config, scale) => {
  expect((await read(pair(Q, 16, 16), config)).factors[0]!.scale).toBe(scale);
});

test.each<[object, string, RegExp]>([
  [{ peft_type: 'IA3' }, 'unsupported', /peft_type "IA3"/],
  [{ fan_in_fan_out: true }, 'unsupported', /fan_in_fan_out true/],
  [{ use_dora: true }, 'unsupported', /use_dora true/],
  [{ modules_to_save: ['lm_head'] }, 'unsupported', /modules_to_save a list of 1 items, \["lm_head"\]/],
  [{ bias: 'all' }, 'unsupported', /bias "all"/],
  [{ init_lora_weights: 'pissa_niter_16' }, 'unsupported', /init_lora_weights/],
  [{ rank_pattern: { '(a+)+$': 4 } }, 'unsupported', /rank_pattern "\(a\+\)\+\$"/],
  [{ lora_alpha: null }, 'invalid_model_file', /lora_alpha must be a positive number, got null/],
  [{ r: -1 }, 'invalid_model_file', /r must be a positive number, got -1/],
  [{ r: 4 }, 'invalid_model_file', /A is 2 x 16, B is 16 x 2, adapter_config.json says rank 4/],
])('rejects %j', async (config, code, message) => {
  const reading = read(pair(Q, 16, 16), config);
  await expect(reading).rejects.toThrow(message);
  await expect(reading).rejects.toMatchObject({ code });
});

test('rejects weights of another kind, unknown modules and other shapes by name', async () => {
  const extra = (name: string): Record<string, Tensor> => ({
    ...pair(Q, 16, 16),
    [name]: { shape: [1], values: new Float32Array(1) },
  });
  await expect(read(extra('base_model.model.lm_head.modules_to_save.weight'))).rejects.toThrow(
    /modules_to_save.*not a factor/,
  );
  await expect(read(extra(`${Q}.lora_magnitude_vector`))).rejects.toThrow(/lora_magnitude_vector.*not a factor/);
  await expect(read(pair('base_model.model.model.embed_tokens', 16, 16))).rejects.toThrow(
    /embed_tokens.*not supported/,
  );
  await expect(read(pair(Q, 18, 16))).rejects.toThrow('changes a matrix of 16 x 18, the model has 16 x 16');
  const { [`${Q}.lora_B.weight`]: _, ...half } = pair(Q, 16, 16);
  await expect(read(half)).rejects.toThrow(/q_proj" has no lora_B/);
});
