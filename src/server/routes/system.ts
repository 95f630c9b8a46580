import { displayNameOf } from '../model-name.ts';
import { refusal } from '../errors.ts';
import { json, type RouteCodes } from '../route.ts';
import type { Services } from '../services.ts';

/** Fields that clients of llama-server read. */
function describeFirstModel({ models, version }: Services): object {
  const first = models.list().find(({ model }) => model !== null);
  if (first === undefined) return {};
  const { maxContext, sampling, canSeeImages } = first.model!.modelInfo();
  const { temperature, topK, topP, minP, repetitionPenalty } = sampling;
  return {
    build_info: `ruvllm ${version}`,
    model_alias: first.id,
    modalities: { vision: canSeeImages, audio: false },
    default_generation_settings: {
      n_ctx: maxContext,
      params: { temperature, top_k: topK, top_p: topP, min_p: minP, repeat_penalty: repetitionPenalty },
    },
  };
}

/** Health, metrics and state of the server. */
export const routes = {
  'GET /health': {
    summary:
      'Whether the server can answer: 503 while the first model or adapters of the fleet are loading, a stalled or crashed engine is replaced or the server shuts down; `degraded` lists degraded parts, `preparing` parts that follow.',
    handle({ services }) {
      const { models } = services;
      if (services.admission.isLeaving) return json({ status: 'shutting down' }, 503);
      // Later loads, after an idle time, are no reason to send clients elsewhere.
      const isLoading = !models.hasLoaded && models.list().some(({ state }) => state === 'loading');
      if (isLoading) return json({ status: 'loading model' }, 503);
      const lost = models.list().find(({ loss }) => loss !== null);
      if (lost !== undefined) return json({ status: `replacing a ${lost.loss} engine` }, 503);
      if (services.fleet?.releases?.isStarting === true) return json({ status: 'loading adapters of the fleet' }, 503);
      // Still 200, because the server works. The reasons contain paths and addresses: they are in the log.
      const parts = [...new Set(services.problems().map(({ part }) => part))];
      const preparing = services.preparing().map(({ part, phase, doneBytes, totalBytes }) => ({
        part,
        phase,
        done_bytes: doneBytes,
        total_bytes: totalBytes,
      }));
      return json({
        status: 'ok',
        ...(parts.length > 0 ? { degraded: parts } : {}),
        ...(preparing.length > 0 ? { preparing } : {}),
      });
    },
  },
  'GET /metrics': {
    summary: 'Metrics in the text format of Prometheus.',
    handle: async ({ services }) =>
      new Response(await services.metrics.write(services), {
        headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
      }),
  },
  'GET /props': {
    summary: "Version, limits and models, and the default sampling of the first loaded model in llama-server's format.",
    handle: ({ services }) =>
      json({
        version: services.version,
        started: Math.floor(services.startedMs / 1000),
        is_open: services.guard.isOpen,
        limits: services.limits,
        ...describeFirstModel(services),
        models: services.models.list().map((status) => {
          const { id, aliases, state, error, model, sampling } = status;
          // Paths of files stay private.
          const { path: _path, ...info } = model?.modelInfo() ?? { path: null };
          const displayName = displayNameOf(status, services);
          return { id, displayName, aliases, state, error, sampling, info: model === null ? null : info };
        }),
      }),
  },
  'GET /slots': {
    summary: 'Current work of each loaded engine.',
    async handle({ services }) {
      const loaded = services.models.list().filter(({ model }) => model !== null);
      const slots = loaded.map(async ({ id, model }) => ({ model: id, ...(await model!.stats()) }));
      return json({ num_requests: services.admission.numRequests, slots: await Promise.all(slots) });
    },
  },
  'POST /slots/:id': {
    summary: "llama-server's `save`, `restore` and `erase`: not supported, because the prefix cache does it by itself.",
    query: { action: { schema: { type: 'string' } } },
    handle() {
      const message =
        'there are no slots to save or restore: prompts stay in the prefix cache without a request for it, and with ' +
        '"ruvllm serve --kv-spill FOLDER" also after a restart; send the same prompt again';
      throw refusal(501, 'unsupported', message);
    },
  },
} satisfies RouteCodes;
