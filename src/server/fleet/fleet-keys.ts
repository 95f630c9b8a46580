import { RuvLLMError } from '../../core/errors.ts';
import { sha256 } from '../../core/sha256.ts';
import { type HmacKey, prepareHmacKey, signHmac } from '../keys/hmac-sha256.ts';
import { isSameText } from '../keys/key-secret.ts';
import { MIN_SECRET_CHARS } from '../../core/min-secret-chars.ts';

const PURPOSES = ['ask', 'state', 'events', 'note', 'release'] as const;

/** Keys that nodes and gateways derive from their common secret. */
export interface FleetKeys {
  /** Part of every hash of a block. */
  readonly blockSalt: string;
  /** Part of every hash of a text in a gateway. */
  readonly textSalt: string;
  /** The signature of a text in hexadecimal. `purpose` keeps a signature for one thing from being used for another. */
  sign(purpose: FleetPurpose, text: string): string;
  /** In constant time. */
  verify(purpose: FleetPurpose, text: string, signature: string): boolean;
}

export type FleetPurpose = (typeof PURPOSES)[number];

/** Part of names on a message server and of folders, which several fleets may share. */
export const fleetIdOf = (keys: FleetKeys): string => keys.sign('note', 'name of the fleet').slice(0, 16);

export function deriveFleetKeys(secret: string): FleetKeys {
  if (secret.length < MIN_SECRET_CHARS) {
    const message = `the fleet secret has ${secret.length} characters; at least ${MIN_SECRET_CHARS} are required`;
    throw new RuvLLMError('invalid_option', message, { data: { numChars: secret.length, minChars: MIN_SECRET_CHARS } });
  }
  const encoder = new TextEncoder();
  const root = prepareHmacKey(sha256(encoder.encode(secret)));
  const derive = (label: string): string => signHmac(root, encoder.encode(`ruvllm fleet: ${label}`));
  const keys = new Map<FleetPurpose, HmacKey>();
  for (const purpose of PURPOSES) keys.set(purpose, prepareHmacKey(encoder.encode(derive(purpose))));
  const sign = (purpose: FleetPurpose, text: string): string => signHmac(keys.get(purpose)!, encoder.encode(text));
  return {
    blockSalt: derive('blocks'),
    textSalt: derive('texts'),
    sign,
    verify: (purpose, text, signature) => isSameText(sign(purpose, text), signature),
  };
}
