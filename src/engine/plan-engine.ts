import type { ModelReport, ModelSpec } from './protocol.ts';
import type { GgufFile } from '../gguf/types.ts';
import { choosePacking } from '../kv-cache/kv-policy.ts';
import { stateBytesOf } from '../models/index.ts';
import { readShape } from '../models/shape.ts';
import type { DecoderShape, ModelLimits } from '../models/types.ts';
import { planPages, type PagePlan } from './plan-pages.ts';
import { planStates } from './plan-states.ts';

/** Drafted tokens of one step, of all sequences together: each takes a row of logits. */
const MAX_DRAFT_ROWS = 16;

export interface EnginePlan extends PagePlan {
  readonly kvPacking: ModelReport['kvPacking'];
  /** The step limits of a model with this many pages. */
  readonly limitsOf: (numPages: number) => ModelLimits;
}

/** Packing requires heads of whole groups of four values. */
function planPacking({ kvPacking }: ModelSpec, { headDim, isCausal }: DecoderShape): ModelReport['kvPacking'] {
  if (!isCausal) return { precision: null, reason: 'an encoder has no KV cache' };
  if (kvPacking === 'auto' && headDim % 4 !== 0) return { precision: null, reason: `heads have ${headDim} values` };
  const { packed, reason } = choosePacking(kvPacking);
  return { precision: packed, reason };
}

/** Plans the pages and steps of a model from its header. */
export function planEngine(spec: ModelSpec, gguf: GgufFile): EnginePlan {
  const shape = readShape(gguf);
  const kvPacking = planPacking(spec, shape);
  // An encoder computes a sequence in one step.
  const maxBatchTokens = shape.isCausal ? spec.maxBatchTokens : Math.max(spec.maxBatchTokens, spec.maxContext);
  const stateBytes = stateBytesOf(gguf);
  const numStates = planStates(spec, stateBytes);
  const { memoryBudgetBytes } = spec;
  const pageBudgetBytes = memoryBudgetBytes === null ? null : memoryBudgetBytes - numStates * stateBytes;
  return {
    ...planPages({ ...spec, maxBatchTokens, memoryBudgetBytes: pageBudgetBytes }, shape, kvPacking.precision),
    kvPacking,
    limitsOf: (numPages) => ({
      maxBatchTokens,
      maxSequences: spec.maxSequences,
      maxLogitRows:
        spec.maxSequences + (spec.speculation !== 'off' && shape.isCausal && stateBytes === 0 ? MAX_DRAFT_ROWS : 0),
      numPages,
      kvPrecision: spec.kvPrecision,
      packedPrecision: kvPacking.precision,
      numStates,
    }),
  };
}
