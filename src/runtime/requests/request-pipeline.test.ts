import { expect, test } from 'vitest';
import { createSpokenModel } from '../../../test/support/spoken-model.ts';
import { createTestServer, entryOf } from '../../../test/support/test-server.ts';

const request = {
  model: 'spoken',
  prompts: ['hi'],
  numChoices: 1,
  options: {},
  constraint: null,
  tools: [],
  toolChoice: 'auto',
  canCallInParallel: true,
} as const;

test('[G2] a client that leaves before it reads frees its place and its model', async () => {
  const { services } = createTestServer([entryOf('spoken', async () => createSpokenModel(['a long answer']).model)]);
  const client = new AbortController();
  const caller = { requestId: 'r1', tenant: 'local', signal: client.signal, trace: null };
  const running = await services.pipeline.start(request, caller);
  expect(services.admission.numRequests).toBe(1);
  client.abort();
  expect(services.admission.numRequests).toBe(0);
  expect(services.models.list()[0]!.numUsers).toBe(0);
  // A reader that was slow must not take the end for the end of the answer.
  await expect(
    (async () => {
      for await (const _ of running.events);
    })(),
  ).rejects.toMatchObject({ code: 'aborted' });
});
