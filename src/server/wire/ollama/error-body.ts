import type { ErrorFormat } from '../../route.ts';

/** Ollama's error body: one text. */
export const ollamaErrors: ErrorFormat = {
  // Ollama's clients show the text and know no code for a limit.
  status: ({ status }) => (status === 422 ? 400 : status),
  body: ({ message, param }) => ({ error: message, ...(param === null ? {} : { param }) }),
};
