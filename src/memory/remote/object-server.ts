import { type RemoteCall, type RemoteReply, serveCalls } from '../../core/remote-calls.ts';
import { FLAT_METHODS, type FlatObjects, REMOTE_METHODS, type RemoteObjects } from './protocol.ts';

/** Answers calls that come as messages; every call gets one reply, whatever happens. */
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
