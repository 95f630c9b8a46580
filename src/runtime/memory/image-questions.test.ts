import { expect, test } from 'vitest';
import { openTestMemory } from '../../../test/support/test-memory.ts';
import { createRequestMemory } from './request-memory.ts';

test('a question about an image recalls no correction', async () => {
  const memory = await openTestMemory({ now: () => 0 });
  const asked: string[] = [];
  const learning = {
    corrections: {
      async recall(_tenant: string, _user: string | null, question: string) {
        asked.push(question);
        return null;
      },
    },
  };
  const requests = createRequestMemory(memory, {
    now: () => 0,
    wallClock: () => 0,
    report: () => {},
    learning: learning as never,
  });
  const call = { tenant: 'local', model: 'm', session: null, user: 'u', adapter: null, wish: null };
  const text = { role: 'user' as const, content: 'what is it?' };
  const image = { ...text, images: [{ offset: 0, data: new Uint8Array(3) }] };
  for (const message of [text, image]) {
    await requests.begin({ ...call, requestId: crypto.randomUUID(), prompt: [message] });
  }
  expect(asked).toEqual(['what is it?']);
  await requests.close();
  await memory.close();
});
