import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { defaultMasterKeyPath } from '../../node/kept-state.ts';
import { defaultMemoryFolder } from '../../node/memory/default-folders.ts';
import { rotateMasterKey } from '../../node/memory/open-memory-store.ts';
import { expandHome } from '../../platform/node/files/paths.ts';
import { readOrCreateMasterKey } from '../../platform/node/sealing/master-key.ts';
import { type MasterSource, masterSourceOf } from '../../platform/node/sealing/master-source.ts';
import type { CommandContext } from '../command.ts';
import { usageError } from '../usage-error.ts';
import { foreignFlag } from '../actions.ts';
import { openClient } from './client.ts';
import { explainLock } from './explain-lock.ts';

/** Secrets come from files and variables, never from the command line, which other users can read. */
export async function rotateKey(context: CommandContext): Promise<void> {
  const { io, output, values } = context;
  for (const name of ['--tenant', '--model']) {
    if (values[name] !== undefined) throw foreignFlag(name, 'memory', 'rotate-key');
  }
  const place = (values['--memory'] as string | undefined) ?? defaultMemoryFolder();
  // A server, or all users of a database, keep the memory open.
  if (values['--url'] !== undefined || /^postgres(ql)?:\/\//.test(place)) return rotateOpen(context);
  const folder = resolve(expandHome(place));
  if (!existsSync(folder)) throw new RuvLLMError('not_found', `memory ${folder} not found`, { data: { path: folder } });
  const { environment } = io;
  const from = masterSourceOf(environment) ?? { key: readOrCreateMasterKey(defaultMasterKeyPath()) };
  const to = readNewKey(context);
  try {
    rotateMasterKey({ folder, from, to: to.source });
  } catch (error) {
    throw explainLock(error);
  }
  output.document({ folder, isRotated: true });
  output.lines(`${folder} is encrypted with the new key`);
  output.note(to.instruction);
}

async function rotateOpen(context: CommandContext): Promise<void> {
  const { output, values } = context;
  const { source, instruction } = readNewKey(context);
  const client = await openClient(context, { needsModel: false, canCreate: false });
  try {
    const input = 'key' in source ? { key: Buffer.from(source.key).toString('base64') } : source;
    await client.call('memory.rotate-key', input);
  } finally {
    await client.close();
  }
  output.document({ isRotated: true });
  const owner = values['--url'] === undefined ? 'the memory' : 'the memory of the server';
  output.lines(`${owner} is encrypted with the new key`);
  output.note(instruction);
}

function readNewKey({ io, values }: CommandContext): { source: MasterSource; instruction: string } {
  const { RUVLLM_NEW_MASTER_KEY: key, RUVLLM_NEW_PASSPHRASE: passphrase } = io.environment;
  const path = values['--new-key-file'] as string | undefined;
  if ([path, key, passphrase].filter((secret) => secret !== undefined).length !== 1) {
    throw usageError('memory rotate-key requires exactly one new key: --new-key-file, RUVLLM_NEW_MASTER_KEY or RUVLLM_NEW_PASSPHRASE', '--new-key-file'); // prettier-ignore
  }
  if (path !== undefined) {
    const file = resolve(expandHome(path));
    const instruction = `from now on, set RUVLLM_MASTER_KEY="$(base64 < ${file})"`;
    return { source: { key: readOrCreateMasterKey(file) }, instruction };
  }
  const source = masterSourceOf({ RUVLLM_MASTER_KEY: key, RUVLLM_PASSPHRASE: passphrase })!;
  const variable = key === undefined ? 'RUVLLM_PASSPHRASE' : 'RUVLLM_MASTER_KEY';
  return { source, instruction: `from now on, set ${variable} to the new value` };
}
