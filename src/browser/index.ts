import './no-eval.ts';

export type { ChatMessage, ToolCall } from '../chat/types.ts';
export { type ErrorCode, type ErrorData, RuvLLMError } from '../core/errors.ts';
export { type BrowserCapabilities, detectCapabilities } from '../platform/browser/capabilities.ts';
export { openDeviceKey, openPassphraseKey, type SealingKey } from '../platform/browser/sealing/sealing-key.ts';
export type { Memory, NewItem } from '../memory/memory.ts';
export type { Feedback } from '../learning/trajectories/feedback.ts';
export type { FeedbackReceipt } from '../runtime/learning/feedback-log.ts';
export type { Learning } from '../runtime/learning/learning.ts';
export type { OpenLearningOptions } from '../runtime/learning/open-learning.ts';
export type { Model } from '../runtime/model.ts';
export type { ModelProgress } from '../runtime/model-config.ts';
export type { BrowserSpillConfig } from './kv-spill.ts';
export { type BrowserModelConfig, loadModel } from './load-model.ts';
export {
  listModels,
  type ModelSource,
  removeModel,
  type StoredModel,
  storeModel,
  type StoreModelOptions,
} from './model-library.ts';
export { openLearning } from './lazy-learning.ts';
export { type BrowserMemoryOptions, openMemory } from './open-memory.ts';
