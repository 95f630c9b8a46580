import { RuvLLMError } from '../../core/errors.ts';
import type { CommandContext, CommandRunner } from '../command.ts';
import type { Flag } from '../flags.ts';
import { formatBytes, formatSeconds } from '../format.ts';
import { readServer } from '../memory/http-client.ts';
import { askStatus, type RunningModel, type ServerStatus } from '../servers/ask-status.ts';
import { readServerNotes } from '../servers/server-notes.ts';
import { SERVE_DEFAULTS } from './serve-flags.ts';

export const PS_FLAGS: readonly Flag[] = [
  { name: '--url', value: 'url', description: 'ask the server there; default: all that run here' },
  { name: '--api-key', value: 'key', description: 'the key for it (RUVLLM_API_KEY)' },
];

/** A server that does not say how it is says so quickly, or not at all. */
const WAIT_MS = 5000;
const KEY_HINT =
  'it needs a key: --api-key or RUVLLM_API_KEY; ruvllm keys create NAME --scope read-only makes one that sees this';

interface Place {
  readonly url: string;
  readonly pid: number | null;
  /** Nobody said that there is a server. */
  readonly isGuess: boolean;
}

interface Seen {
  readonly url: string;
  readonly pid: number | null;
  readonly status: ServerStatus | null;
  /** Why it does not say how it is. */
  readonly problem: string | null;
}

/** Those that wrote themselves down, else whoever listens where a server would. */
function placesOf({ io, values }: CommandContext): Place[] {
  const typed = values['--url'] as string | undefined;
  if (typed !== undefined) return [{ url: typed, pid: null, isGuess: false }];
  const notes = readServerNotes();
  if (notes.length > 0) return notes.map(({ url, process }) => ({ url, pid: process.pid, isGuess: false }));
  const host = io.environment['RUVLLM_HOST'] || SERVE_DEFAULTS.host;
  const port = io.environment['RUVLLM_PORT'] || String(SERVE_DEFAULTS.port);
  return [{ url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`, pid: null, isGuess: true }];
}

async function look(context: CommandContext, { url, pid, isGuess }: Place): Promise<Seen | null> {
  const { io } = context;
  const limited = { ...io, signal: AbortSignal.any([io.signal, AbortSignal.timeout(WAIT_MS)]) };
  try {
    const server = readServer({ io: limited, values: { ...context.values, '--url': url } });
    return { url, pid, status: await askStatus(server), problem: null };
  } catch (error) {
    if (!(error instanceof RuvLLMError) || io.signal.aborted) throw error;
    const status = error.data['status'];
    const isLocked = status === 401 || status === 403;
    // A port that somebody else uses, or nobody, is no server of ours.
    if (isGuess && !isLocked) return null;
    if (context.values['--url'] !== undefined && !isLocked) throw error;
    const late = error.code === 'aborted' ? `it did not answer within ${WAIT_MS} ms` : error.message;
    return { url, pid, status: null, problem: isLocked ? KEY_HINT : late };
  }
}

const HEAD = ['MODEL', 'STATE', 'RUNNING', 'WAITING', 'TOKENS', 'CONVERSATIONS', 'MEMORY'];
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

/** Shows the servers that run here and what they are doing. */
export const ps: CommandRunner = async (context) => {
  const { output } = context;
  const places = placesOf(context);
  const seen = (await Promise.all(places.map((place) => look(context, place)))).filter((one) => one !== null);
  output.document({ servers: seen.map(({ url, pid, status, problem }) => ({ url, pid, ...status, problem })) });
  if (seen.length === 0) {
    const looked = places.map(({ url }) => url).join(', ');
    output.note(`no server runs here: none has written itself down, and none answers at ${looked}`);
    output.note('next: ruvllm serve, or ruvllm ps --url URL for another place');
    return;
  }
  for (const [index, { url, pid, status, problem }] of seen.entries()) {
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
