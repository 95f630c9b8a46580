import { refusal } from '../errors.ts';
import { createBlockStream } from '../fleet/block-stream.ts';
import { ASK_HEADER, isValidAsk } from '../fleet/fleet-ask.ts';
import type { FleetNode } from '../fleet/fleet-node.ts';
import { type Exchange, json, type RouteCodes } from '../route.ts';

/** The fleet, for gateways that know its secret; keys of users do not open these routes. */
function requireGateway({ request, services }: Exchange, path: string): { fleet: FleetNode; ask: string } {
  const { fleet, clock } = services;
  if (fleet === null) throw refusal(404, 'unknown_url', `${path} not found: this server belongs to no fleet`);
  const ask = request.headers.get(ASK_HEADER);
  if (ask !== null && isValidAsk(fleet.keys, path, clock.wallClock(), ask)) return { fleet, ask };
  const message = `${path} requires the signature of a gateway with the same fleet secret and clock`;
  throw refusal(403, 'not_in_fleet', message, { type: 'permission_error' });
}

export const routes = {
  'GET /fleet/state': {
    summary: 'For gateways of the same fleet: version, models with their hashes, and requests in progress, signed.',
    handle(exchange) {
      const { fleet, ask } = requireGateway(exchange, '/fleet/state');
      const { models, admission, version } = exchange.services;
      const state = JSON.stringify({
        epoch: fleet.epoch,
        version,
        numRequests: admission.numRequests,
        release: fleet.releases?.number ?? 0,
        models: models.list().map(({ id, aliases, model }) => ({
          id,
          aliases,
          modelHash: fleet.hashOf(id),
          adapters:
            model === null ? [] : model.adapters().flatMap(({ name, tenant }) => (tenant === null ? [name] : [])),
        })),
      });
      return json({ state, signature: fleet.keys.sign('state', `${ask} ${state}`) });
    },
  },
  'GET /fleet/events': {
    summary: 'For gateways of the same fleet: cached blocks and their changes as a stream of signed KV events.',
    handle(exchange) {
      const { fleet, ask } = requireGateway(exchange, '/fleet/events');
      const { clock, admission } = exchange.services;
      const { signal } = exchange.caller;
      const body = createBlockStream({ fleet, stream: ask, clock, signal, isClosed: () => admission.isLeaving });
      return new Response(body, {
        headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache, no-transform' },
      });
    },
  },
} satisfies RouteCodes;
