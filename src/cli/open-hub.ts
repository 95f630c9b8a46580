import { createHub, type Hub } from '../hub/hub.ts';
import { createNodeHubPlatform } from '../platform/node/process/hub-platform.ts';

/** The hub with this user's cache. */
export function openHub(): Hub {
  return createHub({ platform: createNodeHubPlatform() });
}
