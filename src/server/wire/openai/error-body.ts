import type { ErrorFormat } from '../../route.ts';

/** OpenAI's error body, on every failure of its routes and ours. */
export const openaiErrors: ErrorFormat = {
  body: ({ message, type, param, code }) => ({ error: { message, type, param, code } }),
};
