import type { AdapterTarget } from '../../adapters/types.ts';
import { assert } from '../../core/errors.ts';
import type { GgufFile } from '../../gguf/index.ts';
import type { MatrixSource, Offset, WeightMatrix } from '../../kernels/contract.ts';
import { readAttention, readFeedForward } from '../../models/decoder-weights.ts';
import type { DecoderShape } from '../../models/types.ts';
import { createWeightLoader, type Projection, type WeightSink } from '../../models/weight-loader.ts';
import type { BackwardReach } from './backward-reach.ts';
import { transposedSource } from './transposed-source.ts';

/** A frozen matrix, and its transpose if gradients pass through it. */
export interface FrozenProjection extends Projection {
  readonly transposed: WeightMatrix | null;
}

export type LayerTarget = Exclude<AdapterTarget, 'output'>;

export interface LayerWeights {
  readonly attentionNorm: Offset;
  readonly feedForwardNorm: Offset;
  readonly qNorm: Offset | null;
  readonly kNorm: Offset | null;
  readonly projections: Readonly<Record<LayerTarget, FrozenProjection>>;
}

/** Rows [firstRow, firstRow + numRows) of the LM head. */
export interface HeadPart extends FrozenProjection {
  readonly firstRow: number;
  readonly numRows: number;
}

export interface TrainingWeights {
  readonly layers: readonly LayerWeights[];
  readonly outputNorm: Offset;
  readonly head: readonly HeadPart[];
}

/** Packs keep scratch for their widest matrix times their longest batch; a whole vocabulary as columns would dominate it. */
const HEAD_PART_ROWS = 8192;

/** Reads every weight that training needs, always in the same order, except the embedding table. */
export function readTrainingWeights(
  gguf: GgufFile,
  shape: DecoderShape,
  hasHeadNorms: boolean,
  reach: BackwardReach,
  sink: WeightSink,
): TrainingWeights {
  const sources = new Map<WeightMatrix, MatrixSource>();
  const loader = createWeightLoader(gguf, {
    ...sink,
    matrix(source) {
      const matrix = sink.matrix(source);
      sources.set(matrix, source);
      return matrix;
    },
  });
  const freeze = (projection: Projection, isCrossed: boolean): FrozenProjection => {
    const source = sources.get(projection.weight);
    assert(source !== undefined, `no source of ${projection.weight.name}`);
    return { ...projection, transposed: isCrossed ? sink.matrix(transposedSource(source)) : null };
  };
  const layers = Array.from({ length: shape.numLayers }, (_, layer): LayerWeights => {
    const attentionNorm = loader.vector(`blk.${layer}.attn_norm.weight`, shape.embeddingDim);
    const { q, k, v, output, qNorm, kNorm } = readAttention(loader, layer, shape, {
      headNorms: hasHeadNorms ? 'each' : 'none',
    });
    const feedForwardNorm = loader.vector(`blk.${layer}.ffn_norm.weight`, shape.embeddingDim);
    const { gate, up, down } = readFeedForward(loader, layer, shape);
    const given = {
      attn_q: q,
      attn_k: k,
      attn_v: v,
      attn_output: output,
      ffn_gate: gate,
      ffn_up: up,
      ffn_down: down,
    };
    const projections = Object.fromEntries(
      Object.entries(given).map(([target, projection]) => [
        target,
        freeze(projection, reach.crosses(target as LayerTarget, layer)),
      ]),
    ) as Record<LayerTarget, FrozenProjection>;
    return { attentionNorm, feedForwardNorm, qNorm, kNorm, projections };
  });
  const outputNorm = loader.vector('output_norm.weight', shape.embeddingDim);
  const { vocabSize, embeddingDim } = shape;
  const sizes = Array.from({ length: Math.ceil(vocabSize / HEAD_PART_ROWS) }, (_, i) =>
    Math.min(HEAD_PART_ROWS, vocabSize - i * HEAD_PART_ROWS),
  );
  const name = loader.has('output.weight') ? 'output' : 'token_embd';
  const sites = sizes.map(() => name); // unused: the trainer applies the factors
  const head = loader.splitProjection(name, sizes, embeddingDim, sites).map((part, i) => ({
    ...freeze(part, reach.crosses('output', -1)),
    firstRow: i * HEAD_PART_ROWS,
    numRows: sizes[i]!,
  }));
  return { layers, outputNorm, head };
}
