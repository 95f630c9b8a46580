export { loadModel, type LoadModelOptions, type LoadProgress } from './load-model.ts';
export { kvPageBytes, numPagesWithin } from './kv-layout.ts';
export { chooseSplit, type ChosenSplit, type GpuLayers, type SplitWish } from './choose-split.ts';
export { planModel, stateBytesOf, type ModelPlan } from './plan-model.ts';
export { architectures } from './registry.ts';
export type {
  DecoderShape,
  KvPageStore,
  LayerSplitReport,
  LoadedModel,
  ModelLimits,
  SideBytes,
  StepBatch,
  StepSequence,
} from './types.ts';
