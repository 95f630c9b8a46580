import { createInterface, type Interface } from 'node:readline';
import { RuvLLMError } from '../../core/errors.ts';
import { createChunkQueue } from '../../runtime/chunk-queue.ts';
import type { CliIo } from '../io.ts';
import type { Output } from '../output.ts';
import { type ChatHost, CURABLE } from './chat-host.ts';
import { type History, isKept, MAX_HISTORY_LINES } from './history-file.ts';
import { createLineJoiner } from './line-joiner.ts';

const PROMPT = '> ';
const GOES_ON = '… ';
/** Asks the terminal to say where a paste begins and ends, so that its line breaks do not send it. */
const PASTES_ON = '\x1b[?2004h';
const PASTES_OFF = '\x1b[?2004l';

/** Talks to a person at a terminal until they leave. Without a history of a file, what was typed is gone with the chat. */
export async function runRepl(
  { io, output }: { io: CliIo; output: Output },
  host: ChatHost,
  history: History | null = null,
): Promise<void> {
  // The prompt goes to stderr where that is a terminal too: `chat | tee` then keeps the answers only.
  const screen = io.stderr.isTerminal ? io.stderr : io.stdout;
  const readline = createInterface({
    input: io.stdin,
    output: screen.stream,
    terminal: true,
    prompt: PROMPT,
    history: history?.load() ?? [],
    historySize: MAX_HISTORY_LINES,
    removeHistoryDuplicates: true,
  });
  const texts = createChunkQueue<string>();
  const joiner = createLineJoiner();
  const typed: string[] = [];
  const isPasting = watchPastes(io, readline);
  let answer: AbortController | null = null;
  let isLeaving = false;
  let isClosed = false;

  readline.on('line', (line) => {
    isLeaving = false;
    if (isKept(line)) typed.unshift(line);
    // Joined as they come: Ctrl-C right after a paste must find it.
    const text = joiner.push(line, isPasting());
    readline.setPrompt(joiner.isOpen ? GOES_ON : PROMPT);
    if (text !== null) texts.push(text);
    else if (answer === null) readline.prompt();
  });
  // Lines that are not kept are not found with ↑ either: somebody may sit down at this terminal next.
  readline.on('history', (all: string[]) => void (isKept(all[0] ?? '') || all.shift()));
  readline.on('close', () => {
    isClosed = true;
    answer?.abort();
    texts.end();
  });
  readline.on('SIGINT', () => {
    if (answer === null && (readline.line !== '' || joiner.isOpen)) {
      joiner.drop();
      readline.setPrompt(PROMPT);
      readline.write(null, { ctrl: true, name: 'e' });
      readline.write(null, { ctrl: true, name: 'u' });
      return readline.prompt();
    }
    if (isLeaving) return readline.close();
    isLeaving = true;
    if (answer !== null) return answer.abort();
    screen.write('\n');
    output.note('Ctrl-C again, Ctrl-D or /exit leaves');
    readline.prompt();
  });
  const onAbort = (): void => readline.close();
  io.signal.addEventListener('abort', onAbort, { once: true });

  try {
    if (io.environment['TERM'] !== 'dumb') screen.write(PASTES_ON);
    readline.prompt();
    for await (const text of texts.read()) {
      answer = new AbortController();
      if (!(await handleCurable(host, text, answer.signal, output))) return;
      answer = null;
      // What was typed meanwhile stands in the line already, with the cursor behind it.
      if (!isClosed) readline.prompt(readline.line !== '');
    }
  } finally {
    io.signal.removeEventListener('abort', onAbort);
    if (io.environment['TERM'] !== 'dumb') screen.write(PASTES_OFF);
    readline.close();
    screen.write('\n');
    history?.add(typed);
  }
}

/** Whether what comes in now is between the marks of a paste. */
function watchPastes({ stdin }: CliIo, readline: Interface): () => boolean {
  let isPasting = false;
  const onKey = (_: unknown, key: { name?: string } | undefined): void => {
    if (key?.name === 'paste-start') isPasting = true;
    if (key?.name === 'paste-end') isPasting = false;
  };
  stdin.on('keypress', onKey);
  readline.once('close', () => stdin.off('keypress', onKey));
  return () => isPasting;
}

async function handleCurable(host: ChatHost, text: string, signal: AbortSignal, output: Output): Promise<boolean> {
  try {
    return await host.handle(text, signal);
  } catch (error) {
    if (!(error instanceof RuvLLMError) || !CURABLE.has(error.code)) throw error;
    output.note(`error: ${error.message}`);
    return true;
  }
}
