import type { Route } from '../../route.ts';
import { answerRoutes } from './answer.ts';
import { modelChangeRoutes } from './changes.ts';
import { embedRoutes } from './embed.ts';
import { modelListRoutes } from './models.ts';

/** Ollama's API, for clients that are pointed here with `OLLAMA_HOST`. */
export const ollamaRoutes: readonly Route[] = [
  ...answerRoutes,
  ...embedRoutes,
  ...modelListRoutes,
  ...modelChangeRoutes,
];
