import { RuvLLMError } from '../core/errors.ts';
import {
  type AttentionOp,
  type CausalConvOp,
  type DeltaScanOp,
  type DistancesOp,
  type GraphLanes,
  graphLaneBytes,
  type LowRankDeltaOp,
  MAX_CONV_WIDTH,
  MAX_GRAPH_DEGREE,
  MAX_GRAPH_NODES,
  MAX_GRAPH_WIDTH,
  MAX_RANK,
  MAX_TOP,
  MAX_VECTOR_DIM,
  type SelectiveScanOp,
  type TopLogitsOp,
} from './contract.ts';

/** Throws if a row would see everything and a window at once. */
export function checkWindow({ seesAll = false, window }: AttentionOp): void {
  if (seesAll && window !== 0)
    throw new RuvLLMError('unsupported', `bidirectional attention cannot have a window, got ${window}`);
}

/** Throws if a rank is beyond the scratch of packs. */
export function checkLowRank({ rank }: LowRankDeltaOp): void {
  if (rank < 1 || rank > MAX_RANK) {
    throw new RuvLLMError('unsupported', `the rank of a low-rank delta must be 1 to ${MAX_RANK}, got ${rank}`);
  }
}

/** Throws if a vector is longer than the scratch of packs, or int8 vectors lack scales. */
export function checkDistances({ dim, format, scales }: Pick<DistancesOp, 'dim' | 'format' | 'scales'>): void {
  if (dim < 1 || dim > MAX_VECTOR_DIM) {
    throw new RuvLLMError('unsupported', `vectors must have 1 to ${MAX_VECTOR_DIM} values, got ${dim}`);
  }
  if ((format === 'int8') !== (scales !== null)) {
    throw new RuvLLMError('internal', `${format} vectors with${scales === null ? 'out' : ''} scales`);
  }
}

/** Throws if k is larger than the vocabulary or the scratch of packs. */
export function checkTopLogits({ k, vocabSize }: TopLogitsOp): void {
  const most = Math.min(MAX_TOP, vocabSize);
  if (!(k >= 1 && k <= most)) {
    throw new RuvLLMError('unsupported', `the number of top logits must be 1 to ${most}, got ${k}`);
  }
}

/** Throws if a graph is too large for packs, or the lanes are too small for it. */
export function checkGraph(width: number, degree: number, { numNodes, laneBytes }: GraphLanes): void {
  if (!(width >= 1 && width <= MAX_GRAPH_WIDTH)) {
    throw new RuvLLMError('unsupported', `the search width must be 1 to ${MAX_GRAPH_WIDTH}, got ${width}`);
  }
  if (degree > MAX_GRAPH_DEGREE || numNodes > MAX_GRAPH_NODES) {
    const limits = `the limits are ${MAX_GRAPH_NODES} and ${MAX_GRAPH_DEGREE}`;
    throw new RuvLLMError('unsupported', `a graph of ${numNodes} nodes with ${degree} neighbours each: ${limits}`);
  }
  const neededBytes = graphLaneBytes(numNodes, width, degree);
  if (laneBytes < neededBytes)
    throw new RuvLLMError('internal', `lanes have ${laneBytes} bytes, ${neededBytes} are required`);
}

/** Throws if a convolution looks further back than packs do. */
export function checkConv({ width }: CausalConvOp): void {
  if (width < 2 || width > MAX_CONV_WIDTH) {
    throw new RuvLLMError('unsupported', `a convolution must be over 2 to ${MAX_CONV_WIDTH} tokens, got ${width}`);
  }
}

/** Throws if heads cannot be divided into groups, or states into lanes. */
export function checkScan({ numHeads, numGroups, stateDim }: SelectiveScanOp): void {
  if (numHeads % numGroups === 0 && stateDim % 4 === 0) return;
  throw new RuvLLMError(
    'unsupported',
    `a scan of ${numHeads} heads in ${numGroups} groups with states of ${stateDim} values: groups must be equal, states a multiple of 4`,
  );
}

/** Throws if heads cannot share key heads evenly, or keys cannot be divided into lanes. */
export function checkDelta({ numHeads, numKeyHeads, keyDim }: DeltaScanOp): void {
  if (numHeads % numKeyHeads === 0 && keyDim % 4 === 0) return;
  throw new RuvLLMError(
    'unsupported',
    `a delta net of ${numHeads} heads over ${numKeyHeads} key heads of ${keyDim} values: heads must divide evenly, keys be a multiple of 4`,
  );
}
