import { readSse } from '../core/sse-reader.ts';
import { RuvLLMError } from '../core/errors.ts';
import type { WireBlockEvent } from '../server/fleet/block-ledger.ts';
import { ASK_HEADER, writeAsk } from '../server/fleet/fleet-ask.ts';
import type { FleetKeys } from '../server/fleet/fleet-keys.ts';
import { readBatch } from '../server/fleet/signed-batch.ts';
import type { GatewayNode } from './node-table.ts';
import type { Upstream } from './types.ts';

export interface FollowOptions {
  readonly keys: FleetKeys;
  readonly upstream: Upstream;
  readonly wallClock: () => number;
  /** The run of the node's process, from its signed state. */
  readonly epoch: string;
  readonly signal: AbortSignal;
}

/** A node of 2 TB would have fewer; one with more is broken or hostile. */
const MAX_BLOCKS = 1_000_000;
const MAX_EVENT_CHARS = 4 * 2 ** 20;
const PATH = '/fleet/events';

/** Why the events of a node are not used. */
export type RefusalReason = 'signature' | 'order' | 'shape' | 'size';

const refuse = (reason: RefusalReason, message: string): RuvLLMError =>
  new RuvLLMError('untrusted', message, { data: { reason } });

/** Null: the stream broke for another reason. */
export function refusalOf(error: unknown): RefusalReason | null {
  return error instanceof RuvLLMError && error.code === 'untrusted' ? (error.data['reason'] as RefusalReason) : null;
}

/**
 * Keeps `node.blocks` equal to the prefix caches of a node, until the stream ends or an event is refused; then nothing is known of the
 * node. A refused event changes nothing.
 */
export async function followBlocks(node: GatewayNode, options: FollowOptions): Promise<void> {
  const { keys, upstream, wallClock, epoch, signal } = options;
  const ask = writeAsk(keys, PATH, wallClock());
  const models = new Map<string, Set<string>>();
  try {
    const response = await upstream.send(node.url, {
      method: 'GET',
      target: PATH,
      headers: { [ASK_HEADER]: ask },
      body: new Uint8Array(),
      signal,
    });
    if (response.status !== 200) throw new RuvLLMError('remote_failed', `${PATH} answered ${response.status}`);
    let seq = 0;
    for await (const line of readSse(response.body, { maxBytes: Infinity, maxEventChars: MAX_EVENT_CHARS })) {
      const batch = readBatch(keys, ask, line);
      if (batch === null) throw refuse('signature', 'an event without the signature of the fleet');
      if (batch.epoch !== epoch || batch.seq !== ++seq) {
        throw refuse('order', `event ${batch.seq} came after event ${seq - 1}`);
      }
      const own = models.get(batch.model) ?? new Set<string>();
      models.set(batch.model, own);
      for (const event of batch.events) apply(node.blocks, own, event);
      if (node.blocks.size > MAX_BLOCKS) {
        throw refuse('size', `the node reports more than ${MAX_BLOCKS} blocks`);
      }
    }
  } finally {
    node.blocks.clear();
  }
}

function apply(all: Set<string>, own: Set<string>, event: WireBlockEvent): void {
  if (event.type === 'AllBlocksCleared') {
    for (const hash of own) all.delete(hash);
    own.clear();
    return;
  }
  if (event.type !== 'BlockStored' && event.type !== 'BlockRemoved') {
    throw refuse('shape', `an event of the type ${JSON.stringify((event as { type?: unknown }).type)}`);
  }
  for (const hash of event.block_hashes) {
    for (const set of [all, own]) {
      if (event.type === 'BlockStored') set.add(hash);
      else set.delete(hash);
    }
  }
}
