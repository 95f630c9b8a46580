import { deserializeError, RuvLLMError } from '../../core/errors.ts';
import { REMOTE_METHODS, type RemoteCall, type RemoteObjects, type RemoteReply } from './protocol.ts';

/** The way to another thread. */
export interface MemoryTransport {
  post(call: RemoteCall): void;
  /** `onEnd`: nothing will be answered any more. */
  listen(onReply: (reply: RemoteReply) => void, onEnd: (reason: string) => void): void;
  /** Whether somebody waits for an answer: a thread that nobody waits for does not keep the process. */
  setBusy(isBusy: boolean): void;
  end(): Promise<void>;
}

/** Calls that may wait for an answer; more would only grow the memory of a process whose disk is too slow. */
export const MAX_PENDING = 10_000;

interface Pending {
  resolve(value: unknown): void;
  reject(error: RuvLLMError): void;
}

/** Objects that live in another thread, so that no write to the disk and no search holds up the caller's. Closing the store ends it. */
export function createRemoteObjects(transport: MemoryTransport): RemoteObjects {
  const pending = new Map<number, Pending>();
  let nextId = 1;
  let ended: RuvLLMError | null = null;

  transport.listen(
    (reply) => {
      const call = pending.get(reply.callId);
      pending.delete(reply.callId);
      if (pending.size === 0) transport.setBusy(false);
      if ('error' in reply) call?.reject(deserializeError(reply.error));
      else call?.resolve(reply.value);
    },
    (reason) => {
      ended ??= new RuvLLMError('io', `the memory's thread ended: ${reason}`, { data: { reason } });
      for (const { reject } of pending.values()) reject(ended);
      pending.clear();
    },
  );

  function call(object: keyof RemoteObjects, method: string, args: readonly unknown[]): Promise<unknown> {
    if (ended !== null) return Promise.reject(ended);
    if (pending.size >= MAX_PENDING) {
      const message = `${pending.size} calls wait for the memory already`;
      return Promise.reject(new RuvLLMError('overloaded', message, { data: { maxPending: MAX_PENDING } }));
    }
    return new Promise((resolve, reject) => {
      const callId = nextId++;
      if (pending.size === 0) transport.setBusy(true);
      pending.set(callId, { resolve, reject });
      try {
        transport.post({ callId, object, method, args });
      } catch (error) {
        pending.delete(callId);
        if (pending.size === 0) transport.setBusy(false);
        reject(new RuvLLMError('invalid_option', `${method}: what was given cannot be passed on`, { cause: error }));
      }
    });
  }

  const bind = <O extends keyof RemoteObjects>(object: O): RemoteObjects[O] =>
    Object.fromEntries(
      Object.keys(REMOTE_METHODS[object]).map((method) => [
        method,
        (...args: readonly unknown[]) => call(object, method, args),
      ]),
    ) as unknown as RemoteObjects[O];

  return {
    archive: bind('archive'),
    embedder: bind('embedder'),
    keys: bind('keys'),
    store: {
      ...bind('store'),
      async close() {
        if (ended !== null) return;
        try {
          await call('store', 'close', []);
        } finally {
          ended ??= new RuvLLMError('io', 'the memory is closed');
          await transport.end();
        }
      },
    },
  };
}
