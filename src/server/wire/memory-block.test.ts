import { expect, test } from 'vitest';
import { writeMemoryBlock } from './memory-block.ts';
import { writeReflectionBlock } from './reflection-block.ts';

type Recall = Parameters<typeof writeMemoryBlock>[0]['recall'];

test('an answer names its sources, with what is known of each', () => {
  const position = {
    documentId: 'd1',
    name: 'notes.md',
    headings: ['a'],
    startChar: 1,
    endChar: 2,
    startLine: 3,
    endLine: 4,
    startPage: null,
    endPage: null,
  };
  const recall = {
    outcome: 'used',
    numTokens: 9,
    numLeftOut: 1,
    tokenBudget: 20,
    sources: [
      { number: 1, id: 'x', kind: 'document', isCut: false, position },
      { number: 2, id: 'y', kind: 'turn', isCut: true, position: null, tier: 'recent', speaker: 'user', saidMs: 5 },
    ],
  } as unknown as Recall;
  expect(writeMemoryBlock({ recall })).toEqual({
    memory: {
      outcome: 'used',
      num_tokens: 9,
      token_budget: 20,
      num_left_out: 1,
      sources: [
        {
          number: 1,
          id: 'x',
          kind: 'document',
          is_cut: false,
          document_id: 'd1',
          name: 'notes.md',
          headings: ['a'],
          start_char: 1,
          end_char: 2,
          start_line: 3,
          end_line: 4,
          start_page: null,
          end_page: null,
        },
        { number: 2, id: 'y', kind: 'turn', is_cut: true, tier: 'recent', speaker: 'user', said_ms: 5 },
      ],
    },
  });
  expect(writeMemoryBlock({ recall: null })).toEqual({});
});

test('an answer lists its attempts if reflection was on', () => {
  const attempts = [{ error: 'no JSON', confidence: null, promptTokens: 3, completionTokens: 4 }];
  expect(
    writeReflectionBlock({ reflection: { ending: 'accepted', chosen: 0, error: null, attempts } as never }),
  ).toEqual({
    reflection: {
      ending: 'accepted',
      chosen: 0,
      error: null,
      attempts: [{ error: 'no JSON', confidence: null, prompt_tokens: 3, completion_tokens: 4 }],
    },
  });
  expect(writeReflectionBlock({})).toEqual({});
});
