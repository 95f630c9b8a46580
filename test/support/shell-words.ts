/** One command of a shell line, with its comment. */
export interface ShellCommand {
  readonly words: readonly string[];
  readonly comment: string;
  /** Whether it follows a pipe. */
  readonly isPiped: boolean;
}

const SEPARATORS = /^(?:\|\||&&|\||;|\$\(|\)|>>?|<|&)/;

/** The commands of a shell text; supports only quotes, comments, joined lines and `$(…)`. */
export function shellCommands(text: string): ShellCommand[] {
  return text
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .flatMap(commandsOfLine);
}

function commandsOfLine(line: string): ShellCommand[] {
  const commands: { words: string[]; isPiped: boolean }[] = [{ words: [], isPiped: false }];
  let remainder = line.trim();
  let comment = '';
  while (remainder !== '') {
    const separator = SEPARATORS.exec(remainder)?.[0];
    if (remainder.startsWith('#')) {
      comment = remainder.slice(1).trim();
      break;
    }
    if (separator !== undefined) {
      commands.push({ words: [], isPiped: separator === '|' });
      remainder = remainder.slice(separator.length).trim();
      continue;
    }
    const word = /^(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'|;&()<>$]|\$(?!\())+/.exec(remainder)?.[0] ?? remainder[0]!;
    commands.at(-1)!.words.push(word.replaceAll(/^["']|["']$/g, ''));
    remainder = remainder.slice(word.length).trim();
  }
  return commands
    .map(({ words, isPiped }) => ({ words: words.slice(numBefore(words)), isPiped, comment }))
    .filter(({ words }) => words.length > 0);
}

/** `NAME=value` before a command is its environment; `until` and similar are shell keywords. */
function numBefore(words: readonly string[]): number {
  const first = words.findIndex((word) => !/^(?:[A-Za-z_]\w*=.*|\$|until|while|if|do|then|else|!|time)$/.test(word));
  return first === -1 ? words.length : first;
}
