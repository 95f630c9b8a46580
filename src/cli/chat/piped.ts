import type { CliIo } from '../io.ts';
import type { ChatHost } from './chat-host.ts';
import { createLineJoiner } from './line-joiner.ts';
import { readLines } from './read-lines.ts';

/** Takes every line of stdin as a turn; ends with the input, or with the first turn that fails. */
export async function runPiped(io: CliIo, host: ChatHost): Promise<void> {
  const joiner = createLineJoiner();
  for await (const line of readLines(io.stdin, io.signal)) {
    const text = joiner.push(line);
    if (text !== null && !(await host.handle(text, io.signal))) return;
  }
  const rest = joiner.flush();
  if (rest !== null) await host.handle(rest, io.signal);
}
