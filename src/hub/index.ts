export type { CachedModel } from './cached-models.ts';
export type { DefaultChoice, FailedAttempt } from './default-choice.ts';
export { DEFAULT_MODELS, type DefaultModel } from './default-models.ts';
export type { GgufSummary } from './gguf-summary.ts';
export {
  createHub,
  type DefaultModelOptions,
  type Hub,
  type ModelDetails,
  type PullOptions,
  type ResolveModelOptions,
} from './hub.ts';
export type { HubOptions } from './hub-options.ts';
export type { PulledModel } from './huggingface-pull.ts';
export type { HubFiles, HubPlatform } from './platform.ts';
export type { CardFigures } from './model-card.ts';
export type { PushedModel, PushOptions, PushProgress } from './push-model.ts';
export type { PullProgress } from './pull-context.ts';
export { listModelNames, shortNameOf } from './model-names.ts';
export { formatModelReference, parseModelReference, type ModelReference } from './reference.ts';
export type { RemovedModel } from './remove-model.ts';
export type { SavedModel, SavedModels } from './saved-models.ts';
