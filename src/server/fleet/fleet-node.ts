import type { BlockEventConfig } from '../../runtime/model-config.ts';
import { type BlockLedger, createBlockLedger } from './block-ledger.ts';
import { deriveFleetKeys, type FleetKeys } from './fleet-keys.ts';

/** The adapters that the fleet has published, on this node. */
export interface NodeReleases {
  /** Number of the release that this node serves; 0: none, or it cannot tell whether its own is the latest. */
  readonly number: number;
  /** Whether it has not found out yet, after its start, what the fleet has published. */
  readonly isStarting: boolean;
  /** Why it does not serve the latest release; null: it does. */
  readonly problem: string | null;
  isPublished(model: string, adapter: string): boolean;
}

/** This node's part of a fleet. */
export interface FleetNode {
  readonly keys: FleetKeys;
  readonly ledger: BlockLedger;
  /** Identifies this run of the process: its batches are numbered from 1 on. */
  readonly epoch: string;
  /** Null: not connected with a store of published adapters. */
  releases: NodeReleases | null;
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
    releases: null,
    hashOf: (model) => hashes.get(model) ?? '',
    blockEvents: (model) => ({
      salt: keys.blockSalt,
      onLoaded: (modelHash) => void hashes.set(model, modelHash),
      onEvents: (events) => ledger.record(model, events),
    }),
  };
}
