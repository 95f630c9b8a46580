import { linkAbort, onAbort } from '../core/abort.ts';
import type { Clock } from '../core/clock.ts';
import { RuvLLMError } from '../core/errors.ts';
import type { GatewayNode } from './node-table.ts';
import { readUpTo } from './read-body.ts';
import type { Upstream, UpstreamRequest } from './types.ts';

/** Bytes of an answer that are held until it is complete: as long as the client has got none, another node can repeat it. */
const MAX_HELD_BYTES = 8 * 2 ** 20;

/** A response whose first bytes have arrived. */
export interface Attempt {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The whole body, or its beginning. */
  readonly bytes: Uint8Array;
  /** Null: `bytes` is all of it. */
  readonly rest: AsyncIterator<Uint8Array> | null;
  /** Ends the request to the node; must be called once. */
  end(): void;
}

export const isStream = ({ headers }: Pick<Attempt, 'headers'>): boolean =>
  /^(text\/event-stream|application\/x-ndjson)/.test(headers['content-type'] ?? '');

/** How long a request waits for a node. */
export interface AttemptLimits {
  readonly clock: Clock;
  /** For the headers. */
  readonly headMs: number;
  /** For the first bytes of a stream after its headers, or for all of another answer. */
  readonly answerMs: number;
}

/**
 * Sends a request to a node and waits for the first bytes of its answer, or for all of an answer that is no stream. Rejects if the
 * connection breaks before, the node is found to be lost or takes too long, or the client leaves.
 */
export async function attempt(
  upstream: Upstream,
  node: GatewayNode,
  request: UpstreamRequest,
  { clock, headMs, answerMs }: AttemptLimits,
): Promise<Attempt> {
  const link = linkAbort(request.signal);
  let isNodeLost = false;
  let lateMs: number | null = null;
  const startTimer = (ms: number): (() => void) =>
    clock.setTimer(ms, () => {
      lateMs = ms;
      link.abort();
    });
  let stopTimer = startTimer(headMs);
  const forgetNode = onAbort(node.lost.signal, () => {
    isNodeLost = true;
    link.abort();
  });
  const unlink = (): void => {
    forgetNode();
    link.unlink();
  };
  try {
    const response = await upstream.send(node.url, { ...request, signal: link.signal });
    stopTimer();
    stopTimer = startTimer(answerMs);
    const { bytes, rest } = await readUpTo(response.body, isStream(response) ? 0 : MAX_HELD_BYTES);
    stopTimer();
    return {
      status: response.status,
      headers: response.headers,
      bytes,
      rest,
      end() {
        unlink();
        if (rest !== null) link.abort();
      },
    };
  } catch (error) {
    stopTimer();
    unlink();
    link.abort();
    if (request.signal.aborted) throw new RuvLLMError('aborted', 'the client left', { cause: error });
    if (isNodeLost) throw new RuvLLMError('remote_failed', `node ${node.name} was lost`, { data: { isSent: true } });
    if (lateMs !== null)
      throw new RuvLLMError('remote_failed', `node ${node.name} gave no answer within ${lateMs} ms`, {
        data: { isSent: true, isLate: true },
      });
    throw error;
  }
}
