import type { BrowserGuard } from './browser-guard.ts';
import type { Clock } from './clock.ts';
import type { FeedbackSink } from './feedback.ts';
import type { GenerationService } from './generation-service.ts';
import type { Memory } from '../memory/memory.ts';
import type { Routing } from '../runtime/routing/types.ts';
import type { Guard } from './guard.ts';
import type { LearningControl } from '../runtime/learning/operations/index.ts';
import type { KeyStore } from './keys/key-store.ts';
import type { ServerLimits } from './limits.ts';
import type { LiveRequests } from './live/live-requests.ts';
import type { Watchers } from './live/watchers.ts';
import type { Logger } from './logger.ts';
import type { ServerMetrics } from './metrics/server-metrics.ts';
import type { ModelCatalog } from './model-catalog.ts';
import type { ModelHost } from './model-host.ts';
import type { PullJobs } from './pull-jobs.ts';
import type { RequestLog } from './request-log.ts';
import type { ResponseStore } from './response-store.ts';
import type { TenantGate } from './tenant-gate.ts';

/** Everything a route may use. */
export interface Services {
  readonly version: string;
  readonly models: ModelHost;
  readonly generation: GenerationService;
  readonly keys: KeyStore;
  readonly guard: Guard;
  readonly browsers: BrowserGuard;
  readonly gate: TenantGate;
  readonly limits: ServerLimits;
  readonly metrics: ServerMetrics;
  readonly live: LiveRequests;
  readonly watchers: Watchers;
  /** Null: only the models it was started with. */
  readonly catalog: ModelCatalog | null;
  /** Null exactly where the catalog is. */
  readonly pulls: PullJobs | null;
  readonly requests: RequestLog;
  readonly responses: ResponseStore;
  readonly feedback: FeedbackSink;
  /** Null: the server runs without. */
  readonly memory: Memory | null;
  /** Null: nobody learns from what is said of answers. */
  readonly learning: LearningControl | null;
  /** Null: every request names its model. */
  readonly routing: Routing | null;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Milliseconds since 1970. */
  readonly startedMs: number;
}
