import type { ErrorFormat } from '../../route.ts';

/** OpenAI's error body, also for routes of RuvLLM. */
export const openaiErrors: ErrorFormat = {
  body: ({ message, type, param, code }) => ({ error: { message, type, param, code } }),
};
