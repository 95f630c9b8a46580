import type { RuvLLMError } from '../../src/core/errors.ts';
import { createEngineServer, type EngineServerOptions } from '../../src/engine/engine-server.ts';
import type { ClientMessage, ServerMessage } from '../../src/engine/protocol.ts';
import type { Transport } from '../../src/runtime/engine-client.ts';
import { createToySampler } from './toy-model.ts';

export interface InProcessTransport extends Transport {
  readonly sent: ClientMessage[];
  readonly received: ServerMessage[];
  readonly isClosed: boolean;
  readonly isBusy: boolean;
  /** Simulates a crashed worker. */
  lose(error: RuvLLMError): void;
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** An engine server in this thread; messages are cloned and delivered in later turns, as between threads. */
export function createInProcessTransport(
  options: Pick<EngineServerOptions, 'openModel'> & Partial<EngineServerOptions>,
): InProcessTransport {
  const sent: ClientMessage[] = [];
  const received: ServerMessage[] = [];
  let onMessage = (_message: ServerMessage): void => {};
  let onLost = (_error: RuvLLMError): void => {};
  let isClosed = false;
  let isBusy = false;
  const server = createEngineServer({
    createSampler: (params) => createToySampler(params.seed ?? 0),
    now: () => performance.now(),
    yieldToMessages: nextTurn,
    onCrash(error) {
      throw error;
    },
    ...options,
    post(message) {
      const copy = structuredClone(message);
      setImmediate(() => {
        if (isClosed) return;
        received.push(copy);
        onMessage(copy);
      });
    },
  });
  return {
    sent,
    received,
    get isClosed() {
      return isClosed;
    },
    get isBusy() {
      return isBusy;
    },
    post(message) {
      const copy = structuredClone(message);
      sent.push(copy);
      setImmediate(() => {
        if (!isClosed) server.handle(copy);
      });
    },
    onMessage(listener) {
      onMessage = listener;
    },
    onLost(listener) {
      onLost = listener;
    },
    setBusy(busy) {
      isBusy = busy;
    },
    async close() {
      isClosed = true;
    },
    lose(error) {
      isClosed = true;
      onLost(error);
    },
  };
}
