import type { TensorTypeName } from '../../core/tensor-type.ts';
import { quantFormats, rowBytes } from '../../quant/index.ts';
import { keepsPrecision } from '../kept-tensors.ts';
import type { Metadata, MetadataEntry } from '../types.ts';
import type { GgufToWrite } from '../writer.ts';
import { plainEncoder, type RowEncoder } from './encode-rows.ts';
import { type Mix, MIXES, type MixName, type Place, type Role, SMALL_BLOCKS } from './mixes.ts';
import { floatStrips, type QuantizeSource, type QuantizeTensor } from './quantize-source.ts';

/** One tensor of the new file. */
export interface RequantizedTensor {
  readonly tensor: QuantizeTensor;
  readonly type: TensorTypeName;
  readonly sizeBytes: number;
}

const ROLES: readonly [RegExp, Role][] = [
  [/^output\.weight$/, 'output'],
  [/^token_embd\.weight$/, 'token_embd'],
  [/\.attn_q\.weight$/, 'attn_q'],
  [/\.attn_k\.weight$/, 'attn_k'],
  [/\.attn_v\.weight$/, 'attn_v'],
  [/\.attn_qkv\.weight$/, 'attn_qkv'],
  [/\.attn_output\.weight$/, 'attn_output'],
  [/\.ffn_down(?:_exps|_shexp)?\.weight$/, 'ffn_down'],
];

/** Chooses a type for each tensor: as the mix says for matrices of weights, the old one for all others. */
export function planRequantization({ metadata, tensors }: QuantizeSource, name: MixName): RequantizedTensor[] {
  const mix: Mix = MIXES[name];
  const architecture = metadata.string('general.architecture');
  const count = (key: string, fallback: number): number => metadata.number(`${architecture}.${key}`, fallback);
  const numLayers = count('block_count', 1);
  const numHeads = count('attention.head_count', 1);
  const headsPerKvHead = numHeads / countKvHeads(metadata, `${architecture}.attention.head_count_kv`, numHeads);
  const isTied = !tensors.some((tensor) => tensor.name === 'output.weight');
  return tensors.map((tensor) => {
    const layer = Number(/^blk\.(\d+)\./.exec(tensor.name)?.[1] ?? 0);
    const type = chooseType(tensor, mix, { role: roleOf(tensor.name, isTied), layer, numLayers, headsPerKvHead });
    const sizeBytes = (tensor.numElements / tensor.dims[0]!) * rowBytes(type, tensor.dims[0]!);
    return { tensor, type, sizeBytes };
  });
}

/** Hybrid models list a number for each layer, 0 for those without attention. */
function countKvHeads(metadata: Metadata, key: string, fallback: number): number {
  if (!ArrayBuffer.isView(metadata.get(key))) return metadata.number(key, fallback);
  return Math.max(1, ...Array.from(metadata.numbers(key)));
}

function roleOf(name: string, isTied: boolean): Role {
  if (isTied && name === 'token_embd.weight') return 'output';
  return ROLES.find(([pattern]) => pattern.test(name))?.[1] ?? 'other';
}

function chooseType(tensor: QuantizeTensor, mix: Mix, place: Place): TensorTypeName {
  const numRows = tensor.dims.slice(1).reduce((product, dim) => product * dim, 1);
  if (numRows === 1 || keepsPrecision(tensor.name)) return tensor.type;
  const type = mix.better?.(place) ?? mix.type;
  const numCols = tensor.dims[0]!;
  if (numCols % quantFormats[type].blockSize === 0) return type;
  const small = SMALL_BLOCKS[type];
  return small !== undefined && numCols % quantFormats[small].blockSize === 0 ? small : 'F16';
}

/** Describes the new file; its tensors are decoded and encoded in strips while it is written. */
export function requantize(
  source: QuantizeSource,
  name: MixName,
  plan: readonly RequantizedTensor[],
  onStrip: (tensor: RequantizedTensor, doneBytes: number) => void = () => {},
  encode: RowEncoder = plainEncoder,
): GgufToWrite {
  const own: MetadataEntry[] = [
    { key: 'general.file_type', type: 'u32', value: MIXES[name].fileType },
    { key: 'general.quantization_version', type: 'u32', value: 2 },
  ];
  const metadata = [...source.entries.filter(({ key }) => !own.some((entry) => entry.key === key)), ...own];
  return {
    metadata,
    tensors: plan.map((entry) => ({
      name: entry.tensor.name,
      type: entry.type,
      dims: entry.tensor.dims,
      data: () => convertStrips(entry, encode, (doneBytes) => onStrip(entry, doneBytes)),
    })),
  };
}

function* convertStrips(
  { tensor, type }: RequantizedTensor,
  encode: RowEncoder,
  onDone: (doneBytes: number) => void,
): Generator<Uint8Array> {
  if (type === tensor.type) {
    let doneBytes = 0;
    for (const bytes of tensor.chunks()) {
      yield bytes;
      onDone((doneBytes += bytes.length));
    }
    return;
  }
  const sourceRow = rowBytes(tensor.type, tensor.dims[0]!);
  for (const { values, firstRow } of floatStrips(tensor)) {
    yield encode({ tensor, type, values, firstRow });
    onDone((firstRow + values.length / tensor.dims[0]!) * sourceRow);
  }
}
