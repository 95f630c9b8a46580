import { signal } from '@preact/signals';
import { streamChat } from '../../api/chat.ts';
import { isAbort, messageOf } from '../../api/errors.ts';
import type { ChatRequest, ChatTurn } from '../../api/types.ts';
import { client, onSignOut } from '../../app/session.ts';
import { conversations, updateConversation, updateMessage } from './store.ts';
import { type AnswerDetails, type Conversation, type Message, NO_VERDICT, userMessage } from './types.ts';

/** Words are shown this often; a fast model says more than a page can draw. */
const SHOW_MS = 60;

/** Answers on their way, by conversation. */
const running = new Map<string, AbortController>();
/** What a screen reader is told: the beginning and the end of an answer, not every word. */
export const announcement = signal('');

onSignOut(() => {
  for (const abort of running.values()) abort.abort();
});

export function stopAnswer(conversationId: string): void {
  running.get(conversationId)?.abort();
}

/** Says something and has it answered. */
export async function say(conversationId: string, text: string, model: string): Promise<void> {
  updateConversation(conversationId, (one) => ({ ...one, messages: [...one.messages, userMessage(text)] }));
  await answer(conversationId, model);
}

/** Has the last answer made again, in the place of the one there is. */
export async function regenerate(conversationId: string, messageId: string, model: string): Promise<void> {
  updateConversation(conversationId, (one) => ({ ...one, messages: before(one, messageId) }));
  await answer(conversationId, model);
}

/** Says something else in the place of a message; what came after it is gone. */
export async function sayInstead(
  conversationId: string,
  messageId: string,
  text: string,
  model: string,
): Promise<void> {
  updateConversation(conversationId, (one) => ({ ...one, messages: before(one, messageId) }));
  await say(conversationId, text, model);
}

function before({ messages }: Conversation, messageId: string): readonly Message[] {
  const at = messages.findIndex(({ id }) => id === messageId);
  return at < 0 ? messages : messages.slice(0, at);
}

/** The request that a conversation stands for. */
export function requestOf({ settings, messages }: Conversation, model: string): ChatRequest {
  const turns: ChatTurn[] = messages
    .filter(({ role, text }) => role === 'user' || text !== '')
    .map(({ role, text }) => ({ role, content: text }));
  return {
    model,
    messages: settings.system.trim() === '' ? turns : [{ role: 'system', content: settings.system }, ...turns],
    ...settings.options,
    ...(settings.usesMemory ? { memory: {} } : {}),
  };
}

async function answer(conversationId: string, model: string): Promise<void> {
  const conversation = conversations.value.find(({ id }) => id === conversationId);
  if (conversation === undefined) return;
  const request = requestOf(conversation, model);
  const id = crypto.randomUUID();
  const message: Message = { ...userMessage(''), id, role: 'assistant', state: 'streaming' };
  updateConversation(conversationId, (one) => ({ ...one, messages: [...one.messages, message] }));
  running.get(conversationId)?.abort();
  const own = new AbortController();
  running.set(conversationId, own);
  announcement.value = 'Answering';

  const startMs = performance.now();
  let said = { text: '', reasoning: '' };
  let details: AnswerDetails | null = null;
  let timer = 0;
  const show = (more: Partial<Message> = {}): void => {
    clearTimeout(timer);
    timer = 0;
    updateMessage(conversationId, id, (one) => ({ ...one, ...said, details, ...more }));
  };
  const know = (more: Partial<AnswerDetails>): void => {
    if (details !== null) details = { ...details, ...more, totalMs: performance.now() - startMs };
  };
  try {
    for await (const event of streamChat(client, request, own.signal)) {
      if (event.type === 'origin') {
        details = { ...event.origin, model, usage: null, finishReason: null, firstTokenMs: null, totalMs: 0 };
      } else if (event.type === 'finished') know({ finishReason: event.reason, model: event.model });
      else if (event.type === 'usage') know({ usage: event.usage });
      else {
        know(details?.firstTokenMs === null ? { firstTokenMs: performance.now() - startMs } : {});
        said = { ...said, [event.type]: said[event.type] + event.text };
      }
      if (timer === 0) timer = window.setTimeout(show, SHOW_MS);
    }
    show({ state: 'done', verdict: NO_VERDICT });
    announcement.value = 'The answer is complete';
  } catch (error) {
    if (isAbort(error)) show({ state: 'stopped' });
    else show({ state: 'failed', failure: messageOf(error) });
    announcement.value = isAbort(error) ? 'The answer was stopped' : 'The answer failed';
  } finally {
    if (running.get(conversationId) === own) running.delete(conversationId);
  }
}
