export type {
  Adapter,
  AdapterTarget,
  LowRankFactors,
  MergeInput,
  MergeOptions,
  MergeReport,
} from './adapters/index.ts';
export type { CallOutcome, ToolChoice } from './chat/tools/types.ts';
export type { ChatMessage, ToolCall } from './chat/types.ts';
export type { ErasedPart, ErasurePart, ErasureReport, ErasureSubject, ErasureTarget } from './core/erasure.ts';
export { type ErrorCode, type ErrorData, RuvLLMError } from './core/errors.ts';
export type { RepackCacheChoice } from './engine/protocol.ts';
export type { McpServerSettings } from './mcp/server-config.ts';
export type { UnusableTool } from './mcp/tool-list.ts';
export type { KernelChoice } from './kernels/contract.ts';
export type { EngineStats } from './engine/types.ts';
export { createAdapter, mergeAdapters } from './node/lazy-adapters.ts';
export { loadModel } from './node/lazy.ts';
export { trainEmbeddings } from './node/lazy-training.ts';
export type { TrainedEmbeddings, TrainEmbeddingsOptions, TrainEmbeddingsProgress } from './node/train-embeddings.ts';
export type { EmbeddingProjection } from './memory/embedder/projection.ts';
export type { EmbeddingPair, EmbeddingTrainingReport } from './learning/embedding-training/train-embeddings.ts';
export type { ProjectionTrainingOptions } from './learning/embedding-training/train-projection.ts';
export type { Figure, RetrievalRow } from './learning/evaluation/retrieval.ts';
export { openRouter } from './node/lazy-router.ts';
export type { KvCacheStats } from './kv-cache/kv-cache.ts';
export type { KvPacking } from './kv-cache/kv-policy.ts';
export type { SharedStats } from './kv-cache/shared-pages.ts';
export type { SharedStoreStats } from './kv-cache/shared-store.ts';
export type { SpillStats } from './kv-cache/types.ts';
export type { Pooling } from './engine/pooling.ts';
export type { Memory, MemoryOptions, NewItem } from './memory/memory.ts';
export type { AddedDocument, DocumentInfo, Documents, NewDocument, StoredChunk } from './memory/documents/documents.ts';
export type { AgentMemory, FactReport } from './memory/agents/agent-memory.ts';
export type { AgentContext, AgentQuery, AgentSource } from './memory/agents/recall.ts';
export type { AgentScope, Episode, Fact, NewEpisode, Statement } from './memory/agents/types.ts';
export type { CacheableTool, CachedCall, ToolCache, ToolCacheStats, ToolCallOptions, ToolCallResult } from './memory/tool-cache/tool-cache.ts'; // prettier-ignore
export type { PackedSource, SourcePosition } from './memory/search/pack.ts';
export type { MemoryQuery, MemorySearchResult } from './memory/search/search.ts';
export { openLearning } from './node/learning/lazy.ts';
export type { OpenLearningOptions } from './node/learning/open-learning.ts';
export { openMcpServers } from './node/mcp/lazy.ts';
export { openMemory } from './node/memory/lazy.ts';
export type { OpenMemoryOptions } from './node/memory/open-memory.ts';
export type {
  AdapterInfo,
  AdapterWish,
  LoadAdapterOptions,
  ScaledAdapter,
  StageAdapterOptions,
  StagedAdapter,
} from './runtime/adapters.ts';
export type { ChatOptions, ReasoningWish, ToolDefinition } from './runtime/chat-options.ts';
export type { EmbedOptions } from './runtime/embed-options.ts';
export type { EmbedInput, EmbedResult } from './runtime/embeddings.ts';
export type { FillIn, FillInFile } from './runtime/fill-in.ts';
export type { EncodeOptions, GenerateOptions } from './runtime/generate-options.ts';
export type {
  FinishReason,
  GenerateChunk,
  GenerateResult,
  GenerateSummary,
  Timings,
  ToolCallDelta,
  Usage,
} from './runtime/generation-types.ts';
export type { KvSharedConfig, KvSharedS3Config } from './runtime/kv-shared-option.ts';
export type { KvSpillConfig } from './runtime/kv-spill-option.ts';
export type { Feedback } from './learning/trajectories/feedback.ts';
export type { FeedbackReceipt } from './runtime/learning/feedback-log.ts';
export type { Learning } from './runtime/learning/learning.ts';
export type { DeviceType, ModelConfig, ModelProgress } from './runtime/model-config.ts';
export type { MemoryWish } from './runtime/memory/memory-wish.ts';
export type { RecallReport } from './runtime/memory/types.ts';
export type { ModelInfo } from './runtime/model-info.ts';
export { type ModelSize, modelSizeOf } from './runtime/model-size.ts';
export type { CachedTokens, CachedTokensOptions, Model, TenantOptions } from './runtime/model.ts';
export { bytesPerElement, type Precision } from './runtime/precision.ts';
export type { Prompt, PromptMessage } from './runtime/prompt.ts';
export type {
  Attempt,
  CheckedAnswer,
  ErrorPatterns,
  Problem,
  Reflection,
  ReflectionEnding,
  ReflectionReport,
} from './runtime/reflection/types.ts';
export type { RerankMethod, RerankOptions } from './runtime/rerank-options.ts';
export type { RankedDocument, RerankResult } from './runtime/rerank.ts';
export type { RequestLimits } from './runtime/requests/limits.ts';
export type { RoutedOptions, RoutedResult, Router, RouterOptions } from './runtime/requests/router.ts';
export type { RouteSummary, SamplingChoice } from './runtime/routing/types.ts';
export type { Session, SessionOptions } from './runtime/sessions/session.ts';
export type { SessionInfo } from './runtime/sessions/session-table.ts';
export type { McpServers, McpToolsOptions, UnusableMcpTool } from './runtime/tools/mcp-servers.ts';
export type { FunctionTool, RunnableTool, ToolOutcome, ToolOutput } from './runtime/tools/runnable-tool.ts';
export type { RunToolsOptions, RunToolsResult, ToolCallReport } from './runtime/tools/run-tools.ts';
export type { ToolLimits } from './runtime/tools/tool-limits.ts';
export type { FinishedToolCall, ToolCallRequest, ToolEvent } from './runtime/tools/tool-loop.ts';
export type { GenerateParams } from './sampling/generate-params.ts';
export type { SampledToken, TokenLogprob } from './sampling/types.ts';
export type { Tokenizer } from './tokenizers/types.ts';
