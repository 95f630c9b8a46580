import type { GrammarLimits } from '../limits.ts';
import { malformed, unsupported } from '../limits.ts';
import type { CodeRanges } from './code-ranges.ts';
import { ANY } from './code-ranges.ts';
import { readClass, readEscapedSet, type RegexReader } from './regex-classes.ts';

/** A pattern as a tree. `start` and `end` are the anchors. */
export type RegexNode =
  | { readonly kind: 'set'; readonly ranges: CodeRanges }
  | { readonly kind: 'sequence'; readonly parts: readonly RegexNode[] }
  | { readonly kind: 'choice'; readonly parts: readonly RegexNode[] }
  | { readonly kind: 'repeat'; readonly part: RegexNode; readonly min: number; readonly max: number }
  | { readonly kind: 'start' }
  | { readonly kind: 'end' };

const notLineEnd: CodeRanges = [0, 9, 11, 12, 14, 0x2027, 0x202a, ANY[1]!, ANY[2]!, ANY[3]!];

/** Parses an ECMA-262 pattern in Unicode mode; rejects look-around, back references and word boundaries. */
export function parseRegex(pattern: string, limits: GrammarLimits): RegexNode {
  if (pattern.length > limits.maxSourceLength) {
    throw malformed('pattern', 0, `${pattern.length} characters, the limit is ${limits.maxSourceLength}`);
  }
  const reader: RegexReader = {
    codes: [...pattern],
    at: 0,
    fail: (reason) => malformed(`pattern ${JSON.stringify(pattern.slice(0, 80))}`, `character ${reader.at}`, reason),
    refuse: (feature) => unsupported('pattern', null, `${feature} at character ${reader.at} cannot be enforced`),
  };
  const node = readChoice(reader, 0, limits.maxDepth);
  if (reader.at < reader.codes.length) throw reader.fail('unmatched )');
  return node;
}

function readChoice(reader: RegexReader, depth: number, maxDepth: number): RegexNode {
  if (depth > maxDepth) throw reader.fail(`groups nested deeper than ${maxDepth}`);
  const choices: RegexNode[] = [];
  for (;;) {
    const parts: RegexNode[] = [];
    while (reader.at < reader.codes.length && reader.codes[reader.at] !== '|' && reader.codes[reader.at] !== ')') {
      parts.push(readQuantified(reader, depth, maxDepth));
    }
    choices.push(parts.length === 1 ? parts[0]! : { kind: 'sequence', parts });
    if (reader.codes[reader.at] !== '|') break;
    reader.at++;
  }
  return choices.length === 1 ? choices[0]! : { kind: 'choice', parts: choices };
}

function readQuantified(reader: RegexReader, depth: number, maxDepth: number): RegexNode {
  const part = readAtom(reader, depth, maxDepth);
  const bounds = readQuantifier(reader);
  if (bounds === null) return part;
  if (part.kind === 'start' || part.kind === 'end') throw reader.fail('nothing to repeat');
  // Lazy or greedy: the same texts match.
  if (reader.codes[reader.at] === '?') reader.at++;
  if (readQuantifier(reader) !== null) throw reader.fail('nothing to repeat');
  return { kind: 'repeat', part, min: bounds[0], max: bounds[1] };
}

function readQuantifier(reader: RegexReader): [number, number] | null {
  const simple = { '*': [0, Infinity], '+': [1, Infinity], '?': [0, 1] } as const;
  const next = reader.codes[reader.at];
  if (next === '*' || next === '+' || next === '?') {
    reader.at++;
    return [...simple[next]];
  }
  if (next !== '{') return null;
  const match = /^\{(\d+)(,(\d*))?\}/.exec(reader.codes.slice(reader.at, reader.at + 40).join(''));
  if (match === null) return null;
  const min = Number(match[1]);
  const max = match[2] === undefined ? min : match[3] === '' ? Infinity : Number(match[3]);
  if (max < min) throw reader.fail(`repetition from ${min} down to ${max}`);
  reader.at += match[0].length;
  return [min, max];
}

function readAtom(reader: RegexReader, depth: number, maxDepth: number): RegexNode {
  const next = reader.codes[reader.at]!;
  if (next === '(') return readGroup(reader, depth, maxDepth);
  if (next === '[') return { kind: 'set', ranges: readClass(reader) };
  if (next === '\\') return { kind: 'set', ranges: readEscapedSet(reader, false) };
  if (next === '*' || next === '+' || next === '?') throw reader.fail('nothing to repeat');
  reader.at++;
  if (next === '^') return { kind: 'start' };
  if (next === '$') return { kind: 'end' };
  if (next === '.') return { kind: 'set', ranges: notLineEnd };
  const code = next.codePointAt(0)!;
  return { kind: 'set', ranges: [code, code] };
}

function readGroup(reader: RegexReader, depth: number, maxDepth: number): RegexNode {
  const opened = reader.at;
  reader.at++;
  if (reader.codes[reader.at] === '?') {
    const head = reader.codes.slice(reader.at, reader.at + 3).join('');
    if (head.startsWith('?=') || head.startsWith('?!')) throw reader.refuse('look-ahead');
    if (head === '?<=' || head === '?<!') throw reader.refuse('look-behind');
    if (head.startsWith('?:')) reader.at += 2;
    else if (head.startsWith('?<')) {
      const end = reader.codes.indexOf('>', reader.at);
      if (end < 0) throw reader.fail('group name without >');
      reader.at = end + 1;
    } else throw reader.fail('unknown kind of group');
  }
  const node = readChoice(reader, depth + 1, maxDepth);
  if (reader.codes[reader.at] !== ')') throw reader.fail(`the group opened at character ${opened} is not closed`);
  reader.at++;
  return node;
}
