import { RuvLLMError } from '../../core/errors.ts';

/** Joins a message's content as APIs send it (a string, null, or text parts) into one string. */
export function joinContent(content: unknown, where = 'content'): string {
  if (content === null || content === undefined) return '';
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) {
    throw new RuvLLMError('invalid_option', `${where} must be a string or a list of parts, got ${typeof content}`);
  }
  return content
    .map((part: unknown, i) => {
      const { type, text } = (part ?? {}) as { type?: unknown; text?: unknown };
      if (typeof text !== 'string') {
        const label = typeof type === 'string' ? `"${type.slice(0, 40)}"` : typeof part;
        throw new RuvLLMError('unsupported', `${where}[${i}]: only text parts are supported, got ${label}`);
      }
      return text;
    })
    .join('');
}
