import { createHub, type Hub } from '../hub/hub.ts';
import { createNodeHubPlatform } from '../platform/node/hub-platform.ts';

/** The model sources of this machine and user. */
export function openHub(): Hub {
  return createHub({ platform: createNodeHubPlatform() });
}
