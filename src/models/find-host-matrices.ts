import type { GgufFile } from '../gguf/index.ts';
import {
  alignArena,
  type KernelPack,
  type KernelPackFactory,
  type Offset,
  type WeightMatrix,
} from '../kernels/contract.ts';
import { allocateActivations } from './activations.ts';
import { placeKvLayers } from './kv-layout.ts';
import type { ModelPlan } from './plan-model.ts';
import { createWeightLoader } from './weight-loader.ts';
import { createBillingSink } from './weight-sinks.ts';

/** The operations of a model that kernels lack. */
export interface MissingOperations {
  readonly names: ReadonlySet<string>;
  /** Names of the matrices that they use. */
  readonly matrices: ReadonlySet<string>;
}

/** Calls the operations of one step without effect. */
export function findMissingOperations(
  gguf: GgufFile,
  factory: KernelPackFactory,
  plan: ModelPlan,
  missing: readonly string[],
): MissingOperations {
  const names = new Set<string>();
  const matrices = new Set<string>();
  const pack = createDryPack((name, op) => {
    if (!missing.includes(name)) return;
    names.add(name);
    for (const { name: matrix } of matricesOf(op)) matrices.add(matrix);
  });
  const { shape, decoder, kvPrecision: precision, packedPrecision, kvPageBytes: pageBytes } = plan;
  const forward = decoder.bind(createWeightLoader(gguf, createBillingSink(factory)));
  const { layers } = placeKvLayers(shape, { base: 0, pageBytes, numPages: 1 }, { precision, packedPrecision });
  const stateBytes = alignArena(decoder.stateBytes ?? 0);
  forward({
    pack,
    shape,
    kvLayers: layers,
    states: stateBytes === 0 ? null : { base: 0, stateBytes, numStates: 1 },
    buffers: allocateActivations(pack.arena, plan.activations),
    ropes: decoder.ropes,
    vectors: [],
    adapters: null,
    numTokens: 1,
    numSequences: 1,
    numLogitRows: 1,
    numHiddenRows: 1,
  });
  return { names, matrices };
}

/** A pack whose operations are only reported. */
function createDryPack(onOperation: (name: string, op: unknown) => void): KernelPack {
  let used = 0;
  const arena: Partial<KernelPack['arena']> = {
    allocate(sizeBytes): Offset {
      used += alignArena(sizeBytes);
      return used - alignArena(sizeBytes);
    },
    f32: (_, length) => new Float32Array(length),
    i32: (_, length) => new Int32Array(length),
  };
  return new Proxy({} as KernelPack, {
    get: (_, name) => (name === 'arena' ? arena : (op: unknown) => onOperation(String(name), op)),
  });
}

/** The matrices anywhere in an operation. */
function matricesOf(value: unknown): WeightMatrix[] {
  if (typeof value !== 'object' || value === null) return [];
  if ('numRows' in value && 'numCols' in value && 'type' in value) return [value as WeightMatrix];
  return Object.values(value).flatMap(matricesOf);
}
