// The server's side of the bench: a separate process, so that its memory and event loop are isolated.
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { loadModel, type Model } from 'ruvllm';
import { listen, openKeyFolder } from 'ruvllm/node';
import {
  createKeyStore,
  createModelHost,
  createServer,
  type KeyRecords,
  type Server,
  systemClock,
} from 'ruvllm/server';
import { createInstantModel } from './instant-model.ts';
import type { Measured, ServedAnswer, ServedKind, ServedRequest } from './protocol.ts';

const RESOLUTION_MS = 1;
/** The bench is one fast client: none of its requests must be rejected for that. */
const LIMITS = { requestsPerMinute: 10_000_000, burst: 1_000_000, maxRequests: 4096, maxRequestsPerTenant: 4096 };
const NO_KEYS: KeyRecords = { get: () => null, put() {}, list: () => [] };
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
let model: Model | null = null;
let server: Server | null = null;

/** About as many bytes as the answers of the instant model. */
const PLAIN_ANSWER = {
  id: `chatcmpl-${'0'.repeat(36)}`,
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'bench',
  choices: [
    { index: 0, message: { role: 'assistant', content: 'ok', refusal: null }, logprobs: null, finish_reason: 'stop' },
  ],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, prompt_tokens_details: { cached_tokens: 0 } },
  system_fingerprint: 'ruvllm-0.0.0-none',
};

async function startPlain(): Promise<ServedAnswer> {
  const app = new Hono();
  app.post('/v1/chat/completions', async (context) => {
    const { messages } = await context.req.json<{ messages: unknown[] }>();
    return context.json({ ...PLAIN_ANSWER, created: messages.length });
  });
  const http: HttpServer = createHttpServer({ keepAliveTimeout: 60_000 }, getRequestListener(app.fetch));
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  return { port: (http.address() as AddressInfo).port };
}

async function startRuvLLM(loaded: Model, keyFolder: string | null): Promise<ServedAnswer> {
  const keys = createKeyStore(keyFolder === null ? NO_KEYS : openKeyFolder(keyFolder), () => Date.now());
  const entry = { id: 'bench', aliases: [], created: 1_700_000_000, sizeBytes: null, load: async () => loaded };
  server = createServer({
    version: '0.0.0',
    models: createModelHost({ entries: [entry], budgetBytes: null, clock: systemClock }),
    keys,
    isOpen: keyFolder === null,
    browsers: { hosts: ['127.0.0.1'], corsOrigins: [] },
    limits: LIMITS,
  });
  const { port } = await listen(server, { host: '127.0.0.1', port: 0 });
  if (keyFolder === null) return { port };
  const { token } = await keys.create({ name: 'bench', tenant: 'bench', scopes: ['inference'] });
  return { port, token };
}

async function start(what: ServedKind): Promise<ServedAnswer> {
  if (what.kind === 'plain') return startPlain();
  if (what.kind === 'echo') return startRuvLLM(createInstantModel(), what.keyFolder);
  const { path, numSequences, maxContext } = what;
  const kvCacheTokens = 2 * numSequences * maxContext;
  model = await loadModel(path, { maxContext, maxSequences: numSequences, kvCacheTokens, maxWaiting: 4096 });
  return startRuvLLM(model, null);
}

async function measure(collect: boolean): Promise<Measured> {
  if (collect) await setTimeout(20); // A stall is known when the next timer fires.
  const loopMaxMs = Math.max(0, delay.max / 1e6 - RESOLUTION_MS);
  // Memory held by the last round's callbacks is garbage only now.
  for (let round = collect ? 3 : 0; round > 0; round--) {
    globalThis.gc?.();
    await setTimeout(20);
  }
  if (collect) delay.reset(); // A collection is the bench's own stall.
  const { rss, heapUsed } = process.memoryUsage();
  const openRequests = server?.services.admission.numRequests ?? 0;
  return { rssBytes: rss, heapBytes: heapUsed, loopMaxMs, openRequests, engine: (await model?.stats()) ?? null };
}

async function work(request: ServedRequest): Promise<ServedAnswer> {
  if (request.do === 'start') return start(request.what);
  if (request.do === 'measure') return { measured: await measure(request.collect) };
  if (request.do === 'stop') {
    await model?.dispose();
    process.exit(0);
  }
  return {};
}

delay.enable();
process.on('message', (request: ServedRequest) => {
  work(request)
    .catch((error: unknown): ServedAnswer => ({ error: error instanceof Error ? error.stack! : String(error) }))
    .then((answer) => process.send!(answer));
});
process.on('disconnect', () => process.exit(1)); // The parent process is gone.
