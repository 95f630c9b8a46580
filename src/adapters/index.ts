export { affectsKv } from './affects-kv.ts';
export { ADAPTER_LIMITS, adapterBytes, createAdapter } from './create-adapter.ts';
export { isGgufAdapter, readGgufAdapter } from './gguf-adapter.ts';
export { type PeftCheckpoint, readPeftAdapter } from './peft-adapter.ts';
export { type PlacedFactors, type PlacementPlan, planPlacement, writePlacement } from './place-adapter.ts';
export { checkAdapter, siteOf, targetShape } from './target-shapes.ts';
export { ADAPTER_TARGETS, type Adapter, type AdapterBase, type AdapterTarget, type LowRankFactors } from './types.ts';
export { describeAdapterFile, type WriteAdapterOptions } from './write-adapter.ts';
