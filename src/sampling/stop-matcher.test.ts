import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createStopMatcher } from './stop-matcher.ts';

function run(stops: string[], chunks: string[]): { text: string; stopString: string | null } {
  const matcher = createStopMatcher(stops);
  let text = '';
  for (const result of [...chunks.map((chunk) => () => matcher.push(chunk)), () => matcher.flush()]) {
    const { emit, stopped, stopString } = result();
    text += emit;
    if (stopped) return { text, stopString: stopString ?? null };
  }
  return { text, stopString: null };
}

/** Earliest start, longest at that start, by searching the whole text. */
function naive(stops: string[], text: string): { text: string; stopString: string | null } {
  const starts = stops.map((stop) => text.indexOf(stop)).filter((start) => start >= 0);
  if (starts.length === 0) return { text, stopString: null };
  const start = Math.min(...starts);
  const here = stops.filter((stop) => text.startsWith(stop, start));
  return { text: text.slice(0, start), stopString: here.reduce((a, b) => (b.length > a.length ? b : a)) };
}

test('gives the same result however the text is split', () => {
  const letters = (min: number, max: number) =>
    fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: min, maxLength: max }).map((list) => list.join(''));
  fc.assert(
    fc.property(
      fc.array(letters(1, 5), { maxLength: 4 }),
      fc.array(letters(0, 6), { maxLength: 12 }),
      (stops, chunks) => {
        expect(run(stops, chunks)).toEqual(naive(stops, chunks.join('')));
      },
    ),
    { numRuns: 2000, seed: 11 },
  );
});

test('holds text back only while it could start a stop string', () => {
  const matcher = createStopMatcher(['\n\nUser:']);
  expect(matcher.push('Hello')).toEqual({ emit: 'Hello', stopped: false });
  expect(matcher.push(' you\n')).toEqual({ emit: ' you', stopped: false });
  expect(matcher.push('\nUse')).toEqual({ emit: '', stopped: false });
  expect(matcher.push('less')).toEqual({ emit: '\n\nUseless', stopped: false });
  expect(matcher.push('!\n\nUs')).toEqual({ emit: '!', stopped: false });
  expect(matcher.push('er: x')).toEqual({ emit: '', stopped: true, stopString: '\n\nUser:' });
  expect(matcher.push('more')).toEqual({ emit: '', stopped: true });
});

test('prefers the longer of two stop strings at one place, even if it completes later', () => {
  const matcher = createStopMatcher(['ab', 'abc']);
  expect(matcher.push('xab')).toEqual({ emit: 'x', stopped: false });
  expect(matcher.push('c')).toEqual({ emit: '', stopped: true, stopString: 'abc' });
  expect(run(['ab', 'abc'], ['xab', 'd'])).toEqual({ text: 'x', stopString: 'ab' });
  expect(run(['ab', 'abc'], ['xab'])).toEqual({ text: 'x', stopString: 'ab' });
});

test('releases held-back text at the end', () => {
  expect(run(['stop'], ['do not st'])).toEqual({ text: 'do not st', stopString: null });
});
