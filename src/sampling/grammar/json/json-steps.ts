import type { Dfa } from '../automata/automaton.ts';
import { dfaStep, hasEdgeInto } from '../automata/dfa.ts';
import { canonicalDecimal, parseDecimal } from '../numbers/decimal.ts';
import { isNumberPrefix, isNumberText } from '../numbers/number-text.ts';
import type { JsonProgress } from './json-progress.ts';
import { breakLine, endGap, GAP, isSpace, ON_ONE_LINE, type Place, stepGap, UNDECIDED } from './layout.ts';
import type { CharacterState } from './string-lexer.ts';
import { BETWEEN, RESULT, nextState, possibleCodes, readByte } from './string-lexer.ts';
import type {
  ArrayThread,
  Frame,
  KeyThread,
  NumberThread,
  ObjectThread,
  StartThread,
  TextThread,
  Thread,
  Watch,
} from './threads.ts';
import { DONE } from './threads.ts';

const CHAR = {
  line: 0x0a,
  quote: 0x22,
  comma: 0x2c,
  colon: 0x3a,
  openArray: 0x5b,
  closeArray: 0x5d,
  openObject: 0x7b,
  closeObject: 0x7d,
};
/** The level around a value, with the indent that its first item decided. */
function withUnit(up: Frame | null, unit: number): Frame | null {
  return up === null || up.unit === unit ? up : { ...up, unit };
}

/** Whether a character that an unfinished one can become continues the text. */
function canBecome(dfa: Dfa, state: number, unfinished: CharacterState): boolean {
  const codes = possibleCodes(unfinished);
  return codes.some((lo, i) => i % 2 === 0 && hasEdgeInto(dfa, state, lo, codes[i + 1]!));
}

const WORDS = new Map([
  [0x6e, 'null'],
  [0x74, 'true'],
  [0x66, 'false'],
]);

/** 1 for bytes of white space and those that a value starts with: most bytes of a vocabulary are neither. */
const STARTS = Uint8Array.from({ length: 256 }, (_, byte) => (' \t\n"{[-0123456789ntf'.includes(String.fromCharCode(byte)) ? 1 : 0)); // prettier-ignore

export interface JsonStep {
  step(thread: Thread, byte: number, out: Thread[]): void;
  /** The level around a number that is complete as it stands; null if incomplete. */
  endNumber(thread: NumberThread): Frame | null;
}

/** Advances threads by one byte. Only threads that can be completed are returned. */
export function createJsonStep(progress: JsonProgress, isAnyEscape: boolean): JsonStep {
  const { maxWhitespace } = progress.fuel.limits;

  const complete = (up: Frame | null, watch: Watch | null, canonical: string, out: Thread[]): void => {
    if (watch !== null && watch.excluded.includes(canonical)) return;
    if (up === null) out.push(DONE);
    else if (watch === null || up.read === null) out.push(up);
    else out.push({ ...up, read: [...up.read, canonical] });
  };

  const startValue = (thread: StartThread, byte: number, out: Thread[]): void => {
    if (STARTS[byte] !== 1) return;
    const { goal, watch, depth } = thread;
    const place: Place = { gap: thread.gap, unit: thread.up?.unit ?? UNDECIDED };
    if (isSpace(byte)) {
      const next = stepGap(place, byte, depth, maxWhitespace);
      if (next !== null) out.push({ ...thread, gap: next.gap, up: withUnit(thread.up, next.unit) });
      return;
    }
    const unit = endGap(place);
    if (unit === null) return;
    const up = withUnit(thread.up, unit);
    const found = progress.alternatives(goal);
    if (byte === CHAR.quote) {
      for (const text of found.texts) {
        const next: TextThread = { kind: 'text', text, state: 0, length: 0, character: BETWEEN, up, watch, read: '' };
        if (progress.isTextAlive(next)) out.push(next);
      }
    } else if (byte === CHAR.openObject) {
      for (const object of found.objects) {
        const read = watch === null ? null : [];
        const rest = {
          numKeys: 0,
          labels: [],
          others: [],
          someBits: 0,
          gap: GAP.none,
          unit,
          depth: depth + 1,
          up,
          watch,
          read,
        };
        out.push({ kind: 'object', object, phase: 'opened', ...rest });
      }
    } else if (byte === CHAR.openArray) {
      for (const array of found.arrays) {
        const read = watch === null && array.unique === null ? null : [];
        const counts = array.contains.map(() => 0);
        const layout = { gap: GAP.none, unit, isClosing: false };
        out.push({ kind: 'array', array, numItems: 0, counts, ...layout, depth: depth + 1, up, watch, read });
      }
    } else if (byte === 0x2d || (byte >= 0x30 && byte <= 0x39)) {
      const written = String.fromCharCode(byte);
      for (const { set } of found.numbers) {
        const watched = progress.watchedNumbers(set, watch);
        if (isNumberPrefix(watched, written, progress.fuel))
          out.push({ kind: 'number', set: watched, written, up, watch });
      }
    } else {
      const word = WORDS.get(byte);
      if (word === undefined || (watch !== null && watch.excluded.includes(word))) return;
      const isAllowed = word === 'null' ? found.isNull : found.booleans.includes(word === 'true');
      if (isAllowed) out.push({ kind: 'literal', word, at: 1, up, watch });
    }
  };

  const stepText = (thread: TextThread, byte: number, out: Thread[]): void => {
    const code = readByte(thread.character, byte, isAnyEscape);
    const { text } = thread;
    if (code >= 0) {
      const state = dfaStep(text.dfa, thread.state, code);
      if (state < 0 || thread.length >= text.max) return;
      const isCounted = text.min > 0 || text.max < Infinity;
      if (state === thread.state && !isCounted && thread.watch === null && thread.character === BETWEEN) {
        out.push(thread);
        return;
      }
      const read = thread.watch === null ? '' : thread.read + String.fromCodePoint(code);
      // Without a maximum, counts beyond the minimum are equivalent.
      const length = Math.min(thread.length + 1, text.max < Infinity ? Infinity : text.min);
      const { up, watch } = thread;
      const counted = isCounted ? length : 0;
      const next: TextThread = { kind: 'text', text, state, length: counted, character: BETWEEN, up, watch, read };
      if (progress.isTextAlive(next)) out.push(next);
    } else if (code === RESULT.quote) {
      if (text.dfa.labels[thread.state] === 0 || thread.length < text.min) return;
      complete(thread.up, thread.watch, JSON.stringify(thread.read), out);
    } else if (code === RESULT.partial) {
      const character = nextState;
      if (thread.length >= text.max) return;
      const next = { ...thread, character };
      const codes = possibleCodes(character);
      for (let i = 0; i < codes.length; i += 2) {
        if (!hasEdgeInto(text.dfa, thread.state, codes[i]!, codes[i + 1]!)) continue;
        if (progress.isTextAlive(next)) out.push(next);
        return;
      }
    }
  };

  /** A line break before the closing bracket, where the value may end. */
  const closingPlace = (thread: Frame, canonical: string): Place | null =>
    thread.watch?.excluded.includes(canonical) === true
      ? null
      : breakLine(thread.unit, thread.depth - 1, maxWhitespace);

  const stepObjectSpace = (thread: ObjectThread, byte: number, out: Thread[]): void => {
    const { phase, unit, depth } = thread;
    const isLine = byte === CHAR.line;
    if (phase === 'opened') {
      const next = isLine ? breakLine(unit, depth, maxWhitespace) : null;
      const broken: ObjectThread = { ...thread, phase: 'after-comma', ...next };
      if (next !== null && progress.canAddKey(broken)) out.push(broken);
    } else if (phase === 'after-value') {
      const isDone = isLine && unit !== ON_ONE_LINE && progress.isObjectDone(thread);
      const next = isDone ? closingPlace(thread, progress.canonicalObject(thread)) : null;
      if (next !== null) out.push({ ...thread, phase: 'closing', gap: next.gap });
    } else {
      const next = stepGap(thread, byte, depth, maxWhitespace);
      if (next !== null) out.push({ ...thread, ...next });
    }
  };
  const stepObject = (thread: ObjectThread, byte: number, out: Thread[]): void => {
    const { phase } = thread;
    if (isSpace(byte)) {
      stepObjectSpace(thread, byte, out);
    } else if (byte === CHAR.quote && (phase === 'opened' || phase === 'after-comma')) {
      const unit = phase === 'opened' ? ON_ONE_LINE : endGap(thread);
      if (unit === null) return;
      const object: ObjectThread = { ...thread, gap: GAP.none, unit };
      const next: KeyThread = { kind: 'key', object, state: 0, character: BETWEEN, read: '' };
      if (progress.isKeyAlive(next)) out.push(next);
    } else if (byte === CHAR.comma && phase === 'after-value') {
      const gap = thread.unit === ON_ONE_LINE ? GAP.space : GAP.spaceOrLine;
      const next: ObjectThread = { ...thread, phase: 'after-comma', gap };
      if (progress.canAddKey(next)) out.push(next);
    } else if (byte === CHAR.closeObject && phase !== 'after-comma' && thread.gap === GAP.none) {
      if (progress.isObjectDone(thread)) complete(thread.up, thread.watch, progress.canonicalObject(thread), out);
    }
  };

  const stepKey = (thread: KeyThread, byte: number, out: Thread[]): void => {
    const code = readByte(thread.character, byte, isAnyEscape);
    const { names } = thread.object.object;
    if (code >= 0) {
      const state = dfaStep(names, thread.state, code);
      if (state < 0) return;
      const read = thread.read + String.fromCodePoint(code);
      const next: KeyThread = { kind: 'key', object: thread.object, state, character: BETWEEN, read };
      if (progress.isKeyAlive(next)) out.push(next);
    } else if (code === RESULT.quote) {
      const next = progress.valuesOfKey(thread.object, names.labels[thread.state]!, thread.read);
      if (next.length > 0) out.push({ kind: 'colon', next });
    } else if (code === RESULT.partial) {
      const next: KeyThread = { ...thread, character: nextState };
      // First, because counting the names of every label takes long.
      if (!canBecome(names, thread.state, nextState)) return;
      if (progress.isKeyAlive(next)) out.push(next);
    }
  };

  const stepArraySpace = (thread: ArrayThread, byte: number, out: Thread[]): void => {
    const { unit, depth, numItems, isClosing } = thread;
    if (isClosing) {
      const next = stepGap(thread, byte, depth, maxWhitespace);
      if (next !== null) out.push({ ...thread, gap: next.gap });
    } else if (byte !== CHAR.line || unit === ON_ONE_LINE) {
      return;
    } else if (numItems === 0) {
      const next = breakLine(unit, depth, maxWhitespace);
      if (next === null) return;
      for (const start of progress.valuesOfItem({ ...thread, unit: next.unit })) out.push({ ...start, gap: next.gap });
    } else if (progress.isArrayDone(thread)) {
      const next = closingPlace(thread, progress.canonicalArray(thread));
      if (next !== null) out.push({ ...thread, gap: next.gap, isClosing: true });
    }
  };
  const stepArray = (thread: ArrayThread, byte: number, out: Thread[]): void => {
    if (isSpace(byte)) {
      stepArraySpace(thread, byte, out);
    } else if (byte === CHAR.closeArray) {
      if (thread.gap === GAP.none && progress.isArrayDone(thread)) {
        complete(thread.up, thread.watch, progress.canonicalArray(thread), out);
      }
    } else if (thread.isClosing) {
      return;
    } else if (thread.numItems === 0) {
      if (STARTS[byte] !== 1) return;
      for (const next of progress.valuesOfItem({ ...thread, unit: ON_ONE_LINE })) startValue(next, byte, out);
    } else if (byte === CHAR.comma) {
      const gap = thread.unit === ON_ONE_LINE ? GAP.space : GAP.spaceOrLine;
      for (const next of progress.valuesOfItem(thread)) out.push({ ...next, gap });
    }
  };

  const endNumber = ({ set, written, up, watch }: NumberThread): Frame | null => {
    if (up === null || !isNumberText(set, written, progress.fuel)) return null;
    const ended: Thread[] = [];
    complete(up, watch, canonicalDecimal(parseDecimal(written)), ended);
    return (ended[0] as Frame | undefined) ?? null;
  };

  const step = (thread: Thread, byte: number, out: Thread[]): void => {
    progress.fuel.burn(1, 'a token');
    switch (thread.kind) {
      case 'start':
        return startValue(thread, byte, out);
      case 'text':
        return stepText(thread, byte, out);
      case 'object':
        return stepObject(thread, byte, out);
      case 'key':
        return stepKey(thread, byte, out);
      case 'array':
        return stepArray(thread, byte, out);
      case 'literal': {
        const { word, at, up, watch } = thread;
        if (word.charCodeAt(at) !== byte) return;
        if (at + 1 === word.length) complete(up, watch, word, out);
        else out.push({ ...thread, at: at + 1 });
        return;
      }
      case 'number': {
        const { set, written } = thread;
        if (byte === CHAR.comma || byte === CHAR.closeArray || byte === CHAR.closeObject || isSpace(byte)) {
          const around = endNumber(thread);
          if (around !== null) step(around, byte, out);
        } else if (byte < 0x80) {
          const longer = written + String.fromCharCode(byte);
          if (isNumberPrefix(set, longer, progress.fuel)) out.push({ ...thread, written: longer });
        }
        return;
      }
      case 'colon':
        if (byte === CHAR.colon) out.push(...thread.next);
        return;
      default:
    }
  };
  return { step, endNumber };
}
