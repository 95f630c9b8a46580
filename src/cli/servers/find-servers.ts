import type { CommandContext } from '../command.ts';
import { SERVE_ADDRESS } from '../config/serve-address.ts';
import { listServers } from './server-registry.ts';

/** A server that may run on this machine. */
export interface FoundServer {
  readonly url: string;
  readonly pid: number | null;
  /** The default address, where a server may or may not run. */
  readonly isGuess: boolean;
}

/** The server of --url, else registered servers, else the default address. */
export function findServers({ io, values }: Pick<CommandContext, 'io' | 'values'>): FoundServer[] {
  const urlFlag = values['--url'] as string | undefined;
  if (urlFlag !== undefined) return [{ url: urlFlag, pid: null, isGuess: false }];
  const servers = listServers();
  if (servers.length > 0) return servers.map(({ url, process }) => ({ url, pid: process.pid, isGuess: false }));
  const host = io.environment['RUVLLM_HOST'] || SERVE_ADDRESS.host;
  const port = io.environment['RUVLLM_PORT'] || String(SERVE_ADDRESS.port);
  return [{ url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`, pid: null, isGuess: true }];
}
