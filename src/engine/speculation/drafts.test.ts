import { describe, expect, test } from 'vitest';
import { createAcceptance } from './acceptance.ts';
import { chooseDraftLength } from './draft-length.ts';
import { createGrammarDrafts } from './grammar-drafts.ts';
import { createLearnedDrafts } from './learned-drafts.ts';
import { createLookupDrafts } from './lookup-drafts.ts';
import { createStepCosts } from './step-costs.ts';

describe('lookup', () => {
  test('continues an earlier part of the prompt or of the answer', () => {
    const source = createLookupDrafts([], 5);
    expect(source.propose([1, 2, 3, 4, 5], 4)).toBeNull();
    expect(source.propose([1, 2, 3, 4, 5, 1, 2], 3)).toEqual({ source: 'lookup', tokens: [3, 4, 5], evidence: 2 });
    expect(source.propose([1, 2, 3, 4, 5, 1, 2, 3, 4, 9, 2, 3, 4], 1)).toMatchObject({ tokens: [9], evidence: 3 });
  });

  test('goes on with a period at the end', () => {
    const source = createLookupDrafts([], 2);
    expect(source.propose([7, 8, 9, 8, 9], 5)!.tokens).toEqual([8, 9, 8, 9, 8]);
  });

  test('begins with the expected text and returns to it after a difference', () => {
    const source = createLookupDrafts([1, 2, 3, 4, 5, 6], 2);
    expect(source.propose([50, 51], 2)).toMatchObject({ source: 'prediction', tokens: [1, 2] });
    expect(source.propose([50, 51, 1], 2)).toMatchObject({ source: 'prediction', tokens: [2, 3] });
    expect(createLookupDrafts([1, 2], 2).propose([50, 51, 9], 2)).toBeNull();
    expect(source.propose([50, 51, 1, 9, 3, 4], 4)).toMatchObject({ source: 'prediction', tokens: [5, 6] });
  });
});

describe('grammar', () => {
  test('guesses grow from one token, and end at the first slow one', () => {
    let clock = 0;
    let costMs = 0;
    const asked: number[] = [];
    const source = createGrammarDrafts(
      (maxTokens) => {
        asked.push(maxTokens);
        clock += costMs;
        return [1, 2, 3, 4, 5, 6, 7, 8].slice(0, maxTokens);
      },
      () => clock,
    );
    for (let i = 0; i < 5; i++) expect(source.propose([], 8)).not.toBeNull();
    expect(asked).toEqual([1, 2, 4, 8, 8]);
    costMs = 5;
    source.propose([], 8);
    expect(source.propose([], 8)).toBeNull();
    expect(asked).toHaveLength(6);
  });

  test('an error of the grammar is left to the sampler', () => {
    const source = createGrammarDrafts(
      () => {
        throw new Error('too expensive');
      },
      () => 0,
    );
    expect(source.propose([], 8)).toBeNull();
  });
});

describe('learned', () => {
  const prompt = [1, 2, 3, 4];
  const answer = [10, 11, 12, 13, 14];

  test('guesses the answer to the same question, for the same tenant only', () => {
    const drafts = createLearnedDrafts();
    drafts.add('a', [...prompt, ...answer], prompt.length);
    expect(drafts.open('a').propose(prompt, 8)).toEqual({ source: 'learned', tokens: answer, evidence: 4 });
    expect(drafts.open('b').propose(prompt, 8)).toBeNull();
    drafts.forget('a');
    expect(drafts.open('a').propose(prompt, 8)).toBeNull();
    expect(drafts.count('a')).toBe(0);
  });

  test('drops the oldest answers and tenants beyond the limits', () => {
    const drafts = createLearnedDrafts({ maxTokens: 40, maxTenants: 2 });
    for (let i = 0; i < 6; i++) drafts.add('a', [100 + i, 200 + i, ...answer], 2);
    expect(drafts.count('a')).toBeLessThan(6);
    expect(drafts.open('a').propose([100, 200], 1)).toBeNull();
    expect(drafts.open('a').propose([105, 205], 1)).not.toBeNull();
    drafts.add('b', [...prompt, ...answer], 4);
    drafts.add('c', [...prompt, ...answer], 4);
    expect(drafts.tenants).toEqual(['b', 'c']);
  });

  test('an answer that comes again takes no more memory', () => {
    const drafts = createLearnedDrafts();
    for (let i = 0; i < 100; i++) drafts.add('a', [...prompt, ...answer], prompt.length);
    expect(drafts.count('a')).toBe(1);
  });

  test('restores what it stored and refuses anything else', () => {
    const drafts = createLearnedDrafts();
    drafts.add('a', [...prompt, ...answer], prompt.length);
    const stored = drafts.takeChanges('a')!;
    expect(drafts.takeChanges('a')).toBeNull();
    const other = createLearnedDrafts();
    expect(other.restore('a', stored)).toBe(true);
    expect(other.open('a').propose(prompt, 8)!.tokens).toEqual(answer);
    expect(other.takeChanges('a')).toBeNull();
    for (const broken of [stored.slice(0, -1), Int32Array.of(2, 1, 5), Int32Array.of(1, -4), Int32Array.of(0, 7)]) {
      expect(other.restore('b', broken)).toBe(false);
    }
    expect(other.count('b')).toBe(0);
  });
});

describe('costs and lengths', () => {
  const costsOf = (...times: [rows: number, ms: number][]) => {
    const costs = createStepCosts(32);
    for (const [rows, ms] of times) costs.record(rows, ms);
    return costs;
  };

  test('costs are measured, interpolated between measurements, and little affected by a pause', () => {
    const costs = costsOf([1, 10], [5, 14]);
    expect(costs.estimate(1)).toBe(10);
    expect(costs.estimate(3)).toBe(12);
    expect(costs.estimate(6)).toBeCloseTo(14 * 1.08);
    costs.record(1, 5000);
    expect(costs.estimate(1)).toBeLessThan(11.1);
    expect(createStepCosts(8).estimate(1)).toBeNull();
  });

  const ask = (acceptance: number, ...times: [rows: number, ms: number][]) =>
    chooseDraftLength({ acceptance, maxTokens: 8, numRows: 1, numTokens: 1, costs: costsOf(...times), msPerToken: 0 });

  test('drafts are long where rows are cheap and guesses good, and none where they do not pay', () => {
    expect(ask(0.95, [1, 10], [9, 11])).toBe(8);
    expect(ask(0.4, [1, 10], [9, 14])).toBeGreaterThan(0);
    expect(ask(0.4, [1, 10], [9, 14])).toBeLessThan(8);
    expect(ask(0.95, [1, 10], [2, 20], [9, 90])).toBe(0);
    expect(ask(0.02, [1, 10], [9, 14])).toBe(0);
  });

  test('the time of drafting counts', () => {
    const costs = costsOf([1, 10], [9, 11]);
    const question = { acceptance: 0.6, maxTokens: 8, numRows: 1, numTokens: 1, costs };
    expect(chooseDraftLength({ ...question, msPerToken: 10 })).toBe(0);
    expect(chooseDraftLength({ ...question, msPerToken: 1 })).toBeGreaterThan(0);
  });

  test('acceptance follows what happened, a new sequence starts with that of the others', () => {
    const shared = createAcceptance(null);
    const first = createAcceptance(shared);
    const guess = { source: 'lookup', evidence: 4 } as const;
    const before = first.estimate(guess);
    for (let i = 0; i < 40; i++) first.record(guess, 0, 1);
    expect(first.estimate(guess)).toBeLessThan(before / 4);
    expect(createAcceptance(shared).estimate(guess)).toBeLessThan(before / 2);
    for (let i = 0; i < 40; i++) first.record(guess, 3, 3);
    expect(first.estimate(guess)).toBeGreaterThan(0.8);
    expect(first.estimate({ source: 'learned', evidence: 4 })).toBe(before);
  });
});
