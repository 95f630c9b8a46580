import { refusal } from '../errors.ts';
import { watchResponse } from '../live/watch-response.ts';
import type { PullJob, PullJobs } from '../pull-jobs.ts';
import { type Exchange, json, type RouteCodes } from '../route.ts';
import type { Services } from '../services.ts';
import type { SseMessage } from '../sse.ts';
import { readFields, requiredField, schemaOf, stringField } from '../wire/fields.ts';
import { readQuery } from '../wire/query-fields.ts';
import { requireCatalog } from './model-admin.ts';

const PULL = { model: requiredField(stringField(512, 1)) };

const writePull = ({ id, reference, state, step, bytesPerSecond, startedMs, endedMs, error }: PullJob) => ({
  id,
  object: 'pull',
  reference,
  state,
  phase: step?.phase ?? null,
  item: step?.item ?? null,
  done_bytes: step?.doneBytes ?? 0,
  total_bytes: step?.totalBytes ?? null,
  bytes_per_second: bytesPerSecond === null ? null : Math.round(bytesPerSecond),
  started: Math.floor(startedMs / 1000),
  ended: endedMs === null ? null : Math.floor(endedMs / 1000),
  error,
});

function jobsOf(services: Services): PullJobs {
  requireCatalog(services);
  return services.pulls!;
}

function requirePull(job: PullJob | null, id: string): PullJob {
  if (job !== null) return job;
  throw refusal(404, 'pull_not_found', `pull ${JSON.stringify(id.slice(0, 200))} not found`);
}

/** Downloads of models while the server runs. */
export const routes = {
  'POST /admin/models/pull': {
    summary: "Downloads a model's file; the progress is at /admin/models/pulls/ID/events.",
    body: schemaOf(PULL),
    async handle({ services, readBody }) {
      const jobs = jobsOf(services);
      const { model } = readFields(await readBody(), PULL);
      return json(writePull(jobs.start(model)), 202);
    },
  },
  'GET /admin/models/pulls': {
    summary: 'Recent pulls, newest first.',
    query: {},
    handle({ request, services }) {
      readQuery(request, {});
      return json({ object: 'list', data: jobsOf(services).list().map(writePull) });
    },
  },
  'GET /admin/models/pulls/:id/events': {
    summary: 'Progress of a pull as a stream of events, until it ends.',
    query: {},
    handle: watch,
  },
  'DELETE /admin/models/pulls/:id': {
    summary: 'Cancels a pull; the next one resumes from the downloaded part.',
    query: {},
    handle({ request, params, services }) {
      readQuery(request, {});
      return json(writePull(requirePull(jobsOf(services).cancel(params['id']!), params['id']!)));
    },
  },
} satisfies RouteCodes;

function watch({ request, params, caller, services }: Exchange): Response {
  readQuery(request, {});
  const jobs = jobsOf(services);
  const id = params['id']!;
  requirePull(jobs.find(id), id);
  return watchResponse({ caller, services }, (signal) => messagesOf(jobs.watch(id, signal)));
}

async function* messagesOf(
  jobs: AsyncGenerator<PullJob, void, undefined>,
): AsyncGenerator<SseMessage, void, undefined> {
  for await (const job of jobs) yield { event: 'pull', data: JSON.stringify(writePull(job)) };
}
