import type { AnswerSource } from '../../api/chat.ts';
import type { FeedbackOutcome, SamplingOptions, Usage } from '../../api/types.ts';
import { createId } from '../../format/create-id.ts';
import { messages as texts } from '../../messages/index.ts';
import { type ChatImage, isImageUrl, MAX_IMAGES } from './chat-image.ts';
import { type AnswerDetails, type ChatSettings, type Conversation, createConversation, createUserMessage, type Message, NO_VERDICT, type ToolCall, type Verdict } from './types.ts'; // prettier-ignore
import type { Versions } from './versions.ts';

/** Reads stored or imported conversations. Every field is checked and rebuilt, because a file can hold anything. */

type Fields = Readonly<Record<string, unknown>>;

const text = texts.chat.imports;
/** The ids that the server accepts for a conversation. */
const ID = /^[\w-]{1,64}$/;
const MAX_TITLE_CHARS = 200;
const MAX_REQUEST_ID_CHARS = 200;
const SAMPLING_NAMES = ['temperature', 'top_p', 'top_k', 'min_p', 'repetition_penalty', 'max_tokens', 'seed'] as const;
const STATES: Readonly<Record<string, Message['state']>> = { stopped: 'stopped', streaming: 'stopped', failed: 'failed' }; // prettier-ignore
const OUTCOMES = ['remembered', 'learned', 'refused', 'already-known', 'superseded', 'stored', 'pending'] as const;

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const fieldsOf = (value: unknown): Fields => (isObject(value) ? value : {});
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const stringOr = <T>(value: unknown, other: T): string | T => (typeof value === 'string' ? value : other);
const numberOr = <T>(value: unknown, other: T): number | T => (Number.isFinite(value) ? (value as number) : other);
const idOf = (value: unknown): string => (typeof value === 'string' && ID.test(value) ? value : createId());

/** Completes a conversation; throws if it has no list of messages. */
export function readConversation(value: unknown): Conversation {
  const fields = fieldsOf(value);
  if (!Array.isArray(fields['messages'])) throw new Error(text.noMessages);
  const createdMs = numberOr(fields['createdMs'], Date.now());
  return {
    ...createConversation(),
    id: idOf(fields['id']),
    title: stringOr(fields['title'], null)?.slice(0, MAX_TITLE_CHARS) || null,
    isPinned: fields['isPinned'] === true,
    model: stringOr(fields['model'], null),
    settings: readSettings(fields['settings']),
    messages: readMessages(fields['messages']),
    versions: readVersions(fieldsOf(fields['versions'])),
    createdMs,
    updatedMs: numberOr(fields['updatedMs'], createdMs),
    version: numberOr(fields['version'], 0),
  };
}

function readSettings(value: unknown): ChatSettings {
  const { system, options, usesMemory, tools } = fieldsOf(value);
  return {
    system: stringOr(system, ''),
    options: readOptions(options),
    usesMemory: usesMemory === true,
    tools: stringOr(tools, ''),
  };
}

/** The known sampling options that are numbers. */
export function readOptions(value: unknown): SamplingOptions {
  const fields = fieldsOf(value);
  return Object.fromEntries(SAMPLING_NAMES.flatMap((name) => (Number.isFinite(fields[name]) ? [[name, fields[name]]] : []))); // prettier-ignore
}

function readVersions(fields: Fields): Conversation['versions'] {
  const entries = Object.entries(fields).flatMap(([key, value]): [string, Versions][] => {
    const { shown, tails } = fieldsOf(value);
    const lists = listOf(tails).map((tail) => readMessages(listOf(tail)));
    const isValid = Number.isInteger(shown) && (shown as number) >= 0 && (shown as number) < lists.length;
    return isValid ? [[key, { shown: shown as number, tails: lists }]] : [];
  });
  return Object.fromEntries(entries);
}

const readMessages = (list: readonly unknown[]): readonly Message[] => list.map(readMessage);

function readMessage(value: unknown): Message {
  const fields = fieldsOf(value);
  const role = fields['role'];
  if (role !== 'user' && role !== 'assistant') throw new Error(text.unknownRole(String(role).slice(0, 40)));
  const toolCalls = listOf(fields['toolCalls']).map(readCall);
  return {
    ...createUserMessage(stringOr(fields['text'], ''), role === 'user' ? readImages(fields['images']) : []),
    id: idOf(fields['id']),
    role,
    reasoning: stringOr(fields['reasoning'], ''),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
    // The page that was streaming the answer is gone.
    state: STATES[String(fields['state'])] ?? 'done',
    failure: stringOr(fields['failure'], null),
    details: isObject(fields['details']) ? readDetails(fields['details']) : null,
    verdict: readVerdict(fieldsOf(fields['verdict'])),
  };
}

/** Other URLs would be loaded from other servers. */
function readImages(value: unknown): ChatImage[] {
  const images = listOf(value).map(fieldsOf).map(({ name, url }) => ({ name: stringOr(name, ''), url: stringOr(url, '') })); // prettier-ignore
  return images.filter(({ url }) => isImageUrl(url)).slice(0, MAX_IMAGES);
}

function readCall(value: unknown): ToolCall {
  const { id, name, arguments: json, result } = fieldsOf(value);
  return { id: stringOr(id, ''), name: stringOr(name, ''), arguments: stringOr(json, ''), result: stringOr(result, null) };
} // prettier-ignore

function readDetails(fields: Fields): AnswerDetails {
  const { candidate, reason } = fieldsOf(fields['route']);
  return {
    requestId: stringOr(fields['requestId'], '').slice(0, MAX_REQUEST_ID_CHARS),
    route: typeof candidate === 'string' ? { candidate, reason: stringOr(reason, '') } : null,
    sources: listOf(fields['sources']).map(readSource),
    ...(fields['hasNothingFitted'] === true ? { hasNothingFitted: true } : {}),
    model: stringOr(fields['model'], ''),
    usage: isObject(fields['usage']) ? readUsage(fields['usage']) : null,
    finishReason: stringOr(fields['finishReason'], null),
    firstTokenMs: numberOr(fields['firstTokenMs'], null),
    totalMs: numberOr(fields['totalMs'], 0),
    ...(fields['isRemote'] === true ? { isRemote: true } : {}),
    ...(fields['isInTab'] === true ? { isInTab: true } : {}),
  };
}

function readSource(value: unknown): AnswerSource {
  const { number, kind, id, part } = fieldsOf(value);
  const source = { number: numberOr(number, 0), kind: stringOr(kind, ''), id: stringOr(id, '') };
  if (!isObject(part)) return source;
  return {
    ...source,
    part: {
      name: stringOr(part['name'], ''),
      headings: listOf(part['headings']).map((heading) => stringOr(heading, '')),
      startLine: numberOr(part['startLine'], null),
      endLine: numberOr(part['endLine'], null),
      startPage: numberOr(part['startPage'], null),
      endPage: numberOr(part['endPage'], null),
    },
  };
}

function readUsage(fields: Fields): Usage {
  const cached = numberOr(fieldsOf(fields['prompt_tokens_details'])['cached_tokens'], null);
  const reasoning = numberOr(fieldsOf(fields['completion_tokens_details'])['reasoning_tokens'], null);
  return {
    prompt_tokens: numberOr(fields['prompt_tokens'], 0),
    completion_tokens: numberOr(fields['completion_tokens'], 0),
    ...(cached === null ? {} : { prompt_tokens_details: { cached_tokens: cached } }),
    ...(reasoning === null ? {} : { completion_tokens_details: { reasoning_tokens: reasoning } }),
  };
}

function readVerdict({ thumbs, correction, receipt, outcome }: Fields): Verdict {
  return {
    ...NO_VERDICT,
    thumbs: thumbs === 'up' || thumbs === 'down' ? thumbs : null,
    correction: stringOr(correction, null),
    ...(isObject(receipt) ? readReceipt(receipt) : {}),
    ...(typeof outcome === 'string' ? { outcome } : {}),
  };
}

function readReceipt(fields: Fields): { receipt: FeedbackOutcome } | object {
  const state = OUTCOMES.find((known) => known === fields['state']);
  if (state === undefined) return {};
  const receipt: FeedbackOutcome = {
    state,
    reason: stringOr(fields['reason'], ''),
    loss_before: numberOr(fields['loss_before'], null),
    loss_after: numberOr(fields['loss_after'], null),
    supersedes: listOf(fields['supersedes']).filter((id) => typeof id === 'string'),
  };
  return { receipt };
}
