import { choiceField, type Field, isObject, readFields, schemaOf, stringField } from '../fields.ts';

const CACHE_CONTROL = { type: choiceField(['ephemeral']), ttl: stringField(16) };

/**
 * `cache_control`, a hint: the cache is automatic and keeps pages as long as they fit, so the place and the time of a mark
 * have no effect. A request with a mark has its pages evicted later, and its usage says what was written to the cache.
 */
export const cacheControlField: Field<object> = {
  schema: schemaOf(CACHE_CONTROL),
  read: (value, path) => readFields(value, CACHE_CONTROL, { path }),
};

/** Whether a request marks its prompt, or a tool, a block of `system` or of a message. */
export function hasCacheControl(body: unknown): boolean {
  if (!isObject(body)) return false;
  const { messages, system, tools } = body;
  const blocks = [body, ...listOf(tools), ...listOf(system)];
  for (const message of listOf(messages)) if (isObject(message)) blocks.push(...listOf(message['content']));
  return blocks.some((block) => isObject(block) && isObject(block['cache_control']));
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
