export { createServer, type Server, type ServerOptions } from './app.ts';
export type { BrowserGuardOptions } from './browser-guard.ts';
export { type Clock, systemClock } from '../core/clock.ts';
export type { DashboardFile, DashboardFiles } from './dashboard-files.ts';
export {
  createKeyStore,
  type KeyInfo,
  type KeyRecord,
  type KeyRecords,
  type KeyScope,
  type KeyStore,
  type NewKey,
} from './keys/key-store.ts';
export type { ServerLimits } from './limits.ts';
export { createJsonLogger, type Logger } from './logger.ts';
export type { CatalogModel, ModelCatalog, PullStep } from './model-catalog.ts';
export {
  createModelHost,
  type ModelEntry,
  type ModelHost,
  type ModelHostOptions,
} from '../runtime/requests/model-host.ts';
export type { TraceContext } from '../runtime/requests/caller.ts';
export type { Span, Tracer } from '../runtime/requests/tracing.ts';
