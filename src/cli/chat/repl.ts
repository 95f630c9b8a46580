import { createInterface, type Interface } from 'node:readline';
import { RuvLLMError } from '../../core/errors.ts';
import { createChunkQueue } from '../../runtime/chunk-queue.ts';
import type { CliIo } from '../io.ts';
import type { CliTools } from '../mcp/open-cli-tools.ts';
import type { Output } from '../output.ts';
import { type ChatHost, RECOVERABLE } from './chat-host.ts';
import { type History, isRecorded, MAX_HISTORY_LINES } from './history-file.ts';
import { escapeLine } from '../safe-text.ts';
import { createLineJoiner } from './line-joiner.ts';

const PROMPT = '> ';
const CONTINUATION_PROMPT = '… ';
/** Bracketed paste mode: line breaks inside a paste do not send it. */
const BRACKETED_PASTE_ON = '\x1b[?2004h';
const BRACKETED_PASTE_OFF = '\x1b[?2004l';

/** Chats at a terminal until the user exits. `history` null: input lines are not kept. */
export async function runRepl(
  { io, output }: { io: CliIo; output: Output },
  host: ChatHost,
  history: History | null = null,
  /** Asked for consent in this terminal; null: the model has no tools. */
  tools: Pick<CliTools, 'ask'> | null = null,
): Promise<void> {
  // The prompt goes to stderr if possible, so that `chat | tee` records only answers.
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
  const newLines: string[] = [];
  const isPasting = watchPastes(io, readline);
  let answer: AbortController | null = null;
  let isLeaving = false;
  let isClosed = false;
  /** Gets the next line instead of the conversation: the answer to a question. */
  let answerQuestion: ((line: string | null) => void) | null = null;

  if (tools !== null) {
    tools.ask = (question) => {
      if (isClosed) return Promise.resolve(null);
      screen.write(`\n${escapeLine(question)}`);
      return new Promise((resolve) => (answerQuestion = resolve));
    };
  }

  readline.on('line', (line) => {
    isLeaving = false;
    if (answerQuestion !== null) {
      const answerIt = answerQuestion;
      answerQuestion = null;
      return answerIt(line);
    }
    if (isRecorded(line)) newLines.unshift(line);
    // Joined immediately, so that Ctrl-C right after a paste discards it.
    const text = joiner.push(line, isPasting());
    readline.setPrompt(joiner.isOpen ? CONTINUATION_PROMPT : PROMPT);
    if (text !== null) texts.push(text);
    else if (answer === null) readline.prompt();
  });
  // Unrecorded lines cannot be recalled with ↑ either: another person may use this terminal next.
  readline.on('history', (lines: string[]) => void (isRecorded(lines[0] ?? '') || lines.shift()));
  readline.on('close', () => {
    isClosed = true;
    answerQuestion?.(null);
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
    if (answer !== null) {
      answerQuestion?.(null);
      answerQuestion = null;
      return answer.abort();
    }
    screen.write('\n');
    output.note('press Ctrl-C again or Ctrl-D, or type /exit, to exit');
    readline.prompt();
  });
  const onAbort = (): void => readline.close();
  io.signal.addEventListener('abort', onAbort, { once: true });

  try {
    if (io.environment['TERM'] !== 'dumb') screen.write(BRACKETED_PASTE_ON);
    readline.prompt();
    for await (const text of texts.read()) {
      answer = new AbortController();
      if (!(await handleRecoverable(host, text, answer.signal, output))) return;
      answer = null;
      // Keeps the cursor behind text typed during the answer.
      if (!isClosed) readline.prompt(readline.line !== '');
    }
  } finally {
    io.signal.removeEventListener('abort', onAbort);
    if (io.environment['TERM'] !== 'dumb') screen.write(BRACKETED_PASTE_OFF);
    readline.close();
    screen.write('\n');
    history?.add(newLines);
  }
}

/** Returns a function that says whether current input is part of a paste. */
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

async function handleRecoverable(host: ChatHost, text: string, signal: AbortSignal, output: Output): Promise<boolean> {
  try {
    return await host.handle(text, signal);
  } catch (error) {
    if (!(error instanceof RuvLLMError) || !RECOVERABLE.has(error.code)) throw error;
    output.note(`error: ${error.message}`);
    return true;
  }
}
