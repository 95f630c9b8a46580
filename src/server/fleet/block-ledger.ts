import type { BlockEvent } from '../../runtime/lower-layers.ts';

/** A change in the shape of vLLM's KV events, which llm-d and Dynamo read too. Tokens are left out: they are the prompts of users. */
export type WireBlockEvent =
  | {
      readonly type: 'BlockStored';
      readonly block_hashes: readonly string[];
      readonly parent_block_hash: string | null;
      readonly token_ids: readonly [];
      readonly block_size: number;
      readonly lora_id: null;
      readonly medium: 'CPU';
    }
  | { readonly type: 'BlockRemoved'; readonly block_hashes: readonly string[]; readonly medium: 'CPU' }
  | { readonly type: 'AllBlocksCleared' };

/** Changes of one model's cache. */
export interface BlockBatch {
  readonly model: string;
  readonly events: readonly WireBlockEvent[];
}

/** The blocks in the prefix caches of a node. */
export interface BlockLedger {
  record(model: string, events: readonly BlockEvent[]): void;
  /** All blocks of now as batches, and then every change; returns an unsubscribe function. */
  follow(onBatch: (batch: BlockBatch) => void): () => void;
  readonly numBlocks: number;
}

export const BLOCK_TOKENS = 16;

/** Blocks of a snapshot per batch: about 100 KiB. */
const BATCH_BLOCKS = 5000;

const stored = (hashes: readonly string[], parent: string | null): WireBlockEvent => ({
  type: 'BlockStored',
  block_hashes: hashes,
  parent_block_hash: parent,
  token_ids: [],
  block_size: BLOCK_TOKENS,
  lora_id: null,
  medium: 'CPU',
});

export function createBlockLedger(): BlockLedger {
  const models = new Map<string, Set<string>>();
  const followers = new Set<(batch: BlockBatch) => void>();

  function apply(blocks: Set<string>, event: BlockEvent): WireBlockEvent {
    if (event.type === 'cleared') {
      blocks.clear();
      return { type: 'AllBlocksCleared' };
    }
    if (event.type === 'stored') {
      for (const hash of event.hashes) blocks.add(hash);
      return stored(event.hashes, event.parent);
    }
    for (const hash of event.hashes) blocks.delete(hash);
    return { type: 'BlockRemoved', block_hashes: event.hashes, medium: 'CPU' };
  }

  return {
    record(model, events) {
      const blocks = models.get(model) ?? new Set<string>();
      models.set(model, blocks);
      const batch = { model, events: events.map((event) => apply(blocks, event)) };
      for (const follower of followers) follower(batch);
    },
    follow(onBatch) {
      for (const [model, blocks] of models) {
        onBatch({ model, events: [{ type: 'AllBlocksCleared' }] });
        const all = [...blocks];
        for (let i = 0; i < all.length; i += BATCH_BLOCKS) {
          // A snapshot has no order of prefixes: readers need the set only.
          onBatch({ model, events: [stored(all.slice(i, i + BATCH_BLOCKS), null)] });
        }
      }
      const follower = (batch: BlockBatch): void => onBatch(batch);
      followers.add(follower);
      return () => void followers.delete(follower);
    },
    get numBlocks() {
      let count = 0;
      for (const blocks of models.values()) count += blocks.size;
      return count;
    },
  };
}
