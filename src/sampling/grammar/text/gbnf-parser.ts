import type { CodeRanges } from '../automata/code-ranges.ts';
import { ANY, complementRanges, normalizeRanges } from '../automata/code-ranges.ts';
import type { Fuel } from '../limits.ts';
import { malformed, unsupported } from '../limits.ts';

/** A character of a set, or a rule by number. */
export type GbnfSymbol = { readonly ranges: CodeRanges } | { readonly rule: number };
/** Alternatives, each a sequence of symbols. Groups and repetitions are separate rules. */
export type GbnfRule = readonly (readonly GbnfSymbol[])[];

export interface GbnfGrammar {
  readonly rules: readonly GbnfRule[];
  readonly names: readonly string[];
  readonly root: number;
}

// Counted repetitions are expanded.
const MAX_REPETITIONS = 4_096;
const NAME = /[A-Za-z0-9_-]/;
const ESCAPES = new Map([
  ['n', 10],
  ['r', 13],
  ['t', 9],
  ['\\', 92],
  ['"', 34],
  ['[', 91],
  [']', 93],
  ['-', 45],
  ['^', 94],
]);
const HEX_ESCAPES = new Map([
  ['x', 2],
  ['u', 4],
  ['U', 8],
]);

const REPETITIONS = new Map<string, readonly [number, number]>([
  ['*', [0, Infinity]],
  ['+', [1, Infinity]],
  ['?', [0, 1]],
]);

/** Parses a grammar in llama.cpp's dialect. */
export function parseGbnf(text: string, fuel: Fuel): GbnfGrammar {
  const { maxSourceLength, maxDepth } = fuel.limits;
  if (text.length > maxSourceLength)
    throw malformed('GBNF', 0, `${text.length} characters, the limit is ${maxSourceLength}`);
  const codes = [...text];
  let at = 0;
  const rules: GbnfSymbol[][][] = [];
  const names: string[] = [];
  const numbers = new Map<string, number>();
  const defined = new Map<string, number>();
  const fail = (reason: string): Error => malformed('GBNF', `character ${at}`, reason);

  const addRule = (name: string): number => {
    fuel.burn(4, 'GBNF');
    names.push(name);
    return rules.push([]) - 1;
  };
  const ruleOf = (name: string): number => {
    let number = numbers.get(name);
    if (number === undefined) numbers.set(name, (number = addRule(name)));
    return number;
  };
  const skipSpace = (overLines: boolean): void => {
    for (; at < codes.length; at++) {
      if (codes[at] === '#') while (at + 1 < codes.length && codes[at + 1] !== '\n') at++;
      else if (codes[at] !== ' ' && codes[at] !== '\t' && !(overLines && /[\r\n]/.test(codes[at]!))) return;
    }
  };
  const readName = (): string => {
    const from = at;
    while (at < codes.length && NAME.test(codes[at]!)) at++;
    if (at === from) throw fail('expected a rule name');
    return codes.slice(from, at).join('');
  };
  const readCode = (): number => {
    const next = codes[at++];
    if (next === undefined || next === '\n') throw fail('the literal or class is not closed');
    if (next !== '\\') return next.codePointAt(0)!;
    const letter = codes[at++] ?? '';
    const digits = HEX_ESCAPES.get(letter);
    if (digits === undefined) {
      const code = ESCAPES.get(letter);
      if (code === undefined) throw fail(`unknown escape \\${letter}`);
      return code;
    }
    const hex = codes.slice(at, at + digits).join('');
    if (hex.length !== digits || !/^[0-9a-fA-F]+$/.test(hex)) throw fail(`expected ${digits} hexadecimal digits`);
    at += digits;
    return Number.parseInt(hex, 16);
  };
  const readSet = (): CodeRanges => {
    at++;
    const isNegated = codes[at] === '^';
    if (isNegated) at++;
    const pairs: number[] = [];
    while (codes[at] !== ']') {
      const from = readCode();
      const isRange = codes[at] === '-' && codes[at + 1] !== ']';
      if (isRange) at++;
      const to = isRange ? readCode() : from;
      if (to < from) throw fail('the range is out of order');
      pairs.push(from, to);
    }
    at++;
    const ranges = normalizeRanges(pairs);
    return isNegated ? complementRanges(ranges) : ranges;
  };
  const readItem = (depth: number): GbnfSymbol[] => {
    const next = codes[at]!;
    if (next === '"') {
      at++;
      const literal: GbnfSymbol[] = [];
      while (codes[at] !== '"') {
        const code = readCode();
        literal.push({ ranges: normalizeRanges([code, code]) });
      }
      at++;
      return literal;
    }
    if (next === '[') return [{ ranges: readSet() }];
    if (next === '.') {
      at++;
      return [{ ranges: ANY }];
    }
    if (next === '(') {
      const opened = at++;
      const group = addRule(`group at character ${opened}`);
      rules[group] = readChoices(depth + 1);
      if (codes[at] !== ')') throw fail(`the group opened at character ${opened} is not closed`);
      at++;
      return [{ rule: group }];
    }
    if (NAME.test(next)) return [{ rule: ruleOf(readName()) }];
    throw next === '<'
      ? unsupported('GBNF', null, `a named token at character ${at}`)
      : fail(`unexpected ${JSON.stringify(next)}`);
  };
  const readBounds = (): [number, number] | null => {
    const simple = REPETITIONS.get(codes[at]!);
    if (simple !== undefined) {
      at++;
      return [simple[0], simple[1]];
    }
    if (codes[at] !== '{') return null;
    const match = /^\{\s*(\d{1,9})\s*(,\s*(?:(\d{1,9})\s*)?)?\}/.exec(codes.slice(at, at + 64).join(''));
    if (match === null) throw fail('expected a repetition such as {2}, {2,} or {2,5}');
    at += match[0].length;
    const min = Number(match[1]);
    const max = match[2] === undefined ? min : match[3] === undefined ? Infinity : Number(match[3]);
    if (max < min) throw fail(`repetition from ${min} down to ${max}`);
    if (Math.max(min, max === Infinity ? 0 : max) > MAX_REPETITIONS) {
      throw unsupported('GBNF', null, `a repetition of more than ${MAX_REPETITIONS} at character ${at}`);
    }
    return [min, max];
  };
  /** `item` min to max times, as right-recursive rules, which need no deeper stack per repetition. */
  const repeat = (item: readonly GbnfSymbol[], min: number, max: number): GbnfSymbol[] => {
    fuel.burn(item.length * (1 + min), 'GBNF');
    const result: GbnfSymbol[] = [];
    for (let i = 0; i < min; i++) result.push(...item);
    if (max === Infinity) {
      const rule = addRule('repetition');
      rules[rule] = [[...item, { rule }], []];
      result.push({ rule });
      return result;
    }
    let tail: GbnfSymbol[] = [];
    for (let i = min; i < max; i++) {
      fuel.burn(item.length, 'GBNF');
      const rule = addRule('repetition');
      rules[rule] = [[...item, ...tail], []];
      tail = [{ rule }];
    }
    return [...result, ...tail];
  };
  const readSequence = (depth: number): GbnfSymbol[] => {
    const symbols: GbnfSymbol[] = [];
    for (;;) {
      skipSpace(depth > 0);
      const next = codes[at];
      if (next === undefined || next === '\n' || next === '\r' || next === '|' || next === ')') return symbols;
      let item = readItem(depth);
      for (;;) {
        skipSpace(depth > 0);
        const bounds = readBounds();
        if (bounds === null) break;
        item = repeat(item, bounds[0], bounds[1]);
      }
      fuel.burn(1 + item.length, 'GBNF');
      for (const symbol of item) symbols.push(symbol);
    }
  };
  function readChoices(depth: number): GbnfSymbol[][] {
    if (depth > maxDepth) throw fail(`groups nested deeper than ${maxDepth}`);
    const choices = [readSequence(depth)];
    for (;;) {
      const back = at;
      skipSpace(true);
      if (codes[at] !== '|') {
        if (depth === 0) at = back;
        return choices;
      }
      at++;
      skipSpace(true);
      choices.push(readSequence(depth));
    }
  }

  for (skipSpace(true); at < codes.length; skipSpace(true)) {
    const name = readName();
    if (defined.has(name)) throw fail(`rule ${name} is defined twice`);
    defined.set(name, at);
    skipSpace(false);
    if (codes.slice(at, at + 3).join('') !== '::=') throw fail('::= expected');
    at += 3;
    skipSpace(true);
    const rule = ruleOf(name);
    rules[rule] = readChoices(0);
    if (at < codes.length && !/[\r\n]/.test(codes[at]!)) throw fail(`unexpected ${JSON.stringify(codes[at])}`);
  }
  for (const name of numbers.keys()) if (!defined.has(name)) throw malformed('GBNF', `rule ${name}`, 'is not defined');
  if (!defined.has('root')) throw malformed('GBNF', 0, 'rule root is missing');
  return { rules, names, root: numbers.get('root')! };
}
