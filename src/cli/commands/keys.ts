import { defaultKeyFolder, openKeyFolder } from '../../node/server/key-folder.ts';
import { createKeyStore, KEY_SCOPES, type KeyScope, type KeyStore } from '../../server/keys/key-store.ts';
import type { CommandContext, CommandRunner, HelpParts } from '../command.ts';
import type { Flag } from '../flags.ts';
import { unknownAction } from '../memory/action.ts';
import { dayOf } from '../memory/show.ts';
import { usageError } from '../usage-error.ts';
import { RuvLLMError } from '../../core/errors.ts';

export const KEYS_FLAGS: readonly Flag[] = [
  {
    name: '--scope',
    value: KEY_SCOPES.join('|'),
    isList: true,
    description: 'permission of the key (repeatable); default inference',
  },
  { name: '--tenant', value: 'name', description: 'tenant of the key; default: the name of the key' },
];

export const KEYS_HELP: HelpParts = {
  actions: [
    { name: 'create', args: '<name>', description: 'create a key; its secret is shown only once' },
    { name: 'list', args: '', description: 'list all keys, including revoked ones, without secrets' },
    { name: 'revoke', args: '<id>', description: 'revoke a key permanently; a running server rejects it immediately' },
  ],
};

type Action = (store: KeyStore, context: CommandContext) => Promise<void> | void;

const ACTIONS: Readonly<Record<string, Action>> = {
  async create(store, { output, values, args }) {
    const name = requireName(args[1], 'create');
    const scopes = (values['--scope'] as string[] | undefined) ?? ['inference'];
    const invalid = scopes.find((scope) => !(KEY_SCOPES as readonly string[]).includes(scope));
    if (invalid !== undefined) {
      throw usageError(`--scope must be one of ${KEY_SCOPES.join(', ')}, got ${JSON.stringify(invalid)}`, '--scope');
    }
    const tenant = (values['--tenant'] as string | undefined) ?? name;
    const { key, token } = await store.create({ name, tenant, scopes: scopes as KeyScope[] });
    output.document({ ...key, token });
    output.note(`created key ${key.id} of tenant ${tenant} with scope ${key.scopes.join(', ')}; shown only once:`);
    output.lines(token);
  },
  list(store, { output }) {
    const keys = store.list();
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
  revoke(store, { output, args }) {
    const id = requireName(args[1], 'revoke');
    const key = store.revoke(id);
    if (key === null) throw new RuvLLMError('not_found', `key ${JSON.stringify(id)} not found`, { data: { id } });
    output.document(key);
    output.note(`revoked key ${id}`);
  },
};

/** Creates, lists and revokes API keys; a running server reads them on the next request. */
export const keys: CommandRunner = async (context) => {
  const action = context.args[0]!;
  if (!Object.hasOwn(ACTIONS, action)) throw unknownAction('keys', action, ACTIONS);
  await ACTIONS[action]!(
    createKeyStore(openKeyFolder(defaultKeyFolder()), () => Date.now()),
    context,
  );
};

function requireName(name: string | undefined, action: string): string {
  if (name !== undefined && name !== '') return name;
  throw usageError(`keys ${action} requires ${action === 'revoke' ? 'a key id' : 'a name'}`);
}
