import { expect, test } from 'vitest';
import { resolveCandidates } from '../candidates.ts';
import { QUERY_FEATURE_NAMES } from '../explain.ts';
import { candidate } from '../test-examples.contract.ts';
import { queryFeatures, splitChoices } from './query-features.ts';
import { fitRouteEncoder, loadRouteEncoder, withoutVectors } from './route-encoder.ts';
import { placesInVersion1 } from './state-features.ts';

const QUESTION = 'Which of these is not 12?\nA. twelve sheep\nB. a dozen sheep\nC. 13\nD. 7 + 5\nAnswer:';

test('[R19] a question with choices is taken apart, and each of the 32 numbers has its name', () => {
  expect(splitChoices(QUESTION)).toEqual({
    stem: 'Which of these is not 12?',
    choices: ['twelve sheep', 'a dozen sheep', '13', '7 + 5'],
  });
  const features = queryFeatures(QUESTION, 3);
  expect(features).toHaveLength(32);
  const byName = Object.fromEntries(QUERY_FEATURE_NAMES.map((name, i) => [name, features[i]!]));
  expect(QUERY_FEATURE_NAMES).toHaveLength(32);
  expect(byName).toMatchObject({ negation: 1, 'question mark': 1, choices: 1, 'choices with digits': 0.5, 'which or what': 1 }); // prettier-ignore
  expect(byName['turns']).toBeCloseTo(Math.log(3), 6);
  expect(byName['most alike choices']).toBeCloseTo(1 / 4, 6);
  for (const text of ['', '\n', '🙂'.repeat(1000), 'A. \nB. '])
    expect(queryFeatures(text).every(Number.isFinite)).toBe(true);
});

test('[R19] the last turn is what is read; blocks that do not add up are refused', () => {
  const requests = [{ turns: ['one two three'] }, { turns: ['two three four'] }];
  const encoder = fitRouteEncoder(requests, { numBuckets: 256 });
  const { features, query, embedding } = encoder.encode({ turns: ['hello', 'two three'] });
  expect(features).toHaveLength(128);
  expect(features.subarray(0, 32)).toEqual(query);
  expect(Math.hypot(...embedding)).toBeCloseTo(1, 5);
  expect(encoder.encode({ turns: ['good bye', 'two three'] }).features).toEqual(features);
  expect(() => fitRouteEncoder(requests, { embedding: 17 })).toThrow(/129 numbers, not 128/);
  expect(() => fitRouteEncoder([], {})).toThrow(/0 requests/);
});

test('[R19] every number of retrieval and system is of a request that has it', () => {
  const encoder = fitRouteEncoder([{ turns: ['one two three'] }, { turns: ['two three four'] }], { numBuckets: 256 });
  const { features } = encoder.encode({
    turns: ['two'],
    retrieval: { similarities: [0.9, 0.5, NaN] },
    system: { load: 0.25, latencyMs: [0, 100] },
  });
  expect(features[48]).toBeCloseTo(Math.log1p(3), 6);
  expect(features[49]).toBeCloseTo(0.9, 6);
  expect([...features.subarray(48 + 26, 48 + 30)].map((value) => Math.round(value * 100) / 100)).toEqual([
    0.9, 0.5, 0, 0,
  ]);
  expect(features[96]).toBe(0.25);
  expect(features[98]).toBeCloseTo(Math.log1p(100) / 5, 6);
  expect(features.every(Number.isFinite)).toBe(true);
  const full = encoder.encode({
    turns: ['two'],
    retrieval: { similarities: Array.from({ length: 32 }, (_, i) => 0.95 - i / 40) },
    system: { load: 1, latencyMs: Array.from({ length: 31 }, () => 5) },
  }).features;
  const numUnused = [...full.subarray(48 + 26)].filter((value) => value === 0).length;
  expect(numUnused).toBe(0);
});

test('[R14] what a router of version 1 knew has its place in this one, once', () => {
  const places = [...placesInVersion1(48, 32)];
  const known = places.filter((place) => place >= 0);
  expect(new Set(known).size).toBe(known.length);
  expect(places.slice(0, 12)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13]);
  expect(places.slice(45, 52)).toEqual([47, -1, -1, 48, 48 + 5, 48 + 8, 48 + 11]);
  expect(places.slice(48 + 9)).toEqual([48 + 29, ...Array.from({ length: 22 }, () => -1)]);
});

test('[R20] sentence vectors keep their angles, and the features stay those of the text', () => {
  // Four corners of a square in the plane of numbers 3 and 5, far wider along 3.
  const corner = (a: number, b: number): Float32Array => Float32Array.from({ length: 300 }, (_, i) => (i === 3 ? a : i === 5 ? b : 0)); // prettier-ignore
  const requests = [corner(9, 1), corner(9, -1), corner(-9, 1), corner(-9, -1)].map((vector, i) => ({ turns: [`text ${i}`], vector })); // prettier-ignore
  const encoder = fitRouteEncoder(requests, { numBuckets: 256, vector: 300 }, 'a space');
  const [a, b, c] = requests.map((request) => encoder.encode(request));
  const dot = (x: Float32Array, y: Float32Array): number => x.reduce((sum, value, i) => sum + value * y[i]!, 0);
  expect(a!.vector).toHaveLength(192);
  expect(dot(a!.vector!, a!.vector!)).toBeCloseTo(1, 5);
  expect(dot(a!.vector!, b!.vector!)).toBeCloseTo(80 / 82, 5);
  expect(dot(a!.vector!, c!.vector!)).toBeCloseTo(-80 / 82, 5);
  const loaded = loadRouteEncoder(encoder.save());
  expect([loaded.space, loaded.encode(requests[1]!)]).toEqual(['a space', b]);
  const plain = withoutVectors(encoder);
  expect(plain.space).toBeNull();
  expect(plain.encode(requests[1]!)).toEqual({ ...b, vector: undefined });
});

test('[R20] a request may have no vector; one of another width or not finite is refused', () => {
  const requests = [
    { turns: ['a'], vector: Float32Array.of(1, 2) },
    { turns: ['b'], vector: Float32Array.of(2, 1) },
  ];
  const encoder = fitRouteEncoder(requests, { numBuckets: 256, vector: 2 });
  expect(encoder.encode({ turns: ['a'] }).vector).toBeUndefined();
  expect(() => encoder.encode({ turns: ['a'], vector: new Float32Array(3) })).toThrow(/3 numbers, the encoder needs 2/);
  expect(() => encoder.encode({ turns: ['a'], vector: Float32Array.of(0, NaN) })).toThrow(/number 1 .* is NaN/);
});

test('candidates are checked as a whole', () => {
  expect(resolveCandidates([candidate('a', 1)])).toEqual([candidate('a', 1)]);
  expect(() => resolveCandidates([])).toThrow(/1 to 256/);
  expect(() => resolveCandidates([candidate('a'), candidate('a')])).toThrow(/"a" is configured twice/);
  expect(() => resolveCandidates([candidate('a', -1)])).toThrow(/pricePerToken must be 0 or more/);
  expect(() => resolveCandidates([{ ...candidate('a'), color: 1 } as never])).toThrow(/unknown key "color"/);
});

test('[R19] what was foreseen is encoded as it would be, for the same turns only, and once', () => {
  const fitted = (): ReturnType<typeof fitRouteEncoder> =>
    fitRouteEncoder([{ turns: ['some rain'] }, { turns: ['some sun'] }, { turns: ['hello', 'no rain, no sun'] }]);
  const [encoder, plain] = [fitted(), fitted()];
  const requests = [['some rain'], ['before', 'some rain'], [QUESTION], [''], []];
  for (const turns of requests) encoder.foresee(turns);
  for (const turns of requests) {
    const system = { load: turns.length / 4, latencyMs: [1, 2] };
    for (let round = 0; round < 2; round++) {
      expect(encoder.encode({ turns, system })).toEqual(plain.encode({ turns, system }));
    }
  }
});
