import type { CliIo } from '../io.ts';
import type { ChatHost } from './chat-host.ts';
import { createLineJoiner } from './line-joiner.ts';
import { readLines } from './read-lines.ts';

/** Runs every line of stdin as a turn, until the end of input or the first error. */
export async function runPiped(io: CliIo, host: ChatHost): Promise<void> {
  const joiner = createLineJoiner();
  for await (const line of readLines(io.stdin, io.signal)) {
    const text = joiner.push(line);
    if (text !== null && !(await host.handle(text, io.signal))) return;
  }
  const lastText = joiner.flush();
  if (lastText !== null) await host.handle(lastText, io.signal);
}
