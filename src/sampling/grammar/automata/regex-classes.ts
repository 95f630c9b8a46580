import type { CodeRanges } from './code-ranges.ts';
import { MAX_CODE_POINT, complementRanges, normalizeRanges } from './code-ranges.ts';

const DIGITS: CodeRanges = [48, 57];
const WORD: CodeRanges = [48, 57, 65, 90, 95, 95, 97, 122];
const SPACE: CodeRanges = normalizeRanges([
  9, 13, 32, 32, 0xa0, 0xa0, 0x1680, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029, 0x202f, 0x202f, 0x205f, 0x205f, 0x3000,
  0x3000, 0xfeff, 0xfeff,
]);
const SETS = new Map<string, CodeRanges>([
  ['d', DIGITS],
  ['w', WORD],
  ['s', SPACE],
]);
const CONTROLS = new Map([
  ['t', 9],
  ['n', 10],
  ['v', 11],
  ['f', 12],
  ['r', 13],
  ['0', 0],
]);

// Computing one takes 30 ms over all code points: cached, and bounded because names come from outside.
const MAX_PROPERTIES = 64;
const properties = new Map<string, CodeRanges>();

function propertyRanges(name: string): CodeRanges | null {
  const known = properties.get(name);
  if (known !== undefined) return known;
  let matcher: RegExp;
  try {
    matcher = new RegExp(`^\\p{${name}}$`, 'u');
  } catch {
    return null;
  }
  const pairs: number[] = [];
  for (let code = 0; code <= MAX_CODE_POINT; code++) {
    if (!matcher.test(String.fromCodePoint(code))) continue;
    if (pairs.length > 0 && pairs.at(-1) === code - 1) pairs[pairs.length - 1] = code;
    else pairs.push(code, code);
  }
  const ranges = normalizeRanges(pairs);
  if (properties.size < MAX_PROPERTIES) properties.set(name, ranges);
  return ranges;
}

function readProperty(reader: RegexReader, isNegated: boolean): CodeRanges {
  const match = /^\{([A-Za-z0-9_=]{1,64})\}/.exec(reader.codes.slice(reader.at, reader.at + 70).join(''));
  const ranges = match === null ? null : propertyRanges(match[1]!);
  if (match === null || ranges === null) throw reader.fail('unknown Unicode property');
  reader.at += match[0].length;
  return isNegated ? complementRanges(ranges) : ranges;
}

function readHex(reader: RegexReader, digits: number): number {
  const text = reader.codes.slice(reader.at, reader.at + digits).join('');
  if (!new RegExp(`^[0-9a-fA-F]{${digits}}$`).test(text)) throw reader.fail(`expected ${digits} hexadecimal digits`);
  reader.at += digits;
  return Number.parseInt(text, 16);
}

function readUnicodeEscape(reader: RegexReader): number {
  if (reader.codes[reader.at] === '{') {
    const match = /^\{([0-9a-fA-F]{1,8})\}/.exec(reader.codes.slice(reader.at, reader.at + 12).join(''));
    const code = match === null ? Infinity : Number.parseInt(match[1]!, 16);
    if (match === null || code > MAX_CODE_POINT) throw reader.fail('no such code point');
    reader.at += match[0].length;
    return code;
  }
  const high = readHex(reader, 4);
  if (high < 0xd800 || high > 0xdbff || reader.codes[reader.at] !== '\\' || reader.codes[reader.at + 1] !== 'u') {
    return high;
  }
  const back = reader.at;
  reader.at += 2;
  const low = reader.codes[reader.at] === '{' ? 0 : readHex(reader, 4);
  if (low >= 0xdc00 && low <= 0xdfff) return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
  reader.at = back;
  return high;
}

/** Reads an escape after its backslash. */
export function readEscapedSet(reader: RegexReader, inClass: boolean): CodeRanges {
  reader.at++;
  const next = reader.codes[reader.at];
  if (next === undefined) throw reader.fail('a backslash at the end');
  reader.at++;
  const set = SETS.get(next.toLowerCase());
  if (set !== undefined) return next === next.toLowerCase() ? set : complementRanges(set);
  if (next === 'p' || next === 'P') return readProperty(reader, next === 'P');
  if (next === 'b' && inClass) return [8, 8];
  if (next === 'b' || next === 'B') throw reader.refuse('a word boundary');
  if (/[1-9k]/.test(next)) throw reader.refuse('a back reference');
  const control = CONTROLS.get(next);
  if (next === '0' && /\d/.test(reader.codes[reader.at] ?? '')) throw reader.fail('an octal escape');
  if (control !== undefined) return [control, control];
  let code = next.codePointAt(0)!;
  if (next === 'x') code = readHex(reader, 2);
  else if (next === 'u') code = readUnicodeEscape(reader);
  else if (next === 'c') {
    const letter = reader.codes[reader.at++] ?? '';
    if (!/^[A-Za-z]$/.test(letter)) throw reader.fail('\\c requires a letter');
    code = letter.codePointAt(0)! % 32;
  } else if (/[A-Za-z0-9]/.test(next)) throw reader.fail(`unknown escape \\${next}`);
  return normalizeRanges([code, code]);
}

/** Reads a class in brackets, starting at its `[`. */
export function readClass(reader: RegexReader): CodeRanges {
  const opened = reader.at;
  reader.at++;
  const isNegated = reader.codes[reader.at] === '^';
  if (isNegated) reader.at++;
  const pairs: number[] = [];
  const readMember = (): CodeRanges => {
    const next = reader.codes[reader.at]!;
    if (next === '\\') return readEscapedSet(reader, true);
    reader.at++;
    return [next.codePointAt(0)!, next.codePointAt(0)!];
  };
  for (;;) {
    const next = reader.codes[reader.at];
    if (next === undefined) throw reader.fail(`the class opened at character ${opened} is not closed`);
    if (next === ']') break;
    const from = readMember();
    const isRange =
      reader.codes[reader.at] === '-' &&
      reader.codes[reader.at + 1] !== ']' &&
      reader.codes[reader.at + 1] !== undefined;
    if (!isRange || from.length !== 2 || from[0] !== from[1]) {
      pairs.push(...from);
      continue;
    }
    reader.at++;
    const to = readMember();
    if (to.length !== 2 || to[0] !== to[1]) pairs.push(...from, 45, 45, ...to);
    else if (to[0]! < from[0]!) throw reader.fail('the range is out of order');
    else pairs.push(from[0]!, to[0]!);
  }
  reader.at++;
  const ranges = normalizeRanges(pairs);
  return isNegated ? complementRanges(ranges) : ranges;
}

/** The pattern and the read position, in code points, so that a character outside the BMP is one. */
export interface RegexReader {
  readonly codes: readonly string[];
  at: number;
  fail(reason: string): Error;
  refuse(feature: string): Error;
}
