/** One command of a line of shell, and what its comment says. */
export interface ShellCommand {
  readonly words: readonly string[];
  readonly comment: string;
  /** The word before it was a pipe. */
  readonly isPiped: boolean;
}

const SEPARATORS = /^(?:\|\||&&|\||;|\$\(|\)|>>?|<|&)/;

/** The commands of a shell text: quotes, comments, joined lines and `$(…)` are known, nothing else of shells is. */
export function shellCommands(text: string): ShellCommand[] {
  return text
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .flatMap(commandsOfLine);
}

function commandsOfLine(line: string): ShellCommand[] {
  const found: { words: string[]; isPiped: boolean }[] = [{ words: [], isPiped: false }];
  let rest = line.trim();
  let comment = '';
  while (rest !== '') {
    const separator = SEPARATORS.exec(rest)?.[0];
    if (rest.startsWith('#')) {
      comment = rest.slice(1).trim();
      break;
    }
    if (separator !== undefined) {
      found.push({ words: [], isPiped: separator === '|' });
      rest = rest.slice(separator.length).trim();
      continue;
    }
    const word = /^(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'|;&()<>$]|\$(?!\())+/.exec(rest)?.[0] ?? rest[0]!;
    found.at(-1)!.words.push(word.replaceAll(/^["']|["']$/g, ''));
    rest = rest.slice(word.length).trim();
  }
  return found
    .map(({ words, isPiped }) => ({ words: words.slice(numBefore(words)), isPiped, comment }))
    .filter(({ words }) => words.length > 0);
}

/** `NAME=value` before a command is its environment; `until` and the like are the shell's own. */
function numBefore(words: readonly string[]): number {
  const first = words.findIndex((word) => !/^(?:[A-Za-z_]\w*=.*|\$|until|while|if|do|then|else|!|time)$/.test(word));
  return first === -1 ? words.length : first;
}
