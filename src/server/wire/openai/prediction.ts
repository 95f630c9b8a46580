import { type Field, invalid, isObject } from '../fields.ts';

const TEXT_PARTS = {
  type: 'array',
  items: {
    type: 'object',
    properties: { type: { type: 'string', enum: ['text'] }, text: { type: 'string' } },
    required: ['type', 'text'],
  },
} as const;

const isTextPart = (part: unknown): part is { readonly text: string } =>
  isObject(part) && part['type'] === 'text' && typeof part['text'] === 'string';

/** OpenAI's predicted output: a text that the answer probably repeats. */
export const predictionField: Field<string> = {
  schema: {
    type: 'object',
    description: 'a text that the answer probably repeats in large parts, which is then generated faster',
    properties: { type: { type: 'string', enum: ['content'] }, content: { oneOf: [{ type: 'string' }, TEXT_PARTS] } },
    required: ['type', 'content'],
  },
  read(value, path) {
    const content = isObject(value) && value['type'] === 'content' ? value['content'] : null;
    if (typeof content === 'string') return content;
    if (Array.isArray(content) && content.every(isTextPart)) return content.map(({ text }) => text).join('');
    throw invalid(path, "{ type: 'content', content } with a text or a list of text parts", value);
  },
};
