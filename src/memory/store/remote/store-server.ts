import { RuvLLMError, serializeError } from '../../../core/errors.ts';
import type { MemoryStore } from '../../types.ts';
import { STORE_METHODS, type StoreCall, type StoreReply } from './protocol.ts';

/** Answers calls that come as messages; every call gets one reply, whatever happens. */
export function createStoreServer(store: MemoryStore, post: (reply: StoreReply) => void): (call: StoreCall) => void {
  async function answer({ callId, method, args }: StoreCall): Promise<StoreReply> {
    try {
      if (!Object.hasOwn(STORE_METHODS, method)) {
        throw new RuvLLMError('internal', `a store has no method "${String(method)}"`);
      }
      const value = await (store[method] as (...given: readonly unknown[]) => Promise<unknown>)(...args);
      return { callId, value };
    } catch (error) {
      return { callId, error: serializeError(error) };
    }
  }
  return (call) => {
    void answer(call).then((reply) => {
      try {
        post(reply);
      } catch (error) {
        // What cannot be cloned is a bug; without a reply the caller would wait for ever.
        post({ callId: call.callId, error: serializeError(error) });
      }
    });
  };
}
