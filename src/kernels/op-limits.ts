import { RuvLLMError } from '../core/errors.ts';
import {
  type AttentionOp,
  type DistancesOp,
  type GraphLanes,
  graphLaneBytes,
  type LowRankDeltaOp,
  MAX_GRAPH_DEGREE,
  MAX_GRAPH_NODES,
  MAX_GRAPH_WIDTH,
  MAX_RANK,
  MAX_TOP,
  MAX_VECTOR_DIM,
  type TopLogitsOp,
} from './contract.ts';

/** Throws where a row shall see everything and a window at once. */
export function checkWindow({ seesAll = false, window }: AttentionOp): void {
  if (seesAll && window !== 0)
    throw new RuvLLMError('unsupported', `bidirectional attention cannot have a window, got ${window}`);
}

/** Throws where a rank is beyond what packs keep scratch for. */
export function checkLowRank({ rank }: LowRankDeltaOp): void {
  if (rank < 1 || rank > MAX_RANK) {
    throw new RuvLLMError('unsupported', `the rank of a low-rank delta must be 1 to ${MAX_RANK}, got ${rank}`);
  }
}

/** Throws where a vector is longer than packs keep scratch for, or bytes come without scales. */
export function checkDistances({ dim, format, scales }: Pick<DistancesOp, 'dim' | 'format' | 'scales'>): void {
  if (dim < 1 || dim > MAX_VECTOR_DIM) {
    throw new RuvLLMError('unsupported', `vectors must have 1 to ${MAX_VECTOR_DIM} values, got ${dim}`);
  }
  if ((format === 'int8') !== (scales !== null)) {
    throw new RuvLLMError('internal', `${format} vectors with${scales === null ? 'out' : ''} scales`);
  }
}

/** Throws where more logits are asked for than there are, or than packs keep room for. */
export function checkTopLogits({ k, vocabSize }: TopLogitsOp): void {
  const most = Math.min(MAX_TOP, vocabSize);
  if (!(k >= 1 && k <= most)) {
    throw new RuvLLMError('unsupported', `the number of top logits must be 1 to ${most}, got ${k}`);
  }
}

/** Throws where a graph is larger than packs can walk, or their own memory is too small for it. */
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
