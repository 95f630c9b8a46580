import { defaultKeyFolder, openKeyFolder } from '../../platform/node/key-folder.ts';
import { createKeyStore, KEY_SCOPES, type KeyScope, type KeyStore } from '../../server/keys/key-store.ts';
import type { CommandContext, CommandRunner, HelpParts } from '../command.ts';
import type { Flag } from '../flags.ts';
import { unknownAction } from '../memory/action.ts';
import { usageError } from '../usage-error.ts';
import { RuvLLMError } from '../../core/errors.ts';

export const KEYS_FLAGS: readonly Flag[] = [
  {
    name: '--scope',
    value: KEY_SCOPES.join('|'),
    isList: true,
    description: 'what the key allows (repeatable); default inference',
  },
  { name: '--tenant', value: 'name', description: 'whose requests it stands for; default the name of the key' },
];

export const KEYS_HELP: HelpParts = {
  actions: [
    { name: 'create', args: '<name>', description: 'make a key; its secret is shown this once' },
    { name: 'list', args: '', description: 'all keys, revoked ones included; no secrets' },
    { name: 'revoke', args: '<id>', description: 'end a key for good; a running server notices at once' },
  ],
};

type Action = (store: KeyStore, context: CommandContext) => Promise<void> | void;

const ACTIONS: Readonly<Record<string, Action>> = {
  async create(store, { output, values, args }) {
    const name = requireName(args[1], 'create');
    const scopes = (values['--scope'] as string[] | undefined) ?? ['inference'];
    const unknown = scopes.find((scope) => !(KEY_SCOPES as readonly string[]).includes(scope));
    if (unknown !== undefined) {
      throw usageError(`--scope must be one of ${KEY_SCOPES.join(', ')}, got ${JSON.stringify(unknown)}`, '--scope');
    }
    const tenant = (values['--tenant'] as string | undefined) ?? name;
    const { key, token } = await store.create({ name, tenant, scopes: scopes as KeyScope[] });
    output.document({ ...key, token });
    output.note(`key ${key.id} of tenant ${tenant} allows ${key.scopes.join(', ')}; it is shown this once:`);
    output.lines(token);
  },
  list(store, { output }) {
    const keys = store.list();
    output.document({ keys });
    if (keys.length === 0) return output.note('no keys; create one with: ruvllm keys create NAME');
    const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
    const rows = keys.map(({ id, name, tenant, scopes, createdMs, revokedMs }) => [
      id,
      name,
      tenant,
      scopes.join(','),
      day(createdMs),
      revokedMs === null ? '' : `revoked ${day(revokedMs)}`,
    ]);
    output.table(['ID', 'NAME', 'TENANT', 'SCOPES', 'CREATED', ''], rows);
  },
  revoke(store, { output, args }) {
    const id = requireName(args[1], 'revoke');
    const key = store.revoke(id);
    if (key === null) throw new RuvLLMError('not_found', `there is no key ${JSON.stringify(id)}`, { data: { id } });
    output.document(key);
    output.note(`key ${id} is revoked`);
  },
};

/** Creates, lists and revokes the API keys of the server; a running one notices with the next request. */
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
  throw usageError(`keys ${action} needs ${action === 'revoke' ? 'the id of a key' : 'a name'}`);
}
