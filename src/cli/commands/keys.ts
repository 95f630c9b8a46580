import { RuvLLMError } from '../../core/errors.ts';
import { defaultKeyFolder, openKeyFolder } from '../../node/server/key-folder.ts';
import { createKeyStore, KEY_SCOPES, type KeyScope, type KeyStore } from '../../server/keys/key-store.ts';
import { actionCommand } from '../actions.ts';
import { defineFlags } from '../flags.ts';
import { dayOf } from '../memory/show.ts';
import { listServers } from '../servers/server-registry.ts';
import { usageError } from '../usage-error.ts';

/** A running server reads the keys on the next request. */
const openKeys = (): KeyStore => createKeyStore(openKeyFolder(defaultKeyFolder()), () => Date.now());

export const { flags, help, run } = actionCommand('keys', {
  create: {
    args: '<name>',
    description: 'create a key; its secret is shown only once',
    flags: defineFlags({
      [`--scope <${KEY_SCOPES.join('|')}>...`]: 'permission of the key (repeatable); default inference',
      '--tenant <name>': 'tenant of the key; default: the name of the key',
    }),
    async run({ output, values }, [name]) {
      const scopes = (values['--scope'] as string[] | undefined) ?? ['inference'];
      const invalid = scopes.find((scope) => !(KEY_SCOPES as readonly string[]).includes(scope));
      if (invalid !== undefined) {
        throw usageError(`--scope must be one of ${KEY_SCOPES.join(', ')}, got ${JSON.stringify(invalid)}`, '--scope');
      }
      const tenant = (values['--tenant'] as string | undefined) ?? name!;
      const { key, token } = await openKeys().create({ name: name!, tenant, scopes: scopes as KeyScope[] });
      output.document({ ...key, token });
      const servers = listServers();
      output.note(`created key ${key.id} of tenant ${tenant} with scope ${key.scopes.join(', ')}; shown only once:`);
      output.lines(token);
      if (servers.length > 0)
        output.note(`every request to ${servers.map(({ url }) => url).join(', ')} requires a key now`);
    },
  },
  list: {
    args: '',
    description: 'list all keys, including revoked ones, without secrets',
    run({ output }) {
      const store = openKeys();
      const keys = store.list();
      for (const problem of store.problems()) output.note(problem);
      output.document({ keys });
      if (keys.length === 0) return output.note('no keys; create one with: ruvllm keys create NAME');
      const rows = keys.map(({ id, name, tenant, scopes, createdMs, revokedMs }) => [
        id,
        name,
        tenant,
        scopes.join(','),
        dayOf(createdMs),
        revokedMs === null ? '' : `revoked ${dayOf(revokedMs)}`,
      ]);
      output.table(['ID', 'NAME', 'TENANT', 'SCOPES', 'CREATED', ''], rows);
    },
  },
  revoke: {
    args: '<id>',
    description: 'revoke a key permanently; a running server rejects it immediately',
    run({ output }, [id]) {
      const keys = openKeys();
      const key = keys.revoke(id!);
      if (key === null && keys.forget(id!)) {
        output.document({ id, isForgotten: true });
        return output.lines(`the record of ${id} is lost; it stays refused and is no longer reported`);
      }
      if (key === null) throw new RuvLLMError('not_found', `key ${JSON.stringify(id)} not found`, { data: { id } });
      output.document(key);
      output.note(`revoked key ${id}`);
    },
  },
});
