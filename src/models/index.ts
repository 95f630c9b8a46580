export { loadModel, type LoadModelOptions, type LoadProgress } from './load-model.ts';
export { planModel, type ModelPlan } from './plan-model.ts';
export { architectures } from './registry.ts';
export type { DecoderShape, LoadedModel, ModelLimits, StepBatch, StepSequence } from './types.ts';
