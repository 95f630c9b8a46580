import { expect, test } from 'vitest';
import { createSpokenModel } from '../../../test/support/spoken-model.ts';
import { openTestMemory, wordEmbedder } from '../../../test/support/test-memory.ts';
import { createRequestMemory } from './request-memory.ts';

test('[WL17] questions and answers are embedded for the audit log beside the thread that serves requests', async () => {
  const [atOnce, later] = [[] as string[], [] as string[]];
  const embedder = {
    ...wordEmbedder,
    embed: (text: string) => (atOnce.push(text), wordEmbedder.embed(text)),
    embedLater: (text: string) => (later.push(text), wordEmbedder.embed(text)),
  };
  const memory = await openTestMemory({ embedder });
  const requests = createRequestMemory(memory, { now: () => 0, wallClock: () => 0, report() {} });
  const { model } = createSpokenModel(['In the sea.'], { memory: requests });
  await model.generate([{ role: 'user', content: 'where is the blue whale?' }]);
  await requests.settle();
  await memory.audit.flush();
  expect([atOnce, later]).toEqual([[], ['where is the blue whale?', 'In the sea.']]);
  const { entries } = await memory.audit.search('local', {});
  expect(entries[0]!.entry.responseEmbedding).toEqual(wordEmbedder.embed('In the sea.'));
});
