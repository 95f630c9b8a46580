import type { Messages } from '../en/index.ts';
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

export const de: Messages = { api, app, audit, chat, components, keys, learning, live, memory, models, start };
