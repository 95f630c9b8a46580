const PREFIX = 'federation/';

/** The name of a peer in `learnedFrom`; no request has such an id. */
export const peerId = (key: string): string => PREFIX + key;

const isPeer = (id: string): boolean => id.startsWith(PREFIX);

/** Whether a version learned from peers. */
export const hasPeers = (learnedFrom: readonly string[]): boolean => learnedFrom.some(isPeer);

/** The newest ids, each once, but all of peers: without them a removed peer would continue to serve. */
export function newestIds(ids: readonly string[], limit: number): string[] {
  const all = [...new Set(ids)];
  const peers = all.filter(isPeer);
  return [...peers, ...all.filter((id) => !isPeer(id)).slice(-(limit - peers.length))];
}
