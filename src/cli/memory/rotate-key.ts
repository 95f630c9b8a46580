import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { defaultMasterKeyPath } from '../../platform/node/kept-state.ts';
import { defaultMemoryFolder } from '../../platform/node/memory/open-memory.ts';
import { rotateMasterKey } from '../../platform/node/memory/open-memory-store.ts';
import { expandHome } from '../../platform/node/paths.ts';
import { readOrCreateMasterKey } from '../../platform/node/sealing/master-key.ts';
import { type MasterSource, masterSourceOf } from '../../platform/node/sealing/master-source.ts';
import type { CommandContext } from '../command.ts';
import type { Flag } from '../flags.ts';
import { usageError } from '../usage-error.ts';
import { openClient } from './client.ts';
import { explainLock } from './local-client.ts';

export const ROTATE_FLAGS: readonly Flag[] = [
  {
    name: '--new-key-file',
    value: 'file',
    description:
      '32 bytes, made when there is none; else RUVLLM_NEW_MASTER_KEY or RUVLLM_NEW_PASSPHRASE is the new one',
  },
];

/** Secrets come from files and variables, never from the line: others could read it. */
export async function rotateKey(context: CommandContext): Promise<void> {
  const { io, output, values } = context;
  for (const name of ['--tenant', '--model']) {
    if (values[name] !== undefined) throw usageError(`memory rotate-key has no ${name}`, name);
  }
  const place = (values['--memory'] as string | undefined) ?? defaultMemoryFolder();
  // Whoever has the memory open goes on: a server, or all who share a database.
  if (values['--url'] !== undefined || /^postgres(ql)?:\/\//.test(place)) return rotateOpen(context);
  const folder = resolve(expandHome(place));
  if (!existsSync(folder))
    throw new RuvLLMError('not_found', `there is no memory in ${folder}`, { data: { path: folder } });
  const { environment } = io;
  const from = masterSourceOf(environment) ?? { key: readOrCreateMasterKey(defaultMasterKeyPath()) };
  const to = readNewKey(context);
  try {
    rotateMasterKey({ folder, from, to: to.source });
  } catch (error) {
    throw explainLock(error, context);
  }
  output.document({ folder, isRotated: true });
  output.lines(`${folder} is opened by the new key only`);
  output.note(`from now on: ${to.usedBy}`);
}

async function rotateOpen(context: CommandContext): Promise<void> {
  const { output, values } = context;
  const { source, usedBy } = readNewKey(context);
  const client = await openClient(context, { needsModel: false, canCreate: false });
  try {
    const input = 'key' in source ? { key: Buffer.from(source.key).toString('base64') } : source;
    await client.call('memory.rotate-key', input);
  } finally {
    await client.close();
  }
  output.document({ isRotated: true });
  output.lines(
    `${values['--url'] === undefined ? 'the memory' : 'the memory of the server'} is opened by the new key only`,
  );
  output.note(`from now on: ${usedBy}`);
}

function readNewKey({ io, values }: CommandContext): { source: MasterSource; usedBy: string } {
  const { RUVLLM_NEW_MASTER_KEY: key, RUVLLM_NEW_PASSPHRASE: passphrase } = io.environment;
  const path = values['--new-key-file'] as string | undefined;
  const given = [path, key, passphrase].filter((one) => one !== undefined);
  if (given.length !== 1) {
    throw usageError('one new key is needed: --new-key-file, RUVLLM_NEW_MASTER_KEY or RUVLLM_NEW_PASSPHRASE', '--new-key-file'); // prettier-ignore
  }
  if (path !== undefined) {
    const file = resolve(expandHome(path));
    return { source: { key: readOrCreateMasterKey(file) }, usedBy: `RUVLLM_MASTER_KEY="$(base64 < ${file})"` };
  }
  const source = masterSourceOf({ RUVLLM_MASTER_KEY: key, RUVLLM_PASSPHRASE: passphrase })!;
  return { source, usedBy: key === undefined ? 'RUVLLM_PASSPHRASE with it' : 'RUVLLM_MASTER_KEY with it' };
}
