import type { TokenizerAndRendererExtension, Tokens } from 'marked';

/** Longer formulas stay as they are written: the renderer's time grows with them. */
export const MAX_FORMULA_CHARS = 2000;

/** `$$ … $$` and `\[ … \]` on lines of their own. */
const BLOCK = /^ {0,3}(?:\$\$([\s\S]+?)\$\$|\\\[([\s\S]+?)\\\])[^\S\n]*(?:\n|$)/;
/**
 * `\( … \)`, `\[ … \]`, `$$ … $$` and `$ … $` within a line. A dollar sign before a space or after one is an amount of money, and so is
 * one before a digit at the end.
 */
const INLINE =
  /^(?:\\\(([\s\S]+?)\\\)|\\\[([\s\S]+?)\\\]|\$\$([^\n]+?)\$\$|\$(?![\s$])((?:\\.|[^\\$\n])+?)(?<!\s)\$(?!\d))/;

interface Formula extends Tokens.Generic {
  readonly tex: string;
  readonly isDisplay: boolean;
}

const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');

/** The formula as written, which `typesetFormulas` replaces. */
const placeholder = ({ raw, isDisplay }: Formula): string =>
  `<span data-math="${isDisplay ? 'display' : 'inline'}">${escape(raw.trim())}</span>`;

/** Formulas in Markdown; without these rules the parser takes their backslashes and underscores for markup. */
export const MATH_RULES: readonly TokenizerAndRendererExtension[] = [
  {
    name: 'formula-block',
    level: 'block',
    start: (text) => text.match(/^ {0,3}(?:\$\$|\\\[)/m)?.index,
    tokenizer(text) {
      const match = BLOCK.exec(text);
      if (match === null) return;
      return { type: 'formula-block', raw: match[0], tex: match[1] ?? match[2], isDisplay: true };
    },
    renderer: (token) => `<p>${placeholder(token as Formula)}</p>`,
  },
  {
    name: 'formula',
    level: 'inline',
    start: (text) => text.match(/\$|\\[([]/)?.index,
    tokenizer(text) {
      const match = INLINE.exec(text);
      if (match === null) return;
      const [raw, round, square, double, single] = match;
      const isDisplay = square !== undefined || double !== undefined;
      return { type: 'formula', raw, tex: round ?? square ?? double ?? single, isDisplay };
    },
    renderer: (token) => placeholder(token as Formula),
  },
];

/** The formula without its delimiters. */
export const texOf = (raw: string): string =>
  raw.startsWith('\\') || raw.startsWith('$$') ? raw.slice(2, -2) : raw.slice(1, -1);
