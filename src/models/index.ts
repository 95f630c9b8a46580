export { loadModel, type LoadModelOptions, type LoadProgress } from './load-model.ts';
export { kvPageBytes, numPagesWithin } from './kv-layout.ts';
export { chooseSplit, type ChosenSplit, type GpuLayers, type SplitWish } from './choose-split.ts';
export type { LayerSplitReport, SideBytes } from './layer-split.ts';
export { planModel, stateBytesOf, type ModelPlan } from './plan-model.ts';
export { architectures } from './registry.ts';
export type { DecoderShape, KvPageStore, LoadedModel, ModelLimits, StepBatch, StepSequence } from './types.ts';
