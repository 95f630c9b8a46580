import { createInterface } from 'node:readline';
import type { CliIo } from '../io.ts';
import { escapeLine } from '../safe-text.ts';
import type { AskPerson } from './open-cli-tools.ts';

/** Asks on stderr, so that a redirected answer has no questions in it. */
export function askAtTerminal({ stdin, stderr, signal }: Pick<CliIo, 'stdin' | 'stderr' | 'signal'>): AskPerson {
  return (question) =>
    new Promise((resolve) => {
      const readline = createInterface({ input: stdin, output: stderr.stream });
      const end = (line: string | null): void => {
        signal.removeEventListener('abort', leave);
        readline.close();
        resolve(line);
      };
      const leave = (): void => end(null);
      signal.addEventListener('abort', leave, { once: true });
      readline.once('close', () => resolve(null));
      readline.question(`\n${escapeLine(question)}`, end);
    });
}
