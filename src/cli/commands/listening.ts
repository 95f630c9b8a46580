// Shared by the commands that listen on a socket.
import { createJsonLogger, type Logger } from '../../server/logger.ts';
import type { CommandContext } from '../command.ts';
import { fillValues, type FlagValues } from '../flags.ts';
import { toSafeJson } from '../safe-text.ts';
import { requireRange, usageError } from '../usage-error.ts';
import { API_KEY_FLAG } from './serve-flags.ts';

/** Anyone can try to guess a key that other machines or pages of other sites can use. */
const MIN_OPEN_KEY_CHARS = 16;

export function readFixedKeys({ values, io }: CommandContext, isLocal: boolean): readonly string[] {
  const keys = (fillValues([API_KEY_FLAG], values, io.environment)['--api-key'] as string[] | undefined) ?? [];
  const minChars = isLocal ? 1 : MIN_OPEN_KEY_CHARS;
  if (keys.every((key) => key.length >= minChars && /^[\x21-\x7e]+$/.test(key))) return keys;
  const message = `--api-key requires ${minChars} or more printable characters without spaces; ruvllm keys create NAME makes one`;
  throw usageError(message, '--api-key');
}

export function readAddress(
  values: FlagValues,
  defaults: { host: string; port: number },
): { host: string; port: number } {
  const host = (values['--host'] as string | undefined) ?? defaults.host;
  const port = requireRange('--port', (values['--port'] as number | undefined) ?? defaults.port, 0, 65_535);
  if (host === '') throw usageError('--host must not be empty', '--host');
  return { host, port };
}

/** Whether only this machine can reach the host. A name other than `localhost` may resolve to any address. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

export function createCommandLogger({ io, values }: CommandContext): Logger {
  const logger = createJsonLogger((line) => io.stderr.write(`${toSafeJson(JSON.parse(line))}\n`), Date.now);
  const isVerbose = values['--log'] === true;
  return {
    log(level, event, fields) {
      if (isVerbose || level !== 'info') logger.log(level, event, fields);
    },
  };
}

export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}
