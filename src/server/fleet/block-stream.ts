import type { Clock } from '../../core/clock.ts';
import { onAbort } from '../../core/abort.ts';
import type { FleetNode } from './fleet-node.ts';
import { writeBatch } from './signed-batch.ts';

export interface BlockStreamOptions {
  readonly fleet: FleetNode;
  /** The request that opened it: batches are signed for this stream alone, so that none can be replayed in another. */
  readonly stream: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Whether the server shuts down, which ends the stream. */
  readonly isClosed: () => boolean;
}

/** Batches for a slow reader. Beyond it the stream ends, and the reader starts again with all blocks. */
const MAX_QUEUED = 1000;
/** Shows a reader that the node is alive, and notices that the server shuts down. */
const BEAT_MS = 1000;

/** All blocks of a node, and then every change, as server-sent events. */
export function createBlockStream({
  fleet,
  stream,
  clock,
  signal,
  isClosed,
}: BlockStreamOptions): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let seq = 0;
  let end = (): void => {};
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        let isOver = false;
        let cancelBeat = (): void => {};
        let unfollow = (): void => {};
        let forget = (): void => {};
        end = () => {
          if (isOver) return;
          isOver = true;
          cancelBeat();
          unfollow();
          forget();
          try {
            controller.close();
          } catch {
            // The reader has cancelled it.
          }
        };
        const send = (text: string): void => {
          if (isOver) return;
          if (controller.desiredSize! <= 0) return end();
          controller.enqueue(encoder.encode(text));
        };
        const beat = (): void => {
          if (isClosed()) return end();
          send(': alive\n\n');
          cancelBeat = clock.setTimer(BEAT_MS, beat);
        };
        forget = onAbort(signal, () => end());
        unfollow = fleet.ledger.follow((batch) => {
          const numbered = { ...batch, epoch: fleet.epoch, seq: ++seq, ts: clock.wallClock() / 1000 };
          send(`data: ${writeBatch(fleet.keys, stream, numbered)}\n\n`);
        });
        if (!isOver) beat();
      },
      cancel: () => end(),
    },
    { highWaterMark: MAX_QUEUED },
  );
}
