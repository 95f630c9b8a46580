import { expect, test } from 'vitest';
import { createToyTokenizer } from '../../test/support/toy-tokenizer.ts';
import { RuvLLMError } from '../core/errors.ts';
import type { TokenTableData } from '../engine/constraints.ts';
import type { EngineClient } from './engine-client.ts';
import { sendVocabulary, type TableThread } from './vocabulary.ts';

const TABLE = { numWords: 2 } as TokenTableData;

function open(build: TableThread['build'] | null) {
  const heard: string[] = [];
  const client = {
    sendVocabulary: ({ isControl, endIds }) => heard.push(`${isControl.length} tokens, ends ${endIds.join()}`),
    sendTokenTable: (table) => heard.push(table === TABLE ? 'table' : 'another'),
  } as Partial<EngineClient> as EngineClient;
  const tableThread = build && { build, dispose: async () => {} };
  const context = { client, tokenizer: createToyTokenizer(), endIds: [1], tableThread };
  return { heard, send: () => sendVocabulary(context) };
}

test('[TT4] an engine hears of its vocabulary once, however many ask', async () => {
  let numBuilt = 0;
  const { heard, send } = open(async (endIds) => {
    expect(endIds).toEqual([1]);
    numBuilt++;
    return TABLE;
  });
  await Promise.all([send(), send()]);
  await send();
  expect([heard, numBuilt]).toEqual([['table'], 1]);
});

test('[TT4] after a failure the next one tries again', async () => {
  let numBuilt = 0;
  const { heard, send } = open(async () => {
    if (numBuilt++ === 0) throw new RuvLLMError('unsupported', 'no');
    return TABLE;
  });
  const results = await Promise.allSettled([send(), send()]);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await send();
  expect([heard, numBuilt]).toEqual([['table'], 2]);
});

test('[TT1] without a thread, or when it cannot, the tokens are sent', async () => {
  for (const build of [null, async () => null]) {
    const { heard, send } = open(build);
    await send();
    await send();
    expect(heard).toEqual([`${createToyTokenizer().vocabSize} tokens, ends 1`]);
  }
});
