import { api } from './api.ts';
import { app } from './app.ts';
import { audit } from './audit.ts';
import { chat } from './chat.ts';
import { components } from './components.ts';
import { keys } from './keys.ts';
import { learning } from './learning.ts';
import { live } from './live.ts';
import { memory } from './memory.ts';
import { models } from './models.ts';
import { start } from './start.ts';

/** The English texts, by view. The other languages have the same form. */
export const en = { api, app, audit, chat, components, keys, learning, live, memory, models, start };
export type Messages = typeof en;
