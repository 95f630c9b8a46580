import { RuvLLMError } from '../core/errors.ts';
import type { SafetensorInfo, SafetensorsDtype, SafetensorsFile } from '../gguf/index.ts';
import { quantFormats } from '../quant/index.ts';
import { createAdapter } from './create-adapter.ts';
import { type PeftConfig, readPeftConfig } from './peft-config.ts';
import { checkSourceBytes, type FactorSource, readFactors } from './read-factors.ts';
import type { Adapter, AdapterBase, AdapterTarget } from './types.ts';

/** The parts of a PEFT checkpoint. */
export interface PeftCheckpoint {
  /** adapter_config.json, parsed. */
  readonly config: unknown;
  /** adapter_model.safetensors. */
  readonly tensors: SafetensorsFile;
}

/** Modules of a block, and the matrices of each. */
const MODULES: Readonly<Record<string, readonly AdapterTarget[]>> = {
  'self_attn.q_proj': ['attn_q'],
  'self_attn.k_proj': ['attn_k'],
  'self_attn.v_proj': ['attn_v'],
  'self_attn.qkv_proj': ['attn_q', 'attn_k', 'attn_v'],
  'self_attn.o_proj': ['attn_output'],
  'mlp.gate_proj': ['ffn_gate'],
  'mlp.up_proj': ['ffn_up'],
  'mlp.gate_up_proj': ['ffn_gate', 'ffn_up'],
  'mlp.down_proj': ['ffn_down'],
  // Phi 2 and StarCoder 2.
  'self_attn.dense': ['attn_output'],
  'mlp.fc1': ['ffn_up'],
  'mlp.fc2': ['ffn_down'],
  'mlp.c_fc': ['ffn_up'],
  'mlp.c_proj': ['ffn_down'],
};

/** Architectures whose GGUF files rotate adjacent values while the checkpoint rotates halves: rows of q and k have another order. */
const PAIRS_NEIGHBOURS: ReadonlySet<string> = new Set(['llama', 'smollm3', 'granite']);

const FACTOR = /^base_model\.model\.(.+)\.lora_([AB])(?:\.default)?\.weight$/;
const LAYER = /^(?:model|language_model\.model|model\.language_model)\.layers\.(0|[1-9]\d{0,5})\.(.+)$/;

/** Reads a LoRA saved by PEFT, in the row order of the model's GGUF file. */
export async function readPeftAdapter({ config, tensors }: PeftCheckpoint, base: AdapterBase): Promise<Adapter> {
  const scaling = readPeftConfig(config);
  const sources = [...pairTensors(tensors)].map(([module, { a, b }]) => describe(tensors, module, a, b, scaling, base));
  checkSourceBytes(tensors.source.name, sources);
  return createAdapter(
    base.architecture,
    sources.flatMap((source) => readFactors(source, base)),
  );
}

interface Pair {
  readonly a: SafetensorInfo;
  readonly b: SafetensorInfo;
}

function pairTensors({ tensors, source }: SafetensorsFile): Map<string, Pair> {
  const pairs = new Map<string, Partial<Record<'a' | 'b', SafetensorInfo>>>();
  for (const tensor of tensors.values()) {
    const match = FACTOR.exec(tensor.name);
    if (match === null) {
      throw new RuvLLMError(
        'unsupported',
        `${source.name}: tensor ${show(tensor.name)} is not a factor of a matrix; only plain LoRA is supported`,
        { data: { tensor: tensor.name.slice(0, 80) } },
      );
    }
    const pair = pairs.get(match[1]!) ?? {};
    const side = match[2] === 'A' ? 'a' : 'b';
    if (pair[side] !== undefined) throw invalid(`${source.name}: ${show(tensor.name)} is duplicated`, tensor.name);
    pair[side] = tensor;
    pairs.set(match[1]!, pair);
  }
  for (const [module, { a, b }] of pairs) {
    if (a !== undefined && b !== undefined) continue;
    throw invalid(`${source.name}: ${show(module)} has no lora_${a === undefined ? 'A' : 'B'}`, module);
  }
  return pairs as Map<string, Pair>;
}

function describe(
  file: SafetensorsFile,
  module: string,
  a: SafetensorInfo,
  b: SafetensorInfo,
  scaling: PeftConfig,
  base: AdapterBase,
): FactorSource {
  const [rank, numCols] = matrixShape(a);
  const [numRows, rankOfB] = matrixShape(b);
  const said = scaling.rankOf(module);
  if (rank !== rankOfB || rank !== said) {
    throw invalid(
      `${show(module)}: A is ${rank} x ${numCols}, B is ${numRows} x ${rankOfB}, adapter_config.json says rank ${said}`,
      module,
    );
  }
  return {
    name: module,
    ...findTargets(file, module),
    rank,
    scale: scaling.scaleOf(module, rank),
    numCols,
    numRows,
    readA: () => readTensor(file, a),
    readB: () => readTensor(file, b),
    rowOrder: PAIRS_NEIGHBOURS.has(base.architecture) ? (target) => headOrder(target, base.headDim) : undefined,
  };
}

/** Row 2i + j of a head in GGUF is row j * half + i of the checkpoint. */
function headOrder(target: AdapterTarget, headDim: number): ((row: number) => number) | null {
  if (target !== 'attn_q' && target !== 'attn_k') return null;
  return (row) => {
    const inHead = row % headDim;
    return row - inHead + (inHead % 2) * (headDim / 2) + (inHead >> 1);
  };
}

function findTargets(
  { source }: SafetensorsFile,
  module: string,
): { layer: number; targets: readonly AdapterTarget[] } {
  if (module === 'lm_head' || module === 'language_model.lm_head') return { layer: -1, targets: ['output'] };
  const [, layer, part] = LAYER.exec(module) ?? [];
  if (part !== undefined && Object.hasOwn(MODULES, part)) return { layer: Number(layer), targets: MODULES[part]! };
  throw new RuvLLMError(
    'unsupported',
    `${source.name}: adapters of ${show(module)} are not supported (supported: ${Object.keys(MODULES).join(', ')}, lm_head)`,
    { data: { tensor: module.slice(0, 80) } },
  );
}

function matrixShape({ name, shape }: SafetensorInfo): readonly [number, number] {
  if (shape.length === 2) return [shape[0]!, shape[1]!];
  throw invalid(`${show(name)} has shape [${shape.join(', ')}], a factor must have two dimensions`, name);
}

/** Dtypes that are also GGUF types. */
const FLOAT_DTYPES: Partial<Record<SafetensorsDtype, 'F32' | 'F16' | 'BF16'>> = {
  F32: 'F32',
  F16: 'F16',
  BF16: 'BF16',
};

function readTensor(file: SafetensorsFile, tensor: SafetensorInfo): Float32Array {
  const type = FLOAT_DTYPES[tensor.dtype];
  if (type === undefined) {
    throw new RuvLLMError(
      'unsupported',
      `${show(tensor.name)} has dtype ${tensor.dtype}; supported are F32, F16 and BF16`,
      {
        data: { tensor: tensor.name.slice(0, 80), dtype: tensor.dtype },
      },
    );
  }
  const bytes = new Uint8Array(tensor.sizeBytes);
  file.readTensor(tensor, bytes);
  const values = new Float32Array(tensor.numElements);
  quantFormats[type].dequantize(bytes, 0, values, 0, tensor.numElements);
  return values;
}

/** Names come from the file. */
const show = (name: string): string => JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name);

const invalid = (message: string, tensor: string): RuvLLMError =>
  new RuvLLMError('invalid_model_file', message, { data: { tensor: tensor.slice(0, 80) } });
