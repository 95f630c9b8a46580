import { signal } from '@preact/signals';
import { type AnswerEvent, streamChat } from '../../api/chat.ts';
import { isAbort, messageOf } from '../../api/errors.ts';
import type { ChatRequest, ChatTurn, ContentPart } from '../../api/types.ts';
import { client, onSignOut } from '../../app/session.ts';
import { createId } from '../../format/create-id.ts';
import { messages } from '../../messages/index.ts';
import type { ChatImage } from './chat-image.ts';
import { modelOf, remoteCandidatesOf } from './models.ts';
import { conversations, updateConversation, updateMessage } from './store.ts';
import { tabModel } from './tab-state.ts';
import { parseTools } from './tools.ts';
import {
  type AnswerDetails,
  type Conversation,
  createUserMessage,
  type Message,
  NO_VERDICT,
  type ToolCall,
} from './types.ts';
import { startVersion } from './versions.ts';

const { announcements } = messages.chat;

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
export async function sendMessage(
  conversationId: string,
  text: string,
  model: string,
  images: readonly ChatImage[] = [],
): Promise<void> {
  updateConversation(conversationId, (conversation) => ({
    ...conversation,
    updatedMs: Date.now(),
    messages: [...conversation.messages, createUserMessage(text, images)],
  }));
  await answer(conversationId, model);
}

/** Generates another version of the last answer. */
export async function regenerate(conversationId: string, messageId: string, model: string): Promise<void> {
  updateConversation(conversationId, (conversation) => startVersion(conversation, messageId));
  await answer(conversationId, model);
}

/** Continues an answer that ended early. */
export async function continueAnswer(conversationId: string, message: Message, model: string): Promise<void> {
  await answer(conversationId, model, message);
}

/** Sends another version of a user message, with the same images. */
export async function editMessage(
  conversationId: string,
  { id, images }: Message,
  text: string,
  model: string,
): Promise<void> {
  updateConversation(conversationId, (conversation) => startVersion(conversation, id));
  await sendMessage(conversationId, text, model, images);
}

/** Answers the tool calls of the last message and generates the next one. */
export async function sendToolResults(
  conversationId: string,
  messageId: string,
  results: ReadonlyMap<string, string>,
  model: string,
): Promise<void> {
  updateMessage(conversationId, messageId, (message) => ({
    ...message,
    toolCalls: message.toolCalls?.map((call) => ({ ...call, result: results.get(call.id) ?? call.result })) ?? [],
  }));
  await answer(conversationId, model);
}

/** A message as the API takes it: tool calls without a result are left out, because a result has to follow each. */
function turnsOf({ role, text, images = [], toolCalls = [] }: Message): ChatTurn[] {
  const calls = toolCalls.flatMap(({ result, ...call }) => (result === null ? [] : { ...call, result }));
  if (role === 'assistant' && text === '' && calls.length === 0) return [];
  if (images.length > 0) return [{ role, content: contentOf(text, images) }];
  if (calls.length === 0) return [{ role, content: text }];
  const wireCalls = calls.map(({ id, name, arguments: json }) => ({ id, type: 'function' as const, function: { name, arguments: json } })); // prettier-ignore
  return [
    { role, content: text, tool_calls: wireCalls },
    ...calls.map(({ id, result }) => ({ role: 'tool' as const, content: result, tool_call_id: id })),
  ];
}

/** Images stand before the text, as models are trained. */
function contentOf(text: string, images: readonly ChatImage[]): ContentPart[] {
  const parts = images.map(({ url }): ContentPart => ({ type: 'image_url', image_url: { url } }));
  return text.trim() === '' ? parts : [...parts, { type: 'text', text }];
}

/** The question that a message answers. */
export function questionOf(conversationId: string, messageId: string): string {
  return messagesBefore(conversationId, messageId).findLast(({ role }) => role === 'user')?.text ?? '';
}

function messagesBefore(conversationId: string, messageId: string): readonly Message[] {
  const messages = conversations.peek().find(({ id }) => id === conversationId)?.messages ?? [];
  return messages.slice(
    0,
    messages.findIndex(({ id }) => id === messageId),
  );
}

/** Answers the question of a message again, in these words, without changing the conversation. */
export async function askOnce(
  conversationId: string,
  messageId: string,
  question: string,
  onProgress: (progress: { text?: string; usedPastAnswer?: boolean }) => void,
  signal: AbortSignal,
): Promise<void> {
  const conversation = conversations.value.find(({ id }) => id === conversationId);
  if (conversation === undefined) return;
  const before = messagesBefore(conversationId, messageId);
  const asked = before.findLastIndex(({ role }) => role === 'user');
  const messages = before.with(asked, { ...before[asked]!, text: question });
  const request = requestOf({ ...conversation, messages }, modelOf(conversation.model));
  let text = '';
  for await (const event of streamChat(client, request, signal)) {
    const sources = event.type === 'origin' ? event.origin.sources : event.type === 'recalled' ? event.sources : [];
    if (sources.some(({ kind }) => kind === 'qa-pair')) onProgress({ usedPastAnswer: true });
    if (event.type === 'text') onProgress({ text: (text += event.text) });
  }
}

/** Builds the chat request of a conversation. */
export function requestOf({ settings, messages }: Conversation, model: string): ChatRequest {
  const turns = messages.flatMap(turnsOf);
  const tools = parseTools(settings.tools);
  return {
    model,
    messages: settings.system.trim() === '' ? turns : [{ role: 'system', content: settings.system }, ...turns],
    ...settings.options,
    ...(settings.usesMemory ? { memory: {} } : {}),
    ...(tools.length === 0 ? {} : { tools }),
  };
}

/** Streams an answer into a new message, or into the last one to continue it. */
async function answer(conversationId: string, model: string, begun: Message | null = null): Promise<void> {
  const conversation = conversations.value.find(({ id }) => id === conversationId);
  if (conversation === undefined) return;
  const tab = tabModel.value?.id === model ? tabModel.value : null;
  const request = { ...requestOf(conversation, model), ...(begun === null ? {} : { continue_final_message: true }) };
  const id = begun?.id ?? createId();
  if (begun === null) {
    const message: Message = { ...createUserMessage(''), id, role: 'assistant', state: 'streaming' };
    updateConversation(conversationId, (latest) => ({ ...latest, messages: [...latest.messages, message] }));
  } else updateMessage(conversationId, id, (latest) => ({ ...latest, state: 'streaming', failure: null }));
  activeAnswers.get(conversationId)?.abort();
  const controller = new AbortController();
  activeAnswers.set(conversationId, controller);
  announcement.value = announcements.start;

  const startMs = performance.now();
  let output = { text: begun?.text ?? '', reasoning: begun?.reasoning ?? '', toolCalls: [] as readonly ToolCall[] };
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
    const events = tab?.answer(request, controller.signal) ?? streamChat(client, request, controller.signal);
    for await (const event of events) {
      if (event.type === 'origin') {
        const isRemote = remoteCandidatesOf(model).includes(event.origin.route?.candidate ?? '');
        details = {
          ...event.origin,
          model,
          isRemote,
          isInTab: tab !== null,
          usage: null,
          finishReason: null,
          firstTokenMs: null,
          totalMs: 0,
        };
      } else if (event.type === 'recalled') {
        updateDetails({ sources: event.sources, hasNothingFitted: event.hasNothingFitted });
      } else if (event.type === 'finished') updateDetails({ finishReason: event.reason, model: event.model });
      else if (event.type === 'usage') updateDetails({ usage: event.usage });
      else {
        updateDetails(details?.firstTokenMs === null ? { firstTokenMs: performance.now() - startMs } : {});
        output =
          event.type === 'call'
            ? { ...output, toolCalls: addCall(output.toolCalls, event) }
            : { ...output, [event.type]: output[event.type] + event.text };
      }
      if (timer === 0) timer = window.setTimeout(redraw, REDRAW_MS);
    }
    redraw({ state: 'done', verdict: NO_VERDICT });
    announcement.value = isCutOff(details) ? announcements.cutOff : announcements.complete;
  } catch (error) {
    if (isAbort(error)) redraw({ state: 'stopped' });
    else redraw({ state: 'failed', failure: messageOf(error) });
    announcement.value = isAbort(error) ? announcements.stopped : announcements.failed;
  } finally {
    if (activeAnswers.get(conversationId) === controller) activeAnswers.delete(conversationId);
  }
}

/** Whether an answer ended because it reached the limit of tokens. */
export const isCutOff = (details: AnswerDetails | null): boolean => details?.finishReason === 'length';

/** Adds part of a tool call. */
function addCall(calls: readonly ToolCall[], part: AnswerEvent & { readonly type: 'call' }): readonly ToolCall[] {
  const call = calls[part.index] ?? { id: part.id, name: part.name, arguments: '', result: null };
  return calls.toSpliced(part.index, 1, { ...call, arguments: call.arguments + part.text });
}
