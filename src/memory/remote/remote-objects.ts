import { type CallTransport, createRemote } from '../../core/remote-calls.ts';
import { FLAT_METHODS, REMOTE_METHODS, type RemoteObjects } from './protocol.ts';

/** Calls that may wait for an answer; more would only grow the memory of a process whose disk is too slow. */
export const MAX_PENDING = 10_000;

/** Objects that live in another thread, so that no write to the disk and no search holds up the caller's. Closing the store ends it. */
export function createRemoteObjects(transport: CallTransport): RemoteObjects {
  const remote = createRemote(transport, FLAT_METHODS, { name: 'the memory', maxPending: MAX_PENDING });

  const bind = <O extends keyof RemoteObjects>(object: O): RemoteObjects[O] =>
    Object.fromEntries(
      Object.keys(REMOTE_METHODS[object]).map((method) => [method, remote.object[`${object}.${method}`]]),
    ) as unknown as RemoteObjects[O];

  const store = bind('store');
  return {
    archive: bind('archive'),
    embedder: bind('embedder'),
    finder: bind('finder'),
    keys: bind('keys'),
    store: {
      ...store,
      async close() {
        if (remote.hasEnded) return;
        try {
          await store.close();
        } finally {
          await remote.end();
        }
      },
    },
  };
}
