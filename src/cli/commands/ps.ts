import { RuvLLMError } from '../../core/errors.ts';
import type { CommandContext, CommandRunner } from '../command.ts';
import { API_KEY_FLAG, URL_FLAG } from '../config/common-flags.ts';
import type { Flag } from '../flags.ts';
import { formatBytes, formatSeconds } from '../format.ts';
import { readServer } from '../servers/ask-server.ts';
import { askStatus, type RunningModel, type ServerStatus } from '../servers/ask-status.ts';
import { findServers, type FoundServer } from '../servers/find-servers.ts';

export const flags: readonly Flag[] = [
  { ...URL_FLAG, description: `${URL_FLAG.description}; default: all servers of this machine` },
  API_KEY_FLAG,
];

const WAIT_MS = 5000;
const KEY_HINT =
  'requires an API key: --api-key or RUVLLM_API_KEY; create one with ruvllm keys create NAME --scope read-only';

interface Report {
  readonly url: string;
  readonly pid: number | null;
  readonly status: ServerStatus | null;
  /** Why there is no status. */
  readonly problem: string | null;
}

async function inspect(context: CommandContext, { url, pid, isGuess }: FoundServer): Promise<Report | null> {
  const { io } = context;
  const limited = { ...io, signal: AbortSignal.any([io.signal, AbortSignal.timeout(WAIT_MS)]) };
  try {
    const server = readServer({ io: limited, values: { ...context.values, '--url': url } });
    return { url, pid, status: await askStatus(server), problem: null };
  } catch (error) {
    if (!(error instanceof RuvLLMError) || io.signal.aborted) throw error;
    const status = error.data['status'];
    const isLocked = status === 401 || status === 403;
    // The guessed port is free, or used by another program.
    if (isGuess && !isLocked) return null;
    if (context.values['--url'] !== undefined && !isLocked) throw error;
    const message = error.code === 'aborted' ? `no response within ${WAIT_MS} ms` : error.message;
    return { url, pid, status: null, problem: isLocked ? KEY_HINT : message };
  }
}

const HEAD = ['MODEL', 'STATE', 'RUNNING', 'WAITING', 'TOKENS', 'KV CACHE', 'MEMORY'];
const orDash = (value: number | null, show: (value: number) => string = String): string =>
  value === null ? '–' : show(value);

const rowOf = (model: RunningModel): string[] => [
  model.id,
  model.state,
  orDash(model.numRunning),
  orDash(model.numWaiting),
  orDash(model.numGeneratedTokens),
  model.usedBytes === null ? '–' : `${formatBytes(model.usedBytes)} of ${formatBytes(model.budgetBytes!)}`,
  orDash(model.memoryBytes, formatBytes),
];

/** Lists running servers, their models and their load. */
export const run: CommandRunner = async (context) => {
  const { output } = context;
  const candidates = findServers(context);
  const reports = (await Promise.all(candidates.map((candidate) => inspect(context, candidate)))).filter((report) => report !== null); // prettier-ignore
  output.document({ servers: reports.map(({ url, pid, status, problem }) => ({ url, pid, ...status, problem })) });
  if (reports.length === 0) {
    const urls = candidates.map(({ url }) => url).join(', ');
    output.note(`no running servers: none is registered, and none responds at ${urls}`);
    output.note('next: ruvllm serve, or ruvllm ps --url URL for another address');
    return;
  }
  for (const [index, { url, pid, status, problem }] of reports.entries()) {
    if (index > 0) output.lines('');
    const process = pid === null ? '' : `, process ${pid}`;
    if (status === null) {
      output.lines(`${url}${process}: ${problem}`);
      continue;
    }
    const up = formatSeconds((Date.now() - status.startedMs) / 1000);
    const requests = status.numRequests === null ? '' : `, ${status.numRequests} requests in progress`;
    output.lines(`${url}: ruvllm ${status.version}${process}, up ${up}${requests}`);
    output.table(HEAD, status.models.map(rowOf));
  }
};
