import { signal } from '@preact/signals';
import { streamChat } from '../../api/chat.ts';
import { isAbort, messageOf } from '../../api/errors.ts';
import type { ChatRequest, ChatTurn } from '../../api/types.ts';
import { client, onSignOut } from '../../app/session.ts';
import { createId } from '../../format/create-id.ts';
import { remoteCandidatesOf } from './models.ts';
import { conversations, updateConversation, updateMessage } from './store.ts';
import { type AnswerDetails, type Conversation, createUserMessage, type Message, NO_VERDICT } from './types.ts';
import { startVersion } from './versions.ts';

/** Redraw interval while streaming; a fast model generates more tokens than the page can draw one by one. */
const REDRAW_MS = 60;

/** Abort controllers of streaming answers, by conversation. */
const activeAnswers = new Map<string, AbortController>();
/** Screen reader announcement: the start and end of an answer, not every token. */
export const announcement = signal('');

onSignOut(() => {
  for (const controller of activeAnswers.values()) controller.abort();
});

export function stopAnswer(conversationId: string): void {
  activeAnswers.get(conversationId)?.abort();
}

/** Adds a user message and generates the answer. */
export async function sendMessage(conversationId: string, text: string, model: string): Promise<void> {
  updateConversation(conversationId, (conversation) => ({
    ...conversation,
    updatedMs: Date.now(),
    messages: [...conversation.messages, createUserMessage(text)],
  }));
  await answer(conversationId, model);
}

/** Generates another version of the last answer. */
export async function regenerate(conversationId: string, messageId: string, model: string): Promise<void> {
  updateConversation(conversationId, (conversation) => startVersion(conversation, messageId));
  await answer(conversationId, model);
}

/** Sends another version of a user message. */
export async function editMessage(
  conversationId: string,
  messageId: string,
  text: string,
  model: string,
): Promise<void> {
  updateConversation(conversationId, (conversation) => startVersion(conversation, messageId));
  await sendMessage(conversationId, text, model);
}

/** Builds the chat request of a conversation. */
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
  const id = createId();
  const message: Message = { ...createUserMessage(''), id, role: 'assistant', state: 'streaming' };
  updateConversation(conversationId, (latest) => ({ ...latest, messages: [...latest.messages, message] }));
  activeAnswers.get(conversationId)?.abort();
  const controller = new AbortController();
  activeAnswers.set(conversationId, controller);
  announcement.value = 'Generating answer';

  const startMs = performance.now();
  let output = { text: '', reasoning: '' };
  let details: AnswerDetails | null = null;
  let timer = 0;
  const redraw = (changes: Partial<Message> = {}): void => {
    clearTimeout(timer);
    timer = 0;
    updateMessage(conversationId, id, (latest) => ({ ...latest, ...output, details, ...changes }));
  };
  const updateDetails = (changes: Partial<AnswerDetails>): void => {
    if (details !== null) details = { ...details, ...changes, totalMs: performance.now() - startMs };
  };
  try {
    for await (const event of streamChat(client, request, controller.signal)) {
      if (event.type === 'origin') {
        const isRemote = remoteCandidatesOf(model).includes(event.origin.route?.candidate ?? '');
        details = { ...event.origin, model, isRemote, usage: null, finishReason: null, firstTokenMs: null, totalMs: 0 };
      } else if (event.type === 'recalled') {
        updateDetails({ sources: event.sources, hasNothingFitted: event.hasNothingFitted });
      } else if (event.type === 'finished') updateDetails({ finishReason: event.reason, model: event.model });
      else if (event.type === 'usage') updateDetails({ usage: event.usage });
      else {
        updateDetails(details?.firstTokenMs === null ? { firstTokenMs: performance.now() - startMs } : {});
        output = { ...output, [event.type]: output[event.type] + event.text };
      }
      if (timer === 0) timer = window.setTimeout(redraw, REDRAW_MS);
    }
    redraw({ state: 'done', verdict: NO_VERDICT });
    announcement.value = 'Answer complete';
  } catch (error) {
    if (isAbort(error)) redraw({ state: 'stopped' });
    else redraw({ state: 'failed', failure: messageOf(error) });
    announcement.value = isAbort(error) ? 'Answer stopped' : 'Answer failed';
  } finally {
    if (activeAnswers.get(conversationId) === controller) activeAnswers.delete(conversationId);
  }
}
