import type { BlockEventConfig } from '../../runtime/model-config.ts';
import { type BlockLedger, createBlockLedger } from './block-ledger.ts';
import { deriveFleetKeys, type FleetKeys } from './fleet-keys.ts';

/** This node's part of a fleet. */
export interface FleetNode {
  readonly keys: FleetKeys;
  readonly ledger: BlockLedger;
  /** Identifies this run of the process: its batches are numbered from 1 on. */
  readonly epoch: string;
  /** The hash of a model's file; empty: it was not loaded yet. */
  hashOf(model: string): string;
  /** The option of a served model that tells the fleet about its cache. */
  blockEvents(model: string): BlockEventConfig;
}

export function createFleetNode(secret: string): FleetNode {
  const keys = deriveFleetKeys(secret);
  const ledger = createBlockLedger();
  const hashes = new Map<string, string>();
  return {
    keys,
    ledger,
    epoch: crypto.randomUUID(),
    hashOf: (model) => hashes.get(model) ?? '',
    blockEvents: (model) => ({
      salt: keys.blockSalt,
      onLoaded: (modelHash) => void hashes.set(model, modelHash),
      onEvents: (events) => ledger.record(model, events),
    }),
  };
}
