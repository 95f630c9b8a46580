import { describe, expect, test } from 'vitest';
import { readDataSet } from './data-set.ts';
import { answersOf, pairsOf, ratingsOf, tasksOf } from './method-lines.ts';
import { removeNearDuplicates } from './near-duplicates.ts';
import { readDataLines } from './read-lines.ts';
import { partOf } from './split.ts';

const jsonl = (...values: readonly unknown[]): string => values.map((value) => JSON.stringify(value)).join('\n');
const options = { name: 'data.jsonl', sha256: 'aa', nearDuplicates: 0.8, heldOut: 0.2, validation: 0.1 };

describe('[TR4] lines', () => {
  test('are read in every form', () => {
    const lines = readDataLines(
      `\uFEFF${jsonl(
        { prompt: 'a', completion: 'b', weight: -0.5, id: 'one', source: 'crm' },
        { prompt: 'a', answer: 'b' },
        { messages: [{ role: 'user', content: 'hi' }, { role: 'assistant', content: 'hello' }], thumbs: 'up' }, // prettier-ignore
        { prompt: [{ role: 'user', content: 'hi' }], chosen: 'x', rejected: 'y' },
      )}\r\n\n${jsonl({ prompt: 'a', schema: { type: 'object' }, expected: { city: 'Rome' } })}\n`,
      'data',
    );
    expect(lines.map(({ line, form }) => `${line} ${form}`)).toEqual([
      '1 answer',
      '2 answer',
      '3 answer',
      '4 preference',
      '6 task',
    ]);
    expect(lines[2]).toMatchObject({ prompt: [{ role: 'user', content: 'hi' }], completion: 'hello', thumbs: 'up' });
  });

  test('that are malformed are refused together, with their numbers', () => {
    const bad = [
      '{"prompt": "a"',
      JSON.stringify({ prompt: 'a', completion: 'b', wieght: 1 }),
      JSON.stringify({ prompt: 'a', completion: 'b' }),
      '[1]',
      JSON.stringify({ prompt: 'a', chosen: 'b', rejected: 'b' }),
      JSON.stringify({ prompt: 'a', schema: {}, expected: {} }),
      JSON.stringify({ messages: [{ role: 'user', content: 'hi' }, { role: 'user', content: 'ho' }] }), // prettier-ignore
    ].join('\n');
    expect(() => readDataLines(bad, 'data.jsonl')).toThrow(
      expect.objectContaining({
        code: 'invalid_option',
        message: expect.stringMatching(
          /^data\.jsonl: 6 of 7 lines are malformed: line 1: not JSON; line 2: "wieght".*; line 4: not an object; line 5: .*equal; line 6: "expected": is empty.*; line 7: "messages": must end with an answer/,
        ),
        data: expect.objectContaining({ line: 1, numMalformed: 6 }),
      }),
    );
    expect(() => readDataLines('\n', 'data.jsonl')).toThrow('data.jsonl has no lines');
  });
});

describe('[TR5] near-duplicates', () => {
  const long = 'The small library in the old town opens at nine in the morning and closes at six in the evening on all weekdays'; // prettier-ignore
  const read = (...values: readonly unknown[]) => readDataLines(jsonl(...values), 'data');

  test('of case, punctuation and one word are removed; the first line stays', () => {
    const { kept, duplicates } = removeNearDuplicates(
      read(
        { prompt: 'When?', completion: long },
        { prompt: 'When?', completion: long },
        { prompt: 'when', completion: `${long.toUpperCase()}!` },
        { prompt: 'When?', completion: long.replace('weekdays', 'days') },
        { prompt: 'When?', completion: long.split(' ').toReversed().join(' ') },
        { prompt: 'Where?', completion: long },
      ),
      0.8,
    );
    expect(kept.map(({ line }) => line)).toEqual([1, 5, 6]);
    expect(duplicates).toEqual([
      { line: 2, of: 1, isExact: true },
      { line: 3, of: 1, isExact: false },
      { line: 4, of: 1, isExact: false },
    ]);
  });

  test('with another label or in exchanged roles are no duplicates', () => {
    const lines = read(
      { prompt: 'a', completion: long, thumbs: 'up' },
      { prompt: 'a', completion: long, thumbs: 'down' },
      { prompt: 'a', chosen: long, rejected: 'no' },
      { prompt: 'a', chosen: 'no', rejected: long },
    );
    expect(removeNearDuplicates(lines, 0.8).kept).toHaveLength(4);
  });

  test('are found among thousands of lines', () => {
    const words = (seed: number): string => Array.from({ length: 30 }, (_, i) => `w${(seed * 7919 + i * i * 31) % 9973}`).join(' '); // prettier-ignore
    const lines = read(
      ...Array.from({ length: 1500 }, (_, i) => ({ prompt: `q${i}`, completion: words(i) })),
      ...Array.from({ length: 500 }, (_, i) => ({ prompt: `q${i}`, completion: `${words(i)} more` })),
    );
    const { kept, duplicates } = removeNearDuplicates(lines, 0.8);
    expect(kept).toHaveLength(1500);
    expect(duplicates.every(({ line, of }) => line === of + 1500)).toBe(true);
  });
});

describe('[TR6] splits', () => {
  const lines = Array.from({ length: 400 }, (_, i) => ({ prompt: `question number ${i * i}`, completion: `answer ${i}` })); // prettier-ignore

  test('stay the same when lines are added or reordered, and have about the wanted sizes', () => {
    const whole = readDataSet(jsonl(...lines), options);
    const half = readDataSet(jsonl(...lines.slice(0, 200).toReversed()), options);
    const prompts = (part: 'train' | 'validation' | 'heldOut', set = whole) => new Set(set.parts[part].map(({ prompt }) => prompt)); // prettier-ignore
    for (const part of ['train', 'validation', 'heldOut'] as const) {
      for (const prompt of prompts(part, half)) expect(prompts(part).has(prompt)).toBe(true);
    }
    const { parts } = whole.provenance;
    expect(parts.train + parts.validation + parts.heldOut).toBe(400);
    expect(parts.heldOut).toBeGreaterThan(55);
    expect(parts.heldOut).toBeLessThan(105);
    expect(parts.validation).toBeGreaterThan(20);
    expect(whole.provenance).toMatchObject({ name: 'data.jsonl', sha256: 'aa', numLines: 400, numNearDuplicates: 0 });
  });

  test('keep all answers of a prompt together, also if it is written otherwise', () => {
    for (let i = 0; i < 50; i++) {
      const [one, other] = readDataLines(
        jsonl({ prompt: `Where is ${i}?`, completion: 'x' }, { prompt: `where is  ${i}`, completion: 'y' }),
        'data',
      );
      expect(partOf(one!, options)).toBe(partOf(other!, options));
    }
  });
});

test('[TR7] each method takes its lines from ratings, corrections and pairs', () => {
  const lines = readDataLines(
    jsonl(
      { prompt: 'q', completion: 'good', thumbs: 'up' },
      { prompt: 'q', completion: 'bad', thumbs: 'down' },
      { prompt: 'r', completion: 'wrong', correction: 'right', thumbs: 'down' },
      { prompt: 's', chosen: 'yes', rejected: 'no' },
      { prompt: 't', completion: 'plain' },
      { prompt: 'u', schema: {}, expected: { a: 1 } },
    ),
    'data',
  );
  expect(answersOf(lines).map(({ answer }) => answer)).toEqual(['good', 'right', 'yes', 'plain']);
  expect(pairsOf(lines).map(({ chosen, rejected }) => `${chosen} > ${rejected}`)).toEqual([
    'right > wrong',
    'yes > no',
    'good > bad',
  ]);
  expect(ratingsOf(lines).map(({ answer, isAccepted }) => `${answer} ${isAccepted}`)).toEqual([
    'good true',
    'bad false',
    'right true',
    'wrong false',
    'yes true',
    'no false',
  ]);
  expect(tasksOf(lines)).toHaveLength(1);
});
