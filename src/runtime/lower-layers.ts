/** The parts of the layers below the runtime that its API contains. The server imports them from here. */
export type { ChatMessage, MessageImage, ToolCall } from '../chat/types.ts';
export type { Federation } from '../learning/federation/federation.ts';
export { type EngineStats, MIN_PRIORITY as LOWEST_PRIORITY, type PrefixReport } from '../engine/types.ts';
export type { BlockEvent } from '../kv-cache/block-log.ts';
export type { SonaStats } from '../learning/sona/sona.ts';
export type { McpServerConfig, McpServerPool, OfferedTool } from '../mcp/server-pool.ts';
export type { McpTransport } from '../mcp/transport.ts';
export type { BatchRecord, BatchRecords, LineResult } from '../memory/batches/batch-records.ts';
export { DOCUMENT_LIMITS } from '../memory/documents/limits.ts';
export type { Memory } from '../memory/memory.ts';
export { MAX_TRAJECTORY_TEXT } from '../memory/schemas/text-lengths.ts';
export { STATE_TENANT } from '../memory/state-tenant.ts';
export type { StoredHead, StoredRecords } from '../memory/stored/stored-records.ts';
export type { SampledToken, TokenLogprob } from '../sampling/types.ts';
export type { Tokenizer } from '../tokenizers/types.ts';
