import { BLOCK_TOKENS, createBlockLedger } from '../../../src/server/fleet/block-ledger.ts';
import { deriveFleetKeys } from '../../../src/server/fleet/fleet-keys.ts';
import { writeBatch } from '../../../src/server/fleet/signed-batch.ts';

const SECRET = 'the secret of a fleet that is only simulated';

/** Bytes of a batch without blocks, and of each block in it, as a node writes them. */
export function measureEventBytes(): { readonly batch: number; readonly block: number } {
  const keys = deriveFleetKeys(SECRET);
  const bytesOf = (numBlocks: number): number => {
    const ledger = createBlockLedger();
    let text = '';
    ledger.follow((batch) => {
      const numbered = { ...batch, epoch: crypto.randomUUID(), seq: 100_000, ts: 1_800_000_000.123 };
      text = `data: ${writeBatch(keys, 'stream', numbered)}\n\n`;
    });
    const hash = (i: number): string => i.toString(16).padStart(16, '0');
    ledger.record('model', [{ type: 'stored', hashes: Array.from({ length: numBlocks }, (_, i) => hash(i)), parent: hash(0) }]); // prettier-ignore
    return text.length;
  };
  const block = (bytesOf(101) - bytesOf(1)) / 100;
  return { batch: bytesOf(1) - block, block };
}

/** Bytes that each gateway receives for changes of simulated blocks, which have the events of several real ones. */
export function eventBytes(numBatches: number, numChanges: number, blockTokens: number): number {
  const { batch, block } = measureEventBytes();
  return numBatches * batch + ((numChanges * blockTokens) / BLOCK_TOKENS) * block;
}
