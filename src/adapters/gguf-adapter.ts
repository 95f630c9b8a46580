import { RuvLLMError } from '../core/errors.ts';
import type { GgufFile, TensorInfo } from '../gguf/index.ts';
import { quantFormats } from '../quant/index.ts';
import { createAdapter } from './create-adapter.ts';
import { checkSourceBytes, type FactorSource, readFactors } from './read-factors.ts';
import { ADAPTER_TARGETS, type Adapter, type AdapterBase, type AdapterTarget } from './types.ts';

const SUFFIX = /^(.+)\.weight\.lora_([ab])$/;

/** Matrices that some models store as one, with their parts. */
const STACKED: Readonly<Record<string, readonly AdapterTarget[]>> = {
  attn_qkv: ['attn_q', 'attn_k', 'attn_v'],
  /** In models without a separate gate: gate first. */
  ffn_up: ['ffn_gate', 'ffn_up'],
};

/** Whether a GGUF file is an adapter and not a model. */
export function isGgufAdapter({ metadata }: Pick<GgufFile, 'metadata'>): boolean {
  return metadata.string('general.type', 'model') === 'adapter';
}

/** Reads a LoRA in llama.cpp's format; `base` is the model it will be used with. */
export async function readGgufAdapter(file: GgufFile, base: AdapterBase): Promise<Adapter> {
  const { metadata, source } = file;
  if (!isGgufAdapter(file)) {
    throw new RuvLLMError('invalid_model_file', `${source.name} is not an adapter: general.type must be "adapter"`);
  }
  const kind = metadata.string('adapter.type');
  if (kind !== 'lora') {
    throw new RuvLLMError(
      'unsupported',
      `${source.name}: adapters of type "${kind}" are not supported; only "lora" is`,
      {
        data: { adapterType: kind },
      },
    );
  }
  const architecture = metadata.string('general.architecture');
  if (architecture !== base.architecture) {
    throw new RuvLLMError(
      'invalid_model_file',
      `${source.name} is an adapter for ${architecture}, the model is ${base.architecture}`,
      { data: { adapterArchitecture: architecture, modelArchitecture: base.architecture } },
    );
  }
  const alpha = metadata.number('adapter.lora.alpha', 0);
  const pairs = pairTensors(file);
  const sources = [...pairs].map(([name, { a, b }]) => describePair(file, name, a, b, alpha, base));
  checkSourceBytes(source.name, sources);
  return createAdapter(
    architecture,
    sources.flatMap((pair) => readFactors(pair, base)),
  );
}

interface Pair {
  readonly a: TensorInfo;
  readonly b: TensorInfo;
}

function pairTensors({ tensors, source }: GgufFile): Map<string, Pair> {
  const pairs = new Map<string, Partial<Record<'a' | 'b', TensorInfo>>>();
  for (const tensor of tensors.values()) {
    const match = SUFFIX.exec(tensor.name);
    if (match === null) {
      throw new RuvLLMError('unsupported', `${source.name}: tensor ${tensor.name} is not a factor of a matrix`, {
        data: { tensor: tensor.name },
      });
    }
    const pair = pairs.get(match[1]!) ?? {};
    pair[match[2] as 'a' | 'b'] = tensor;
    pairs.set(match[1]!, pair);
  }
  for (const [name, { a, b }] of pairs) {
    if (a !== undefined && b !== undefined) continue;
    const missing = `${name}.weight.lora_${a === undefined ? 'a' : 'b'}`;
    throw new RuvLLMError('invalid_model_file', `${source.name}: tensor ${missing} is missing`, {
      data: { tensor: missing },
    });
  }
  return pairs as Map<string, Pair>;
}

function describePair(
  file: GgufFile,
  name: string,
  a: TensorInfo,
  b: TensorInfo,
  alpha: number,
  base: AdapterBase,
): FactorSource {
  const [numCols, rank] = matrixDims(a);
  const [rankOfB, numRows] = matrixDims(b);
  if (rank !== rankOfB) {
    throw new RuvLLMError(
      'invalid_model_file',
      `${a.name} is ${rank} x ${numCols} and ${b.name} is ${numRows} x ${rankOfB}: their ranks differ`,
      { data: { tensor: name, rankA: rank, rankB: rankOfB } },
    );
  }
  const { layer, targets } = findTargets(file, name, numRows, base);
  return {
    name,
    layer,
    targets,
    rank,
    // llama.cpp reads an alpha of 0 as unscaled.
    scale: alpha === 0 ? 1 : alpha / rank,
    numCols,
    numRows,
    readA: () => readTensor(file, a),
    readB: () => readTensor(file, b),
  };
}

function matrixDims({ name, dims }: TensorInfo): readonly [number, number] {
  const [numCols, numRows = 1, ...otherDims] = dims;
  if (numCols !== undefined && otherDims.every((dim) => dim === 1)) return [numCols, numRows];
  throw new RuvLLMError(
    'invalid_model_file',
    `tensor ${name} has shape [${dims.join(', ')}], a factor must have two dimensions`,
    {
      data: { tensor: name, shape: dims.join(' x ') },
    },
  );
}

function findTargets(
  { source }: GgufFile,
  name: string,
  numRows: number,
  base: AdapterBase,
): { layer: number; targets: readonly AdapterTarget[] } {
  if (name === 'output') return { layer: -1, targets: ['output'] };
  const [, digits, part] = /^blk\.(0|[1-9]\d{0,5})\.(\w+)$/.exec(name) ?? [];
  const layer = Number(digits);
  const isWhole = part !== 'ffn_up' || numRows !== 2 * base.feedForwardDim;
  if (part !== undefined && part !== 'output' && isWhole && (ADAPTER_TARGETS as readonly string[]).includes(part)) {
    return { layer, targets: [part as AdapterTarget] };
  }
  if (part !== undefined && Object.hasOwn(STACKED, part)) return { layer, targets: STACKED[part]! };
  throw new RuvLLMError(
    'unsupported',
    `${source.name}: adapters of ${name} are not supported (supported: ${ADAPTER_TARGETS.join(', ')})`,
    { data: { tensor: name } },
  );
}

/** Any tensor type: adapters come as F32, F16 and Q8_0. */
function readTensor(file: GgufFile, tensor: TensorInfo): Float32Array {
  const bytes = new Uint8Array(tensor.sizeBytes);
  file.readTensor(tensor, bytes);
  const format = quantFormats[tensor.type];
  const values = new Float32Array(tensor.numElements);
  format.dequantize(bytes, 0, values, 0, tensor.numElements / format.blockSize);
  return values;
}
