import type { KvSharedConfig } from '../../runtime/kv-shared-option.ts';
import { kvSharedOption } from '../../runtime/kv-shared-option.ts';
import type { SharedTier } from '../../runtime/load-model.ts';
import type { CommandContext } from '../command.ts';
import { withFlagNamesAsync } from '../flags.ts';
import { requiresError } from '../usage-error.ts';
import { FLEET_SECRET_FLAG } from './fleet-secret-flag.ts';
import { KV_SHARED_FLAGS } from './kv-shared-flags.ts';

/** The storage that models share, for work that no model does. */
export async function openKvShared(
  config: KvSharedConfig,
  environment: CommandContext['io']['environment'],
): Promise<SharedTier> {
  const { openSharedTier } = await import('../../node/shared-tier.ts');
  return openSharedTier(kvSharedOption(config, 'kvShared')!, environment);
}

/** Null: the node shares no pages. Checks place and credentials before anything is loaded. */
export async function readKvShared(
  { values, io }: CommandContext,
  secret: string | null,
): Promise<KvSharedConfig | null> {
  const place = values['--kv-shared'] as string | undefined;
  if (place === undefined) {
    const lonely = ['--kv-shared-limit', '--kv-shared-timeout'].find((name) => values[name] !== undefined);
    if (lonely !== undefined) throw requiresError(lonely, '--kv-shared');
    return null;
  }
  if (secret === null) throw requiresError('--kv-shared', FLEET_SECRET_FLAG.name);
  const limitBytes = values['--kv-shared-limit'] as number | undefined;
  const seconds = values['--kv-shared-timeout'] as number | undefined;
  const config: KvSharedConfig = {
    place,
    secret,
    ...(limitBytes === undefined ? {} : { limitBytes }),
    ...(seconds === undefined ? {} : { timeoutMs: seconds }),
  };
  await withFlagNamesAsync(KV_SHARED_FLAGS, values, () => openKvShared(config, io.environment));
  return config;
}
