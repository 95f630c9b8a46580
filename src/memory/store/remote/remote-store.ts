import { deserializeError, RuvLLMError } from '../../../core/errors.ts';
import type { MemoryStore } from '../../types.ts';
import { STORE_METHODS, type StoreCall, type StoreMethod, type StoreReply } from './protocol.ts';

/** The way to a store in another thread. */
export interface StoreTransport {
  post(call: StoreCall): void;
  /** `onEnd`: nothing will be answered any more. */
  listen(onReply: (reply: StoreReply) => void, onEnd: (reason: string) => void): void;
  end(): Promise<void>;
}

/** Calls that may wait for an answer; more would only grow the memory of a process whose disk is too slow. */
export const MAX_PENDING = 10_000;

interface Pending {
  resolve(value: unknown): void;
  reject(error: RuvLLMError): void;
}

/** A store that lives in another thread, so that no write to the disk and no search holds up the caller's. */
export function createRemoteStore(transport: StoreTransport): MemoryStore {
  const pending = new Map<number, Pending>();
  let nextId = 1;
  let ended: RuvLLMError | null = null;

  transport.listen(
    (reply) => {
      const call = pending.get(reply.callId);
      pending.delete(reply.callId);
      if ('error' in reply) call?.reject(deserializeError(reply.error));
      else call?.resolve(reply.value);
    },
    (reason) => {
      ended ??= new RuvLLMError('io', `the memory's thread ended: ${reason}`, { data: { reason } });
      for (const { reject } of pending.values()) reject(ended);
      pending.clear();
    },
  );

  function call(method: StoreMethod, args: readonly unknown[]): Promise<unknown> {
    if (ended !== null) return Promise.reject(ended);
    if (pending.size >= MAX_PENDING) {
      const message = `${pending.size} calls wait for the memory already`;
      return Promise.reject(new RuvLLMError('overloaded', message, { data: { maxPending: MAX_PENDING } }));
    }
    return new Promise((resolve, reject) => {
      const callId = nextId++;
      pending.set(callId, { resolve, reject });
      try {
        transport.post({ callId, method, args });
      } catch (error) {
        pending.delete(callId);
        reject(new RuvLLMError('invalid_option', `${method}: what was given cannot be passed on`, { cause: error }));
      }
    });
  }

  const methods = Object.keys(STORE_METHODS) as StoreMethod[];
  const store = Object.fromEntries(
    methods.map((method) => [method, (...args: readonly unknown[]) => call(method, args)]),
  ) as unknown as MemoryStore;
  return {
    ...store,
    async close() {
      if (ended !== null) return;
      try {
        await call('close', []);
      } finally {
        ended ??= new RuvLLMError('io', 'the memory is closed');
        await transport.end();
      }
    },
  };
}
