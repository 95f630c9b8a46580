import type { Caller } from '../caller.ts';
import { writeHistory } from '../live/history.ts';
import { takeSnapshot } from '../live/snapshot.ts';
import { watchResponse } from '../live/watch-response.ts';
import { waitFor } from '../../core/abort.ts';
import { json, type RouteCodes } from '../route.ts';
import type { Services } from '../services.ts';
import type { SseMessage } from '../sse.ts';
import { queryInteger, readQuery } from '../wire/query-fields.ts';

const EVENT_OPTIONS = { interval_ms: queryInteger(250, 60_000) };
const DEFAULT_INTERVAL_MS = 1000;

/** The live view, once and as a stream. */
export const routes = {
  'GET /admin/live': {
    summary: 'Current requests, batch, rates, latency percentiles of the last minute, and the page pool by tier.',
    query: {},
    async handle({ request, caller, services }) {
      readQuery(request, {});
      return json(await takeSnapshot(services, caller));
    },
  },
  'GET /admin/live/history': {
    summary:
      'The last hour of all models in samples of five seconds: rates, batch, queue, memory budget and prefix cache; answered and failed requests since the start.',
    query: {},
    handle({ request, services }) {
      readQuery(request, {});
      return json(writeHistory(services.history));
    },
  },
  'GET /admin/live/events': {
    summary: 'The same as a stream of events, by default one per second.',
    query: EVENT_OPTIONS,
    handle({ request, caller, services }) {
      const { interval_ms: intervalMs } = readQuery(request, EVENT_OPTIONS);
      return watchResponse({ caller, services }, (signal) =>
        snapshots(services, caller, intervalMs ?? DEFAULT_INTERVAL_MS, signal),
      );
    },
  },
} satisfies RouteCodes;

/** A key can be revoked, or the server shut down, while a client watches: checked before each snapshot. */
async function* snapshots(
  services: Services,
  caller: Caller,
  intervalMs: number,
  signal: AbortSignal,
): AsyncGenerator<SseMessage, void, undefined> {
  const { clock, admission, guard } = services;
  while (!signal.aborted && !admission.isLeaving) {
    guard.checkCaller(caller);
    yield { event: 'live', data: JSON.stringify(await takeSnapshot(services, caller)) };
    await waitFor(signal, (wake) => clock.setTimer(intervalMs, wake));
  }
}
