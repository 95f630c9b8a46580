import { RuvLLMError } from '../../core/errors.ts';
import type { TensorTypeName } from '../../core/tensor-type.ts';
import type { GgufFile } from '../../gguf/types.ts';
import { typeName } from '../../gguf/tensor-table.ts';
import { PAGE_TOKENS } from '../../kernels/contract.ts';
import { planModel } from '../../models/index.ts';
import { findModelProblems } from '../../models/find-problems.ts';
import type { ModelPlan } from '../../models/plan-model.ts';
import { readShape } from '../../models/shape.ts';
import { openModelFile } from '../../platform/node/files/open-model-file.ts';
import { createSizingFactory } from '../../platform/node/kernels/sizing-factory.ts';
import { readSystemInfo } from '../../platform/node/process/system-info.ts';
import { quantFormats, rowBytes } from '../../quant/index.ts';
import { type ModelConfig, planSpec, resolveModelConfig } from '../../runtime/model-config.ts';
import { findFittingQuant, type FittingQuant } from './fitting-quant.ts';
import { planEngine } from '../../engine/plan-engine.ts';

/** Weights of one type: in the file, and in the layout of the kernels. */
export interface TypeCost {
  readonly type: TensorTypeName;
  readonly fileBytes: number;
  readonly memoryBytes: number;
  readonly bitsInFile: number;
  readonly bitsInMemory: number;
}

/** Whether a file loads on this machine, and what it costs. */
export interface ModelInspection {
  /** Everything that prevents loading, one sentence each; empty: the file loads. */
  readonly problems: readonly string[];
  /** Memory with one sequence of so many tokens. */
  readonly contexts: readonly { readonly tokens: number; readonly totalBytes: number }[];
  /** Types of matrices, the most expensive first. */
  readonly types: readonly TypeCost[];
  readonly availableBytes: number;
  /** The best quantization of this model that fits; null: none, or the file does not load. */
  readonly fitting: FittingQuant | null;
}

const CONTEXTS = [4096, 32_768];
/** Missing tensors to name; a file of another architecture would list hundreds. */
const MAX_NAMED = 8;

/** Reads the header of a model and checks whether it loads; never throws for a bad file. */
export function inspectModel(path: string, config?: ModelConfig): ModelInspection {
  const { availableMemoryBytes: availableBytes, numCpus } = readSystemInfo();
  const nothing = { contexts: [], types: [], availableBytes, fitting: null };
  const unknown = new Map<number, string[]>();
  const onUnknownType = (tensor: string, id: number): void => {
    unknown.set(id, [...(unknown.get(id) ?? []), tensor]);
  };
  try {
    const gguf = openModelFile(path, onUnknownType);
    try {
      const problems = [...describeTypes(unknown), ...describeProblems(gguf, new Set([...unknown.values()].flat()))];
      if (problems.length > 0) return { ...nothing, problems };
      return {
        ...nothing,
        problems,
        ...planCosts(gguf, path, resolveModelConfig(config, { numCpus }), availableBytes),
      };
    } finally {
      gguf.source.close();
    }
  } catch (error) {
    if (!(error instanceof RuvLLMError)) throw error;
    return { ...nothing, problems: [error.message] };
  }
}

function describeTypes(unknown: ReadonlyMap<number, readonly string[]>): string[] {
  return [...unknown].map(
    ([id, tensors]) =>
      `tensor type ${typeName(id)} is not supported: ${tensors.length} ${tensors.length === 1 ? 'tensor' : 'tensors'}, ` +
      `such as ${tensors[0]!.slice(0, 80)}`,
  );
}

/** Tensors of unknown types are not missing. */
function describeProblems(gguf: GgufFile, unknownTensors: ReadonlySet<string>): string[] {
  const problems = findModelProblems(gguf)
    .filter(({ data }) => !unknownTensors.has(String(data?.['tensor'])))
    .map(({ message }) => message);
  const more = problems.length - MAX_NAMED;
  return more <= 1 ? problems : [...problems.slice(0, MAX_NAMED), `${more} more of this kind`];
}

function planCosts(
  gguf: GgufFile,
  path: string,
  config: ReturnType<typeof resolveModelConfig>,
  availableBytes: number,
): Pick<ModelInspection, 'contexts' | 'types' | 'fitting'> {
  const { contextLength } = readShape(gguf);
  const spec = planSpec(config, { path, contextLength }, null);
  const factory = createSizingFactory(spec.kernels);
  const { limitsOf } = planEngine(spec, gguf);
  const planFor = (tokens: number): ModelPlan =>
    planModel(gguf, factory, limitsOf(Math.ceil(tokens / PAGE_TOKENS)), tokens);
  const lengths = [...CONTEXTS.filter((tokens) => tokens < contextLength), contextLength];
  // KV pages of a long context can exceed what packed pages address; the model loads with a shorter one.
  const contexts = lengths.flatMap((tokens) => {
    const plan = tryPlan(() => planFor(tokens));
    return plan === null ? [] : [{ tokens, totalBytes: plan.totalBytes }];
  });
  const { weights, totalBytes, weightBytes } = planFor(Math.min(spec.maxContext, contextLength));
  return {
    contexts,
    types: typeCosts(weights),
    fitting: findFittingQuant(weights, factory, totalBytes - weightBytes, availableBytes),
  };
}

function tryPlan(plan: () => ModelPlan): ModelPlan | null {
  try {
    return plan();
  } catch (error) {
    if (error instanceof RuvLLMError) return null;
    throw error;
  }
}

function typeCosts(weights: ModelPlan['weights']): TypeCost[] {
  const costs = new Map<TensorTypeName, { fileBytes: number; memoryBytes: number; numValues: number }>();
  for (const { type, numRows, numCols, sizeBytes } of weights) {
    if (type === null) continue;
    const cost = costs.get(type) ?? { fileBytes: 0, memoryBytes: 0, numValues: 0 };
    cost.fileBytes += numRows * rowBytes(type, numCols);
    cost.memoryBytes += sizeBytes;
    cost.numValues += numRows * numCols;
    costs.set(type, cost);
  }
  return [...costs]
    .map(([type, { fileBytes, memoryBytes, numValues }]) => ({
      type,
      fileBytes,
      memoryBytes,
      bitsInFile: (8 * quantFormats[type].blockBytes) / quantFormats[type].blockSize,
      bitsInMemory: (8 * memoryBytes) / numValues,
    }))
    .sort((a, b) => b.memoryBytes - a.memoryBytes);
}
