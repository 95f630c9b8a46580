import { formatCount, formatCountOf } from '../../format/numbers.ts';

export const live = {
  title: 'Live',
  subtitle: 'Running and queued requests, throughput and cache use, updated every second.',
  loading: 'Waiting for the server',
  reconnecting: 'Reconnecting every 2 s.',
  reconnectingStale: 'Reconnecting every 2 s; showing the last values received.',
  silence: (seconds: string) => `No update from the server for ${seconds} s.`,
  closing: 'The server is shutting down: running requests may finish, new requests are rejected.',
  requests: 'Requests',
  queued: (count: number) => `${formatCount(count)} queued`,
  hidden: (count: number) => `${formatCount(count)} of other tenants`,
  batchSize: 'Batch size',
  generatedRate: 'Generated tokens/s',
  promptRate: 'Prompt tokens/s',
  allModels: 'all models',
  throughput: 'Throughput',
  tokensPerSecond: 'Tokens/s',
  throughputChart: 'Generated and prompt tokens per second',
  generated: 'generated',
  prompt: 'prompt',
  load: 'Load',
  batchAndQueue: 'Batch and queue',
  loadChart: 'Requests in the batch and in the queue',
  batch: 'batch',
  queue: 'queue',
  noRequests: 'No running requests',
  requestsTable: 'Running and queued requests',
  columns: {
    request: 'Request',
    tenant: 'Tenant',
    model: 'Model',
    node: 'Node',
    state: 'State',
    prompt: 'Prompt',
    cached: 'Cached',
    generated: 'Generated',
    rate: 'Tokens/s',
    elapsed: 'Elapsed',
  },
  states: { loading: 'loading model', prompt: 'prompt', generating: 'generating' },
  filters: 'Filters',
  all: 'all',
  noMatches: 'No running requests match these filters',
  range: 'Time range',
  since: 'since ',
  ranges: { recent: '5 min', hour: '1 h' },
  memoryAndCache: 'Memory budget and cache hits',
  memoryChart: 'Memory in use as a share of the budget, and prefix cache hits of the last minute',
  budgetUse: 'memory budget',
  cacheHits: 'cache hits',
  answers: 'Answers in the last minute',
  answersChart: 'Answered and failed requests of the last minute, all models',
  answered: 'answered',
  failed: 'failed',
  /** Conditions that an operator should know of, with the limit from which on they are reported. */
  encoderFollows: (size: string) =>
    `The sentence encoder of the memory is being ${size === '' ? 'loaded' : `downloaded (${size})`}. Until it is there, searches find words only.`,
  encoderUnavailable: (reason: string) =>
    `The sentence encoder of the memory is unavailable${reason === '' ? '' : `: ${reason}`}. The next start tries again.`,
  alerts: {
    queueLength: {
      title: 'Long queue',
      detail: (count: string, limit: string) => `${count} requests are queued (alert from ${limit}).`,
    },
    firstTokenWait: {
      title: 'Slow first token',
      detail: (time: string, limit: string) =>
        `A request has been waiting for its first token for ${time} (alert from ${limit}).`,
    },
    memoryBudget: {
      title: 'Memory budget exhausted',
      detail: (model: string, share: string, limit: string) =>
        `Running requests hold ${share} of the memory budget of ${model} (alert from ${limit}). New requests wait.`,
    },
    errorShare: {
      title: 'Requests fail',
      detail: (share: string, count: string, window: string, limit: string) =>
        `${share} of ${count} requests failed in the last ${window} (alert from ${limit}).`,
    },
    memoryDegraded: {
      title: 'Memory degraded',
      detail:
        'The memory cannot be written, lost data or has damaged records. The log has the reason; ruvllm memory check finds all damage.',
    },
    keysDamaged: {
      title: 'API keys refused',
      detail: (count: string) =>
        `${count} API key records are damaged or missing; their keys are refused. The log names the files.`,
    },
    backupFailed: {
      title: 'Backup failed',
      detail: 'The last scheduled backup failed. The log has the reason.',
    },
    masterKeyDamaged: {
      title: 'Master key damaged',
      detail:
        'The file of the master key was damaged and moved aside. Data encrypted with it cannot be read until the key is put back.',
    },
    spillUnavailable: {
      title: 'KV spill unavailable',
      detail: 'KV pages and sessions are not stored on disk. The log has the reason.',
    },
    auditDropped: {
      title: 'Audit entries lost',
      detail: (count: string, window: string) =>
        `${count} audit entries were not written in the last ${window} (alert from 1).`,
    },
    spillFull: {
      title: 'Spill space full',
      detail: (model: string, share: string, limit: string) =>
        `Pages of ${model} on disk take ${share} of their limit (alert from ${limit}).`,
    },
    diskLow: {
      title: 'Disk almost full',
      detail: (free: string, limit: string) => `${free} are free for the data of the server (alert below ${limit}).`,
    },
  },
  models: 'Models',
  noModels: 'No models loaded',
  noModelsHint: 'The next request loads its model.',
  latency: 'Latency',
  latencyInLast: (seconds: string) => `Latency in the last ${seconds} s`,
  samples: 'Samples',
  firstToken: 'Time to first token',
  interToken: 'Inter-token latency',
  pool: 'Page pool',
  inUse: (used: string, budget: string) => `${used} of ${budget} in use`,
  of: ' of ',
  poolNote: (share: string, peak: string, sessions: string) =>
    ` (${share}), peak ${peak}; ${sessions} held by sessions`,
  tiers: {
    float: 'Full-precision pages',
    packed: 'Packed pages',
    adapters: 'Adapters',
    drafts: 'Earlier answers, for drafts',
    slack: 'Unused slab space',
  },
  pages: (count: number) => formatCountOf(count, 'page'),
  spilled: 'Spilled to disk',
  spillLimit: (limit: string) => `of ${limit}`,
  shared: 'Shared with other nodes',
  sharedPages: (read: number, written: number) =>
    `${formatCountOf(read, 'page')} read, ${formatCountOf(written, 'page')} written`,
  sharedFailures: (count: number, isSuspended: boolean) =>
    `${formatCountOf(count, 'failure')}${isSuspended ? ', suspended' : ''}`,
  cacheNote: (cache: { lookups: number; hitShare: string; savedTokens: number; evictions: number }) =>
    `Prefix cache: ${formatCountOf(cache.lookups, 'lookup')}, ${cache.hitShare} hits; ` +
    `${formatCountOf(cache.savedTokens, 'cached token')} reused; ${formatCountOf(cache.evictions, 'page')} evicted`,
  draftNote: (drafts: { accepted: number; share: string }) =>
    `Speculative decoding: ${formatCountOf(drafts.accepted, 'token')} guessed right, ${drafts.share} of all guesses`,
  prefixCache: 'Prefix cache',
  loadingPrefixes: 'Loading prefix cache',
  noPrefixes: 'The prefix cache is empty. Send a request to fill it.',
  prefixHint: (pageTokens: string) =>
    `Tokens run from left to right, ${pageTokens} per page; stronger colours mean more hits. ` +
    'Enter or a double click zooms in, Escape zooms out.',
  prefixesIncomplete: 'Showing only the most used prefixes.',
  zoomOut: 'Zoom out',
  prefixes: 'Cached prefixes',
  node: {
    tokens: 'Tokens',
    range: (count: string, start: string) => `${count}, starting at ${start}`,
    hits: 'Hits',
    lastUse: (hits: number, calls: number) =>
      `${formatCount(hits)}, ${calls === 0 ? 'the last just now' : `the last ${formatCountOf(calls, 'cache call')} ago`}`,
    size: 'Size',
    pages: (size: string, full: number, packed: number) =>
      `${size}: ${formatCountOf(full, 'full-precision page')}, ${formatCountOf(packed, 'packed page')}`,
    tenant: 'Tenant',
    adapter: (name: string) => `, adapter ${name}`,
    isSession: ', held by a session',
    summary: (tokens: number, size: string, hits: number, branches: number) =>
      [
        formatCountOf(tokens, 'token'),
        size,
        formatCountOf(hits, 'hit'),
        formatCountOf(branches, 'branch', 'branches'),
      ].join(', '),
  },
};
