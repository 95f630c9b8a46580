// User-facing text of Markdown pages and sources.
import { parseSync } from 'vite';

/** A text and its first line. */
export interface UserText {
  readonly text: string;
  readonly line: number;
}

/** Paragraphs, list items and table cells of a page, without code, comments and link targets. */
export function textsOfMarkdown(markdown: string): UserText[] {
  const blank = (text: string): string => text.replaceAll(/[^\n]/g, ' ');
  const prose = markdown
    .replaceAll(/<!--[^]*?-->/g, blank)
    .replaceAll(/^( *)(`{3,})[^]*?^\1\2 *$/gm, blank)
    .replaceAll(/`[^`]+`/g, (code) => `‹${blank(code.slice(2))}›`)
    .replaceAll(/\]\([^)\s]+\)/g, ']');
  const texts: UserText[] = [];
  let open: { lines: string[]; line: number } | null = null;
  const close = (): void => {
    if (open !== null) texts.push({ text: joined(open.lines), line: open.line });
    open = null;
  };
  for (const [i, line] of prose.split('\n').entries()) {
    const isTable = line.startsWith('|');
    if (isTable || line.trim() === '' || /^\s*(?:[-*]|\d+\.|#+) /.test(line)) close();
    if (isTable) {
      for (const cell of line.split('|')) if (cell.trim() !== '') texts.push({ text: joined([cell]), line: i + 1 });
    } else if (line.trim() !== '') {
      open ??= { lines: [], line: i + 1 };
      open.lines.push(line.replace(/^\s*(?:[-*]|\d+\.|#+) /, ''));
    }
  }
  close();
  return texts;
}

const joined = (lines: readonly string[]): string => lines.join(' ').replaceAll(/\s+/g, ' ').trim();

type Node = { readonly type: string; readonly start: number } & Readonly<Record<string, unknown>>;
const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';

/** Creates an error from its message, with or without `new`. */
const ERROR_MAKER = /Error$|^(?:refusal|denied|invalid|unsupported)$/;

/** Every string, template and JSX text of a source file; with `inErrors` only those in error constructors. */
export function textsOfSource(path: string, code: string, { inErrors }: { readonly inErrors: boolean }): UserText[] {
  const { program, errors } = parseSync(path, code);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]!.message}`);
  const texts: UserText[] = [];
  const add = (text: string, { start }: Node): void => {
    if (isProse(text)) texts.push({ text: joined([text]), line: code.slice(0, start).split('\n').length });
  };
  const visit = (node: Node, isInside: boolean): void => {
    const isIncluded = !inErrors || isInside;
    if (isIncluded && node.type === 'Literal' && typeof node['value'] === 'string') add(node['value'], node);
    if (isIncluded && node.type === 'JSXText') add(node['value'] as string, node);
    if (isIncluded && node.type === 'TemplateLiteral') {
      const parts = node['quasis'] as { readonly value: { readonly cooked: string | null } }[];
      add(parts.map(({ value }) => value.cooked ?? '').join('‹›'), node);
    }
    const isCall = node.type === 'NewExpression' || node.type === 'CallExpression';
    const isError = isCall && ERROR_MAKER.test(nameOf(node['callee']));
    for (const [key, value] of Object.entries(node)) {
      if (key === 'source' && /^(?:Import|Export)/.test(node.type)) continue;
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child, isInside || isError);
    }
  };
  visit(program as unknown as Node, false);
  return texts;
}

/** Block comments, and runs of line comments. Only for sources without such marks in strings. */
const COMMENT = /\/\*[^]*?\*\/|(?:\/\/.*\s*?\n\s*(?=\/\/))*\/\/.*/g;
/** Not TypeScript for the parser: C, and AssemblyScript, whose functions have decorators. */
const NOT_PARSED = /\.[ch]$|\/assembly\//;

/** The comments of a source file, consecutive line comments as one, and the titles of its tests. */
export function textsOfComments(path: string, code: string): UserText[] {
  const lineAt = (start: number): number => code.slice(0, start).split('\n').length;
  const titles: UserText[] = [];
  const spans: [start: number, end: number][] = [];
  if (NOT_PARSED.test(path)) {
    for (const match of code.matchAll(COMMENT)) spans.push([match.index, match.index + match[0].length]);
  } else {
    const { program, comments } = parseSync(path, code);
    for (const { start, end } of comments) {
      const last = spans.at(-1);
      const isContinued =
        last !== undefined && code.startsWith('//', start) && code.slice(last[1], start).trim() === '';
      if (isContinued && code.startsWith('//', last[0])) last[1] = end;
      else spans.push([start, end]);
    }
    visitNodes(program as unknown as Node, (node) => {
      if (node.type !== 'CallExpression' || !/^(?:test|it|describe)\b/.test(code.slice(node.start))) return;
      const [title] = node['arguments'] as Node[];
      const text =
        title?.type === 'Literal' || title?.type === 'TemplateLiteral'
          ? code.slice(title.start + 1, (title['end'] as number) - 1)
          : '';
      if (isProse(text)) titles.push({ text: joined([text]), line: lineAt(title!.start) });
    });
  }
  const comments = spans.map(([start, end]) => ({
    text: joined([code.slice(start, end).replaceAll(/^\s*(?:\/\*+|\/\/|\*+(?!\/))|\*+\/$/gm, ' ')]),
    line: lineAt(start),
  }));
  return [...comments, ...titles];
}

function visitNodes(node: Node, visit: (node: Node) => void): void {
  visit(node);
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visitNodes(child, visit);
  }
}

const nameOf = (callee: unknown): string => (isNode(callee) ? String(callee['name'] ?? '') : '');

/** Words for people: several, or one with a capital letter. Others are names in code. */
const isProse = (text: string): boolean => /\S\s+\S/.test(text) || /^\s*\p{Lu}/u.test(text);
