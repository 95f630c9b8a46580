import { MIN_SECRET_CHARS } from '../../server/fleet/min-secret-chars.ts';
import type { CommandContext } from '../command.ts';
import { fillValues, type Flag } from '../flags.ts';
import { usageError } from '../usage-error.ts';

/** The secret that nodes and gateways of a fleet share. */
export const FLEET_SECRET_FLAG: Flag = {
  name: '--fleet-secret',
  value: 'text',
  isSecret: true,
  variable: 'RUVLLM_FLEET_SECRET',
  description:
    'secret of 32 or more characters that all nodes and gateways of a fleet share; see docs/scale.md (RUVLLM_FLEET_SECRET)',
};

/** Null: none was given. Errors show its length only. */
export function readFleetSecret({ values, io }: Pick<CommandContext, 'values' | 'io'>): string | null {
  const secret = fillValues([FLEET_SECRET_FLAG], values, io.environment)['--fleet-secret'] as string | undefined;
  if (secret === undefined) return null;
  if (secret.length >= MIN_SECRET_CHARS) return secret;
  const message = `--fleet-secret has ${secret.length} characters; at least ${MIN_SECRET_CHARS} are required, such as those of: openssl rand -hex 32`;
  throw usageError(message, '--fleet-secret');
}
