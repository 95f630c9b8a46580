import { expect, test } from 'vitest';
import { createTestServer, entryOf } from '../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import { createTestLearning } from '../../runtime/learning/operations/harness.contract.ts';

async function start(implicitFeedback: boolean) {
  const { model } = await createToyRuntime();
  const desk = await createTestLearning({}, 'toy', { implicitFeedback });
  const { memory, learning } = desk;
  const server = createTestServer([entryOf('toy', async () => model)], { memory, learning });
  const ask = (body: object, signal?: AbortSignal) =>
    server.fetch(
      new Request('http://localhost/v1/chat/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'toy', max_tokens: 3, messages: [{ role: 'user', content: 'hi' }], ...body }),
        ...(signal === undefined ? {} : { signal }),
      }),
    );
  const all = async () => {
    await learning.settle();
    return learning.trajectories.find('local', { order: 'oldest', limit: 10 });
  };
  return { ask, all, learning };
}

test('[LS13] a repeated chat request counts as feedback on the first answer, only if enabled', async () => {
  for (const isWanted of [true, false]) {
    const { ask, all } = await start(isWanted);
    for (let i = 0; i < 2; i++) {
      await (await ask({})).json();
      await all();
    }
    expect((await all()).map(({ quality }) => quality)).toEqual([isWanted ? 0.35 : null, null]);
  }
});

test('[LS14] a client that leaves during a stream gives implicit feedback on the part it read', async () => {
  for (const isWanted of [true, false]) {
    const { ask, all } = await start(isWanted);
    const response = await ask({ stream: true, max_tokens: 60 });
    const reader = response.body!.getReader();
    await reader.read();
    await reader.read();
    await reader.cancel();
    let kept = await all();
    // The server notices a disconnect a moment later, so poll for a while.
    for (let tries = 0; tries < (isWanted ? 3000 : 50) && kept[0]?.quality == null; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      kept = await all();
    }
    expect(kept.map(({ quality, feedback }) => [quality, feedback[0]?.comment])).toEqual(isWanted ? [[0.4, 'stopped']] : []); // prettier-ignore
  }
});
