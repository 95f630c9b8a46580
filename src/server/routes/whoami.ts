import { allowedBy } from '../guard.ts';
import { json, type RouteCodes } from '../route.ts';
import { readQuery } from '../wire/query-fields.ts';

/** `GET /v1/whoami`: a page reads it before it shows anything. */
export const routes = {
  'GET /v1/whoami': {
    summary: 'Tenant and scopes of the key, and the enabled parts of the server.',
    query: {},
    handle({ request, caller, services }) {
      readQuery(request, {});
      const { keys, guard, version, startedMs, memory, learning, routing, catalog, models } = services;
      const key = caller.keyId === null ? null : (keys.list().find(({ id }) => id === caller.keyId) ?? null);
      const { read, inference: write, operate, download, admin } = allowedBy(caller.scopes);
      return json({
        object: 'whoami',
        key: key === null ? null : { id: key.id, name: key.name, created: Math.floor(key.createdMs / 1000) },
        tenant: caller.tenant,
        scopes: caller.scopes,
        allows: { read, write, operate, download: download && services.modelFiles !== null, admin },
        is_open: guard.isOpen,
        version,
        started: Math.floor(startedMs / 1000),
        parts: {
          memory: memory !== null,
          learning: learning !== null,
          routing: routing !== null,
          catalog: catalog !== null,
        },
        has_models: models.list().length > 0 || routing !== null,
        route_alias: routing?.config.alias ?? null,
      });
    },
  },
} satisfies RouteCodes;
