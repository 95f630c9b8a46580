import type { BlockBatch } from './block-ledger.ts';
import type { FleetKeys } from './fleet-keys.ts';

/** A batch with its place in the sequence of its node. */
export interface NumberedBatch extends BlockBatch {
  readonly epoch: string;
  /** From 1 on, without gaps, in every stream. */
  readonly seq: number;
  /** Seconds since 1970. */
  readonly ts: number;
}

/** `<signature> <JSON>`, on one line. */
export function writeBatch(keys: FleetKeys, stream: string, batch: NumberedBatch): string {
  const text = JSON.stringify(batch);
  return `${keys.sign('events', `${stream} ${text}`)} ${text}`;
}

/** Null: the signature is not that of the fleet, or of another stream. */
export function readBatch(keys: FleetKeys, stream: string, line: string): NumberedBatch | null {
  const [, signature, text] = /^([0-9a-f]{64}) (\{.*\})$/.exec(line) ?? [];
  if (signature === undefined || !keys.verify('events', `${stream} ${text!}`, signature)) return null;
  return JSON.parse(text!) as NumberedBatch;
}
