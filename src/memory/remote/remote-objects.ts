import {
  type CallTransport,
  createRemote,
  type RemoteCall,
  type RemoteReply,
  serveCalls,
} from '../../core/remote-calls.ts';
import { FLAT_METHODS, type FlatObjects, REMOTE_METHODS, type RemoteObjects } from './protocol.ts';

/** Calls that may wait for an answer. */
export const MAX_PENDING = 10_000;

/** Objects in another thread, whose disk writes and searches do not block this one. Closing the store ends the thread. */
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
    backups: bind('backups'),
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

/** Answers calls that arrive as messages; every call gets exactly one reply. */
export function createObjectServer(
  objects: RemoteObjects,
  post: (reply: RemoteReply) => void,
): (call: RemoteCall) => void {
  const flat: FlatObjects = {};
  for (const [object, methods] of Object.entries(REMOTE_METHODS)) {
    const target = objects[object as keyof RemoteObjects] as unknown as FlatObjects;
    for (const method of Object.keys(methods)) flat[`${object}.${method}`] = (...args) => target[method]!(...args);
  }
  return serveCalls(flat, FLAT_METHODS, post);
}
