import { type ErrorCode, type RuvLLMError, serializeError } from '../core/errors.ts';
import type { CliIo } from './io.ts';
import { escapeForTerminal, escapeLine, toSafeJson } from './safe-text.ts';
import { hasColour, paint } from './terminal/colour.ts';

/** 2: what was typed is wrong. 1: it could not be done. */
export function exitCodeOf(error: unknown): number {
  return serializeError(error).code === 'invalid_option' ? 2 : 1;
}

interface ReportOptions {
  readonly io: Pick<CliIo, 'stdout' | 'stderr' | 'environment'>;
  readonly isJson: boolean;
  /** null when not even the command could be told. */
  readonly commandName: string | null;
}

/** Says what went wrong: one document on stdout with --json, one line and the next thing to try on stderr without. */
export function reportError(error: unknown, { io, isJson, commandName }: ReportOptions): void {
  const { code, message, data } = serializeError(error);
  if (isJson) {
    io.stdout.write(`${toSafeJson({ error: { code, message, data } })}\n`);
  } else {
    const next = nextStep({ code, message, data }, commandName);
    const isColoured = hasColour(io, io.stderr);
    io.stderr.write(`${paint('error:', 'red', isColoured)} ${escapeLine(shorten(message))}\n`);
    if (next !== null) io.stderr.write(`${paint('next:', 'cyan', isColoured)} ${escapeLine(next)}\n`);
  }
  // A bug is only found with its stack; everything else is explained by its message.
  if (code === 'internal' && error instanceof Error && (io.environment['RUVLLM_DEBUG'] ?? '') !== '') {
    io.stderr.write(`${escapeForTerminal(error.stack ?? '')}\n`);
  }
}

/** A message may quote what it refuses; nobody reads a megabyte of it. */
const MAX_MESSAGE = 4000;

function shorten(message: string): string {
  if (message.length <= MAX_MESSAGE) return message;
  return `${message.slice(0, MAX_MESSAGE)}… (${message.length} characters; all of them with --json)`;
}

type Reported = Pick<RuvLLMError, 'code' | 'message' | 'data'>;

/** What they do not find is no model; where it can be looked up. */
const LOOK_UP: Readonly<Record<string, string | null>> = {
  memory: null,
  audit: null,
  sessions: null,
  feedback: 'ruvllm audit search shows the requests and their ids',
  learn: 'ruvllm learn status shows what there is',
  keys: 'ruvllm keys list shows the keys and their ids',
};

const NEXT_STEPS: Partial<Record<ErrorCode, (error: Reported, commandName: string | null) => string | null>> = {
  invalid_option({ message, data }, commandName) {
    if (typeof data['next'] === 'string') return data['next'];
    const meant = /^unknown command .* \(did you mean (\w+)\?\)$/.exec(message)?.[1];
    const name = commandName ?? meant;
    return name === undefined ? 'ruvllm --help' : `ruvllm ${name} --help`;
  },
  io: ({ data }) => (typeof data['url'] === 'string' ? 'ruvllm ps shows which servers run here' : null),
  invalid_model_file: () => 'ruvllm show MODEL, or ruvllm pull MODEL again',
  unknown_architecture: () => 'ruvllm doctor shows the architectures there are',
  not_found(error, commandName) {
    const suggestions = error.data['suggestions'];
    if (Array.isArray(suggestions)) return `did you mean ${suggestions.join(' or ')}? ruvllm list shows what is here`;
    const reference = /^model (\S+) is not in the cache/.exec(error.message)?.[1];
    if (reference !== undefined) return `ruvllm pull ${reference}`;
    return commandName !== null && Object.hasOwn(LOOK_UP, commandName) ? LOOK_UP[commandName]! : 'ruvllm list';
  },
  not_loaded: (_, commandName) => (commandName === 'learn' ? 'the same command with --model MODEL' : null),
  remote_failed: () => 'ruvllm ps shows which servers run here',
  conflict: ({ data }) => (typeof data['next'] === 'string' ? data['next'] : null),
  context_overflow: () => 'a shorter prompt, a smaller --max-tokens or a larger --context',
  out_of_memory: () =>
    'a smaller --context or a larger --memory-budget, or a smaller model; ruvllm doctor shows the memory',
  deadline_exceeded: () => 'a longer --timeout or a smaller --max-tokens',
  empty_prompt: () => 'ruvllm run MODEL "your prompt"',
  download_failed: () => 'the same command again: a download goes on where it stopped',
  disk_full: () => 'ruvllm list, then ruvllm rm MODEL',
  kernel_failed: () => 'ruvllm doctor',
  internal: () => 'RUVLLM_DEBUG=1 with the same command shows where',
};

function nextStep(error: Reported, commandName: string | null): string | null {
  return NEXT_STEPS[error.code]?.(error, commandName) ?? null;
}
