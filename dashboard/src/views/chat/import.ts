import { messageOf } from '../../api/errors.ts';
import { createId } from '../../format/create-id.ts';
import { messages as texts } from '../../messages/index.ts';
import { readConversation } from './read-conversation.ts';
import { type Conversation, isEmpty, type Message } from './types.ts';

type Fields = Readonly<Record<string, unknown>>;

const text = texts.chat.imports;
/** A larger file would block the page while it is parsed. */
export const MAX_IMPORT_BYTES = 50_000_000;
export const MAX_IMPORTED = 500;

/**
 * Reads the conversations of a file: an export of this page, or objects with OpenAI messages in `messages`, as several programs write them.
 * They get new ids, so that importing a file twice overwrites nothing.
 */
export function parseImport(json: string): Conversation[] {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new Error(text.notJson(messageOf(error)), { cause: error });
  }
  const list = Array.isArray(value) ? value : [value];
  if (list.length > MAX_IMPORTED) throw new Error(text.tooMany(list.length, MAX_IMPORTED));
  const conversations = list.map((one) => renewIds(readConversation(fromOtherProgram(one)))).filter((one) => !isEmpty(one));
  if (conversations.length === 0) throw new Error(text.noMessages);
  return conversations;
} // prettier-ignore

/** Turns OpenAI messages into those of this page; an export of this page stays as it is. */
function fromOtherProgram(value: unknown): unknown {
  const outer = value as Fields | null;
  const fields = ((outer?.['chat'] as Fields | undefined) ?? outer) as Fields | null;
  const list = fields?.['messages'];
  if (!Array.isArray(list) || !list.some((one: Fields | null) => one != null && 'content' in Object(one))) return value;
  const turns = list as readonly (Fields | null)[];
  const settings = { system: turns.filter((turn) => turn?.['role'] === 'system').map(contentOf).join('\n\n') }; // prettier-ignore
  const messages = turns
    .filter((turn) => turn?.['role'] === 'user' || turn?.['role'] === 'assistant')
    .map((turn) => ({
      role: turn!['role'],
      text: contentOf(turn),
      images: imagesOf(turn),
      reasoning: turn!['reasoning_content'],
    }));
  return { title: fields!['title'] ?? outer!['title'], messages, settings };
}

/** The text of an OpenAI message: a string, or parts of which the texts count. */
function contentOf(turn: Fields | null): string {
  const content = turn?.['content'];
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .flatMap((part: Fields | null) => (typeof part?.['text'] === 'string' ? [part['text']] : []))
    .join('\n');
}

/** The images of an OpenAI message. */
function imagesOf(turn: Fields | null): { name: string; url: unknown }[] {
  const content = turn?.['content'];
  if (!Array.isArray(content)) return [];
  return content.flatMap((part: Fields | null) => {
    const source = part?.['type'] === 'image_url' ? (part['image_url'] as Fields | string | null) : null;
    return source === null ? [] : [{ name: text.image, url: typeof source === 'string' ? source : source?.['url'] }];
  });
}

function renewIds(conversation: Conversation): Conversation {
  const ids = new Map<string, string>();
  const renew = (message: Message): Message => {
    const id = createId();
    ids.set(message.id, id);
    return { ...message, id };
  };
  const messages = conversation.messages.map(renew);
  const tails = Object.entries(conversation.versions).map(([key, versions]) => ({
    key,
    versions: { ...versions, tails: versions.tails.map((tail) => tail.map(renew)) },
  }));
  // A key is the id of a message, or a word for the first one.
  const versions = Object.fromEntries(tails.map(({ key, versions: one }) => [ids.get(key) ?? key, one]));
  return { ...conversation, id: createId(), version: 0, messages, versions };
}
