import type { Batches } from './batches/index.ts';
import type { BrowserGuard } from './browser-guard.ts';
import type { ChatStore } from './chats/chat-store.ts';
import type { Clock } from '../core/clock.ts';
import type { RequestPipeline } from '../runtime/requests/request-pipeline.ts';
import type { Memory } from '../runtime/lower-layers.ts';
import type { Routing } from '../runtime/routing/types.ts';
import type { FleetNode } from './fleet/fleet-node.ts';
import type { Guard } from './guard.ts';
import type { FeedbackLog } from '../runtime/learning/feedback-log.ts';
import type { LearningControl } from '../runtime/learning/operations/index.ts';
import type { KeyStore } from './keys/key-store.ts';
import type { ServerLimits } from './limits.ts';
import type { LiveRequests } from '../runtime/requests/live-requests.ts';
import type { LiveHistory } from './live/history.ts';
import type { Watchers } from './live/watchers.ts';
import type { Logger } from './logger.ts';
import type { McpAccess } from './mcp/access.ts';
import type { ToolOwner, ToolRecorder } from '../runtime/memory/tool-recorder.ts';
import type { Preparation, StateProblem } from './state-problems.ts';
import type { ServerMetrics } from './metrics/server-metrics.ts';
import type { ModelCatalog } from './model-catalog.ts';
import type { ModelFiles } from './model-files.ts';
import type { ModelLibrary } from './model-library.ts';
import type { ModelHost } from '../runtime/requests/model-host.ts';
import type { PullJobs } from './pull-jobs.ts';
import type { ObjectStore } from './stored/object-store.ts';
import type { AdapterScales } from '../runtime/requests/adapter-scales.ts';
import type { Admission } from '../runtime/requests/admission.ts';

/** Everything a route may use. */
export interface Services {
  readonly version: string;
  readonly nodeName: string;
  readonly models: ModelHost;
  readonly pipeline: RequestPipeline;
  readonly keys: KeyStore;
  readonly guard: Guard;
  readonly browsers: BrowserGuard;
  readonly admission: Admission;
  readonly limits: ServerLimits;
  readonly metrics: ServerMetrics;
  readonly live: LiveRequests;
  readonly history: LiveHistory;
  readonly watchers: Watchers;
  /** Null: models cannot be added. */
  readonly catalog: ModelCatalog | null;
  /** Null if `catalog` is null. */
  readonly pulls: PullJobs | null;
  /** Null: models have no names beside those they are served under. */
  readonly library: ModelLibrary | null;
  /** Null: files of models cannot be downloaded. */
  readonly modelFiles: ModelFiles | null;
  /** Null: adapters cannot be loaded from files. */
  readonly findAdapter: ((path: string) => Promise<string>) | null;
  /** Responses, conversations and chat completions. */
  readonly stored: ObjectStore;
  /** Null: no memory. */
  readonly chats: ChatStore | null;
  /** Null: no memory. */
  readonly batches: Batches | null;
  /** Adapters of requests that choose none. */
  readonly adapterScales: AdapterScales;
  /** Where feedback is stored; null without a memory. */
  readonly feedback: Pick<FeedbackLog, 'feedback' | 'receipt'> | null;
  /** Null: no memory. */
  readonly memory: Memory | null;
  /** Records the tool calls of a request in the audit log; null: no memory. */
  openTools(owner: ToolOwner): ToolRecorder | null;
  /** Null: models get no tools of MCP servers. */
  readonly mcp: McpAccess | null;
  /** Null: learning is off. */
  readonly learning: LearningControl | null;
  /** Null: no router. */
  readonly routing: Routing | null;
  /** Null: the server belongs to no fleet. */
  readonly fleet: FleetNode | null;
  /** Whether unknown fields of requests are rejected. */
  readonly isStrict: boolean;
  /** Whether requests for unknown models are answered by the first one. */
  readonly hasModelFallback: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Empty: all state is intact. */
  problems(): readonly StateProblem[];
  /** Empty: everything is ready. */
  preparing(): readonly Preparation[];
  /** Milliseconds since 1970. */
  readonly startedMs: number;
}
