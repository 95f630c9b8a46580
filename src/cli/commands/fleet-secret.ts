import { MIN_SECRET_CHARS } from '../../core/min-secret-chars.ts';
import type { CommandContext } from '../command.ts';
import { fillValues } from '../flags.ts';
import { usageError } from '../usage-error.ts';
import { FLEET_SECRET_FLAG } from './fleet-secret-flag.ts';

/** Null: none was given. Errors show its length only. */
export function readFleetSecret({ values, io }: Pick<CommandContext, 'values' | 'io'>): string | null {
  const secret = fillValues([FLEET_SECRET_FLAG], values, io.environment)['--fleet-secret'] as string | undefined;
  if (secret === undefined) return null;
  if (secret.length >= MIN_SECRET_CHARS) return secret;
  const message = `--fleet-secret has ${secret.length} characters; at least ${MIN_SECRET_CHARS} are required, such as those of: openssl rand -hex 32`;
  throw usageError(message, '--fleet-secret');
}
