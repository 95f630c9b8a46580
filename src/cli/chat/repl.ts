import { createInterface } from 'node:readline';
import { RuvLLMError } from '../../core/errors.ts';
import { createChunkQueue } from '../../runtime/chunk-queue.ts';
import type { CliIo } from '../io.ts';
import type { Output } from '../output.ts';
import { type ChatHost, CURABLE } from './chat-host.ts';
import { createLineJoiner } from './line-joiner.ts';

const PROMPT = '> ';
const GOES_ON = '… ';

/** Talks to a person at a terminal until they leave. */
export async function runRepl({ io, output }: { io: CliIo; output: Output }, host: ChatHost): Promise<void> {
  // The prompt goes to stderr where that is a terminal too: `chat | tee` then keeps the answers only.
  const screen = io.stderr.isTerminal ? io.stderr : io.stdout;
  const readline = createInterface({ input: io.stdin, output: screen.stream, terminal: true, prompt: PROMPT });
  const lines = createChunkQueue<string>();
  const joiner = createLineJoiner();
  let answer: AbortController | null = null;
  let isLeaving = false;
  let isClosed = false;

  readline.on('line', (line) => {
    isLeaving = false;
    lines.push(line);
  });
  readline.on('close', () => {
    isClosed = true;
    answer?.abort();
    lines.end();
  });
  readline.on('SIGINT', () => {
    if (answer === null && readline.line !== '') {
      readline.write(null, { ctrl: true, name: 'e' });
      return readline.write(null, { ctrl: true, name: 'u' });
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
    readline.prompt();
    for await (const line of lines.read()) {
      const text = joiner.push(line);
      readline.setPrompt(text === null ? GOES_ON : PROMPT);
      if (text !== null) {
        answer = new AbortController();
        if (!(await handleCurable(host, text, answer.signal, output))) return;
        answer = null;
      }
      if (!isClosed) readline.prompt();
    }
  } finally {
    io.signal.removeEventListener('abort', onAbort);
    readline.close();
    screen.write('\n');
  }
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
