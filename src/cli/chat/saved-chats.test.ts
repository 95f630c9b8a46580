import { expect, test } from 'vitest';
import { createEchoModel } from '../../../test/support/echo-model.ts';
import { createTestPlatform } from '../../hub/fake-hub.contract.ts';
import { openSavedModels } from '../../hub/saved-models.ts';
import { createSavedChats } from './saved-chats.ts';
import { type ChatSession, createChatSession } from './session.ts';
import { readAction, type SlashContext } from './slash-commands.ts';

const options = { signal: new AbortController().signal, onText: () => {} };

function setUp(reference = 'tinyllama') {
  const platform = createTestPlatform();
  const saved = openSavedModels(platform, platform.cacheRoot);
  const notes: string[] = [];
  const model = createEchoModel(100);
  const session = createChatSession(model, { temperature: 0.7 }, null);
  const context = (of: ChatSession, named = reference): SlashContext => ({
    session: of,
    say: (text) => void notes.push(text),
    sendFeedback: null,
    saved: createSavedChats(saved, named, () => 5),
    stats: model.stats,
    contextUse: () => ({ numTokens: 0, maxContext: 100 }),
  });
  return { model, session, context, notes, saved };
}

test('saves a conversation and loads it into another chat of the same model', async () => {
  const { model, session, context, notes, saved } = setUp();
  await readAction('/set system Be brief.', context(session));
  await readAction('/set parameter temperature 0.1', context(session));
  await readAction('/set parameter num_predict 7', context(session));
  await session.ask('hello', options);
  expect(model.calls.at(-1)!.options).toMatchObject({ temperature: 0.1, maxTokens: 7 });
  await readAction('/save talk', context(session));
  expect(await saved.find('talk')).toEqual({
    from: 'tinyllama',
    system: 'Be brief.',
    parameters: { temperature: 0.1, num_predict: 7 },
    adapter: null,
    messages: [
      { role: 'user', content: 'hello' },
      { role: 'assistant', content: 're: hello' },
    ],
    createdMs: 5,
  });
  const other = createChatSession(model, {}, null);
  await readAction('/load talk', context(other));
  await other.ask('again', options);
  expect(model.calls.at(-1)!.messages.map(({ content }) => content)).toEqual([
    'Be brief.',
    'hello',
    're: hello',
    'again',
  ]);
  expect(notes).toContain('loaded talk: 2 messages');
  await expect(readAction('/load talk', context(other, 'mistral'))).rejects.toThrow('continue it with ruvllm run talk');
  await expect(readAction('/load none', context(other))).rejects.toThrow('no conversation is saved as none');
});

test.each([
  ['/set', 'use /set parameter NAME VALUE'],
  ['/set parameter', 'use /set parameter NAME VALUE'],
  ['/set parameter temprature 1', 'did you mean temperature'],
  ['/set parameter temperature hot', "'options.temperature' must be"],
  ['/save', 'a name is required'],
])('%s is refused', async (line, message) => {
  const { session, context } = setUp();
  await expect(readAction(line, context(session))).rejects.toThrow(message);
  expect(session.params).toEqual({ temperature: 0.7 });
});

test('/bye leaves and /? lists the commands', async () => {
  const { session, context, notes } = setUp();
  expect(await readAction('/bye', context(session))).toEqual({ type: 'leave' });
  expect(await readAction('/?', context(session))).toEqual({ type: 'nothing' });
  expect(notes[0]).toContain('/set parameter NAME VALUE');
});
