import { trimEndOf } from '../../core/trim.ts';
import { estimateTokens } from './estimate-tokens.ts';
import { CHUNK_TOKENS } from './limits.ts';
import { type Line, linesOf } from './plain-text.ts';
import type { DocumentBlock, ParsedDocument } from './types.ts';

export const CODE_EXTENSIONS = ['js', 'mjs', 'cjs', 'jsx', 'ts', 'mts', 'cts', 'tsx', 'py', 'rb', 'go', 'rs', 'java', 'kt', 'kts', 'scala', 'swift', 'c', 'h', 'cc', 'cpp', 'cxx', 'hpp', 'cs', 'php', 'pl', 'lua', 'r', 'jl', 'dart', 'ex', 'exs', 'erl', 'hs', 'ml', 'clj', 'sql', 'sh', 'bash', 'zsh', 'ps1', 'css', 'scss', 'json', 'jsonl', 'yaml', 'yml', 'toml', 'ini', 'cfg', 'conf', 'xml', 'vue', 'svelte', 'proto', 'graphql', 'tf', 'cmake', 'gradle', 'asm', 's', 'zig', 'nim']; // prettier-ignore

/** A line that ends or continues what is above it. */
const CONTINUES =
  /^(?:[\])}>;,.:|&?]|(?:end|else|elif|elsif|except|catch|finally|fi|done|esac|then|do|where|and|or)\b)/;
/** A line that says nothing about what follows it. */
const COMMENT =
  /^(?:\/\/|\/?\*|#(?!include|define)|--|;|"""|'''|@|import\b|from\b|package\b|use\b|using\b|require\b|[\]})])/;
const MAX_HEADING = 120;
const TAB_WIDTH = 4;

const isBlank = ({ text }: Line): boolean => text.trim() === '';
function indentOf({ text }: Line): number {
  let width = 0;
  for (const char of text) {
    if (char === ' ') width++;
    else if (char === '\t') width += TAB_WIDTH - (width % TAB_WIDTH);
    else break;
  }
  return width;
}

/** Groups of lines that begin at the smallest indentation: declarations with their comments and bodies. */
function groupLines(lines: readonly Line[]): Line[][] {
  const level = lines.reduce((least, line) => (isBlank(line) ? least : Math.min(least, indentOf(line))), Infinity);
  const groups: Line[][] = [];
  let isAfterBreak = true;
  for (const line of lines) {
    if (isBlank(line)) {
      isAfterBreak = true;
      groups.at(-1)?.push(line);
      continue;
    }
    const isAtLevel = indentOf(line) === level;
    if (isAtLevel && isAfterBreak && !CONTINUES.test(line.text.trim())) groups.push([]);
    if (groups.length === 0) groups.push([]);
    groups.at(-1)!.push(line);
    // A declaration may follow a body or a closing bracket without an empty line.
    isAfterBreak = !isAtLevel || CONTINUES.test(line.text.trim());
  }
  return groups;
}

const headingOf = (lines: readonly Line[]): string | null => {
  const words = lines.map(({ text }) => text.trim());
  const head = words.find((text) => text !== '' && !COMMENT.test(text));
  return head === undefined ? null : trimEndOf(head.slice(0, MAX_HEADING).toWellFormed(), '{(:=').trimEnd();
};

/** Divides lines at declarations, and those that are too large at the declarations inside them. */
function divide(lines: readonly Line[], text: string, headings: readonly string[], depth: number): DocumentBlock[] {
  return groupLines(lines).flatMap((group): DocumentBlock[] => {
    const filled = group.filter((line) => !isBlank(line));
    if (filled.length === 0) return [];
    const [start, end] = [filled[0]!.start, filled.at(-1)!.end];
    const heading = headingOf(group);
    const path = heading === null || headings.includes(heading) ? headings : [...headings, heading];
    const isSmall = estimateTokens(text, start, end) <= CHUNK_TOKENS.max;
    const head = group.findIndex((line) => !isBlank(line) && indentOf(line) > indentOf(filled[0]!));
    if (isSmall || head === -1 || depth === 0) return [{ kind: 'code', start, end, headings: path }];
    let tail = group.length; // stays behind `head`, which is neither
    while (isBlank(group[tail - 1]!) || indentOf(group[tail - 1]!) <= indentOf(filled[0]!)) tail--;
    const inner = divide(group.slice(head, tail), text, path, depth - 1);
    const first = { kind: 'code', start, end: group[head - 1]!.end, headings: path } as const;
    // The closing lines belong to the last part.
    return [first, ...inner.slice(0, -1), { ...inner.at(-1)!, end }];
  });
}

/** Nested declarations: a class in a namespace with methods. Deeper code is divided at lines. */
const MAX_LEVELS = 4;

/** Declarations of source code by indentation, which holds for most languages; headings are their first lines. */
export function parseCode(text: string): ParsedDocument {
  const lines = linesOf(text);
  const blocks = lines.every(isBlank) ? [] : divide(lines, text, [], MAX_LEVELS);
  return { text, blocks, pageStarts: null };
}
