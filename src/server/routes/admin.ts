import { refusal } from '../errors.ts';
import { KEY_SCOPES, type KeyInfo } from '../keys/key-store.ts';
import { json, type RouteCodes } from '../route.ts';
import { choiceField, listField, readFields, requiredField, schemaOf, stringField } from '../wire/fields.ts';

const NEW_KEY = {
  name: requiredField(stringField(256, 1)),
  tenant: stringField(256, 1),
  scopes: listField(choiceField(KEY_SCOPES), KEY_SCOPES.length, 1),
} as const;

const writeKey = ({ id, name, tenant, scopes, createdMs, revokedMs }: KeyInfo) => ({
  id,
  object: 'api_key',
  name,
  tenant,
  scopes,
  created: Math.floor(createdMs / 1000),
  revoked: revokedMs === null ? null : Math.floor(revokedMs / 1000),
});

/** Keys and sessions. */
export const routes = {
  'GET /admin/keys': {
    summary: 'All keys, including revoked ones, without secrets.',
    handle: ({ services }) => json({ object: 'list', data: services.keys.list().map(writeKey) }),
  },
  'POST /admin/keys': {
    summary: 'Creates a key. Its token is only in this response.',
    body: schemaOf(NEW_KEY),
    handle: async ({ services, readBody }) => {
      const { name, tenant, scopes } = readFields(await readBody(), NEW_KEY);
      const { key, token } = await services.keys.create({
        name,
        tenant: tenant ?? name,
        scopes: scopes ?? ['inference'],
      });
      // An open server would ignore the new key.
      services.guard.requireKeys();
      return json({ ...writeKey(key), token }, 201);
    },
  },
  'DELETE /admin/keys/:id': {
    summary: 'Revokes a key permanently.',
    handle: ({ params, services }) => {
      const key = services.keys.revoke(params['id']!);
      if (key === null) throw refusal(404, 'key_not_found', `key ${JSON.stringify(params['id'])} not found`);
      return json(writeKey(key));
    },
  },
  'GET /admin/sessions/:tenant': {
    summary: 'The sessions of a tenant on every loaded model.',
    handle: ({ params, services }) => {
      const tenant = params['tenant']!;
      const data = services.models.list().flatMap(({ id, model }) =>
        (model?.sessions({ tenant }) ?? []).map(({ id: session, numTokens, numTurns, lastUsedMs }) => ({
          id: session,
          object: 'session',
          model: id,
          num_tokens: numTokens,
          num_turns: numTurns,
          last_used: Math.floor(lastUsedMs / 1000),
        })),
      );
      return json({ object: 'list', data });
    },
  },
  'DELETE /admin/sessions/:tenant/:id': {
    summary: 'Deletes a session on every loaded model.',
    handle: ({ params, services }) => {
      const { tenant, id } = params as { tenant: string; id: string };
      const deleted = services.models.list().map(({ model }) => model?.deleteSession(id, { tenant }) ?? false);
      if (deleted.includes(true)) return json({ id, object: 'session.deleted', deleted: true });
      throw refusal(404, 'session_not_found', `tenant ${JSON.stringify(tenant)} has no session ${JSON.stringify(id)}`);
    },
  },
} satisfies RouteCodes;
