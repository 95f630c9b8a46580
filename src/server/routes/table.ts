import type { Route } from '../route.ts';
import { anthropicRoutes } from './anthropic.ts';
import { chatCompletions } from './chat-completions.ts';
import { modelRoutes } from './models.ts';
import { systemRoutes } from './system.ts';

/** Every route there is. */
export const ROUTES: readonly Route[] = [chatCompletions, ...anthropicRoutes, ...modelRoutes, ...systemRoutes];
