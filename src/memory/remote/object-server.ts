import { RuvLLMError, serializeError } from '../../core/errors.ts';
import { REMOTE_METHODS, type RemoteCall, type RemoteObjects, type RemoteReply } from './protocol.ts';

/** Answers calls that come as messages; every call gets one reply, whatever happens. */
export function createObjectServer(
  objects: RemoteObjects,
  post: (reply: RemoteReply) => void,
): (call: RemoteCall) => void {
  async function answer({ callId, object, method, args }: RemoteCall): Promise<RemoteReply> {
    try {
      if (!Object.hasOwn(REMOTE_METHODS, object) || !Object.hasOwn(REMOTE_METHODS[object], method)) {
        throw new RuvLLMError('internal', `the memory has no ${String(object)}.${String(method)}`);
      }
      const target = objects[object] as unknown as Readonly<Record<string, (...given: readonly unknown[]) => unknown>>;
      return { callId, value: await target[method]!(...args) };
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
