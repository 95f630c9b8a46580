import type { FleetKeys } from './fleet-keys.ts';

/** Proves to a node that a gateway of its fleet asks. */
export const ASK_HEADER = 'x-ruvllm-fleet-ask';

/** Clocks of a fleet differ by less. */
const MAX_AGE_MS = 60_000;

/** `<milliseconds since 1970>.<random>.<signature>`: also the number that the node's answer is bound to, so that none can be replayed. */
export function writeAsk(keys: FleetKeys, path: string, wallClock: number): string {
  const head = `${wallClock}.${crypto.randomUUID()}`;
  return `${head}.${keys.sign('ask', `${path} ${head}`)}`;
}

export function isValidAsk(keys: FleetKeys, path: string, wallClock: number, text: string | null): boolean {
  const match = /^(\d{1,16})\.([0-9a-f-]{36})\.([0-9a-f]{64})$/.exec(text ?? '');
  if (match === null || Math.abs(wallClock - Number(match[1])) > MAX_AGE_MS) return false;
  return keys.verify('ask', `${path} ${match[1]}.${match[2]}`, match[3]!);
}
