import { MIN_PRIORITY } from '../../engine/types.ts';

/** How facts are extracted: after all requests, always the same way, and without adapters that change the answers. */
export const JSON_OPTIONS = { temperature: 0, priority: MIN_PRIORITY, adapter: null, clampMaxTokens: true } as const;
