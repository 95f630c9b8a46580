/** Reading state of one character inside a JSON string. */
export interface CharacterState {
  /** 0 between characters; otherwise what the next byte must be. */
  readonly mode: number;
  /** Missing bytes or digits. */
  readonly missing: number;
  /** The bits read so far. */
  readonly bits: number;
  /** UTF-8: bytes of the whole character. */
  readonly size: number;
}

export const BETWEEN: CharacterState = { mode: 0, missing: 0, bits: 0, size: 0 };

/** The last two are those of characters that only escapes can write; the others take any escape. */
const MODE = {
  between: 0,
  utf8: 1,
  escape: 2,
  hex: 3,
  lowBackslash: 4,
  lowU: 5,
  lowHex: 6,
  neededEscape: 7,
  controlHex: 8,
} as const;
/** The smallest code of two, three and four bytes; smaller codes are overlong. */
const LEAST = [0, 0, 0x80, 0x800, 0x10000] as const;
const MAX_CODE_POINT = 0x10ffff;
const ESCAPES = new Map<number, number>([
  [0x22, 0x22],
  [0x5c, 0x5c],
  [0x2f, 0x2f],
  [0x62, 8],
  [0x66, 12],
  [0x6e, 10],
  [0x72, 13],
  [0x74, 9],
]);
const LETTERS = new Map([...ESCAPES].map(([letter, code]) => [code, String.fromCharCode(letter)]));
/** Control characters without a letter: lo, hi, lo, hi, … */
const UNNAMED_CONTROLS = [0x00, 0x07, 0x0b, 0x0b, 0x0e, 0x1f] as const;
const HIGH = 0xd800;
const LOW = 0xdc00;
const LAST_LOW = 0xdfff;

/** Result of a byte: a whole character (>= 0), the closing quote, nothing yet, or invalid. */
export const RESULT = { quote: -1, partial: -2, invalid: -3 } as const;

/** The state after the last `readByte` that returned `partial`. */
export let nextState: CharacterState = BETWEEN;

function partial(mode: number, missing: number, bits: number, size = 0): number {
  nextState = { mode, missing, bits, size };
  return RESULT.partial;
}

function hexValue(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const letter = byte | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}

function readHex(state: CharacterState, byte: number): number {
  const digit = hexValue(byte);
  if (digit < 0) return RESULT.invalid;
  const bits = state.bits * 16 + digit;
  if (state.missing > 1) return partial(state.mode, state.missing - 1, bits);
  if (state.mode === MODE.hex) {
    if (bits >= HIGH && bits < LOW) return partial(MODE.lowBackslash, 0, bits);
    return bits >= LOW && bits <= LAST_LOW ? RESULT.invalid : bits;
  }
  const high = Math.floor(bits / 0x10000);
  const low = bits % 0x10000;
  return low >= LOW && low <= LAST_LOW ? 0x10000 + (high - HIGH) * 0x400 + (low - LOW) : RESULT.invalid;
}

/** Ranges of the unnamed control characters that the digits so far can still become. */
function controlsOf({ bits, missing }: Pick<CharacterState, 'bits' | 'missing'>): number[] {
  const [lo, hi] = [bits * 16 ** missing, (bits + 1) * 16 ** missing - 1];
  const ranges: number[] = [];
  for (let i = 0; i < UNNAMED_CONTROLS.length; i += 2) {
    const [from, to] = [Math.max(lo, UNNAMED_CONTROLS[i]!), Math.min(hi, UNNAMED_CONTROLS[i + 1]!)];
    if (from <= to) ranges.push(from, to);
  }
  return ranges;
}

function readControlHex(state: CharacterState, byte: number): number {
  const digit = hexValue(byte);
  const bits = state.bits * 16 + digit;
  const missing = state.missing - 1;
  if (digit < 0 || controlsOf({ bits, missing }).length === 0) return RESULT.invalid;
  return missing > 0 ? partial(MODE.controlHex, missing, bits) : bits;
}

function readLead(byte: number): number {
  if (byte < 0xc2 || byte > 0xf4) return RESULT.invalid;
  if (byte < 0xe0) return partial(MODE.utf8, 1, byte & 31, 2);
  return byte < 0xf0 ? partial(MODE.utf8, 2, byte & 15, 3) : partial(MODE.utf8, 3, byte & 7, 4);
}

function readContinuation(state: CharacterState, byte: number): number {
  if ((byte & 0xc0) !== 0x80) return RESULT.invalid;
  const bits = state.bits * 64 + (byte & 63);
  const span = 64 ** (state.missing - 1);
  const [lo, hi] = [bits * span, bits * span + span - 1];
  if (hi < LEAST[state.size]! || lo > MAX_CODE_POINT || (lo >= HIGH && hi <= LAST_LOW)) return RESULT.invalid;
  return state.missing > 1 ? partial(MODE.utf8, state.missing - 1, bits, state.size) : bits;
}

/**
 * Reads one byte. Overlong forms, lone surrogates and control characters are invalid. Unless `isAnyEscape`, so are escapes of
 * characters that can be written as themselves.
 */
export function readByte(state: CharacterState, byte: number, isAnyEscape = false): number {
  switch (state.mode) {
    case MODE.between:
      if (byte === 0x22) return RESULT.quote;
      if (byte === 0x5c) return partial(isAnyEscape ? MODE.escape : MODE.neededEscape, 0, 0);
      if (byte < 0x20) return RESULT.invalid;
      return byte < 0x80 ? byte : readLead(byte);
    case MODE.utf8:
      return readContinuation(state, byte);
    case MODE.escape:
      if (byte === 0x75) return partial(MODE.hex, 4, 0);
      return ESCAPES.get(byte) ?? RESULT.invalid;
    case MODE.neededEscape:
      if (byte === 0x75) return partial(MODE.controlHex, 4, 0);
      return byte === 0x2f ? RESULT.invalid : (ESCAPES.get(byte) ?? RESULT.invalid);
    case MODE.controlHex:
      return readControlHex(state, byte);
    case MODE.lowBackslash:
      return byte === 0x5c ? partial(MODE.lowU, 0, state.bits) : RESULT.invalid;
    case MODE.lowU:
      return byte === 0x75 ? partial(MODE.lowHex, 4, state.bits) : RESULT.invalid;
    default:
      return readHex(state, byte);
  }
}

/** Reads one byte of plain UTF-8 text, without quotes or escapes. */
export function readUtf8Byte(state: CharacterState, byte: number): number {
  if (state.mode === MODE.utf8) return readContinuation(state, byte);
  return byte < 0x80 ? byte : readLead(byte);
}

// One unfinished character of each size and number of missing bytes, without special cases.
const PLAIN_LEADS = [0, 0, 0x03, 0x01, 0x01] as const;
const plainCharacters = new Map<number, CharacterState>();

/**
 * A state shared by all unfinished characters of this size, where the grammar tells none of them apart; otherwise the
 * state itself. `isAlike`: whether all characters of the first range are treated like all of the second.
 */
export function shareUnfinished(
  state: CharacterState,
  isAlike: (lo: number, hi: number, otherLo: number, otherHi: number) => boolean,
): CharacterState {
  const { mode, missing, size } = state;
  const [lo, hi] = possibleCodes(state) as [number, number];
  if (mode !== MODE.utf8 || hi - lo + 1 !== 64 ** missing) return state;
  const bits = PLAIN_LEADS[size]! * 64 ** (size - 1 - missing);
  const span = 64 ** missing;
  if (!isAlike(lo, hi, bits * span, bits * span + span - 1)) return state;
  let plain = plainCharacters.get(8 * size + missing);
  if (plain === undefined) plainCharacters.set(8 * size + missing, (plain = { mode, missing, bits, size }));
  return plain;
}

/** Whether bytes of a multi-byte character are missing. */
export const isMultiByte = ({ mode }: CharacterState): boolean => mode === MODE.utf8;

/** The characters an unfinished one can still become: lo, hi, lo, hi, … */
export function possibleCodes(state: CharacterState): number[] {
  const { mode, missing, bits, size } = state;
  if (mode === MODE.utf8) {
    const span = 64 ** missing;
    return [Math.max(bits * span, LEAST[size]!), Math.min(bits * span + span - 1, MAX_CODE_POINT)];
  }
  if (mode === MODE.neededEscape) return [0x00, 0x1f, 0x22, 0x22, 0x5c, 0x5c];
  if (mode === MODE.controlHex) return controlsOf(state);
  if (mode === MODE.hex) {
    const [lo, hi] = [bits * 16 ** missing, (bits + 1) * 16 ** missing - 1];
    const [high, last] = [Math.max(lo, HIGH), Math.min(hi, LOW - 1)];
    const pairs = high <= last ? [astral(high, LOW), astral(last, LAST_LOW)] : [];
    return [lo, Math.min(hi, HIGH - 1), Math.max(lo, LAST_LOW + 1), hi, ...pairs];
  }
  if (mode === MODE.lowBackslash || mode === MODE.lowU) return [astral(bits, LOW), astral(bits, LAST_LOW)];
  if (mode === MODE.lowHex) {
    const digits = 4 - missing;
    const high = Math.floor(bits / 16 ** digits);
    const low = bits % 16 ** digits;
    const [lo, hi] = [Math.max(low * 16 ** missing, LOW), Math.min((low + 1) * 16 ** missing - 1, LAST_LOW)];
    return lo <= hi ? [astral(high, lo), astral(high, hi)] : [];
  }
  return [0, MAX_CODE_POINT];
}

function astral(high: number, low: number): number {
  return 0x10000 + (high - HIGH) * 0x400 + (low - LOW);
}

const encoder = new TextEncoder();
const hex4 = (unit: number): string => unit.toString(16).padStart(4, '0');

/** The bytes that complete the unfinished character to `code`. */
export function finishCharacter(state: CharacterState, code: number): Uint8Array {
  const { mode, missing, size } = state;
  if (mode === MODE.utf8) return encoder.encode(String.fromCodePoint(code)).subarray(size - missing);
  const units = String.fromCodePoint(code);
  const escaped = [...Array(units.length).keys()].map((i) => `\\u${hex4(units.charCodeAt(i))}`).join('');
  if (mode === MODE.escape || mode === MODE.neededEscape) return encoder.encode(LETTERS.get(code) ?? escaped.slice(1));
  // Counted from the end, because in the later modes the first of two units is already written.
  if (mode === MODE.hex || mode === MODE.controlHex) return encoder.encode(escaped.slice(6 - missing));
  const done = mode === MODE.lowBackslash ? 0 : mode === MODE.lowU ? 1 : 6 - missing;
  return encoder.encode(escaped.slice(6 + done));
}
