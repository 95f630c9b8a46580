/** Identifies the conversation of a request. */
export interface Asked {
  readonly requestId: string;
  readonly sessionId: string | null;
  readonly query: string;
}

const normal = (query: string): string =>
  query
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu)
    ?.join(' ') ?? query;

/**
 * The conversation of each request: requests of a session, and all with the same question, belong together. The same question on both
 * sides of a split would leak its answer.
 */
export function conversationsOf(asked: readonly Asked[]): string[] {
  const parents = new Map<string, string>();
  const rootOf = (key: string): string => {
    let root = key;
    while ((parents.get(root) ?? root) !== root) root = parents.get(root)!;
    for (let at = key; at !== root;) {
      const next = parents.get(at)!;
      parents.set(at, root);
      at = next;
    }
    return root;
  };
  const keysOf = ({ requestId, sessionId, query }: Asked): [string, string] => {
    const words = normal(query);
    return [sessionId === null ? `request ${requestId}` : `session ${sessionId}`, words === '' ? `request ${requestId}` : `query ${words}`]; // prettier-ignore
  };
  for (const one of asked) {
    const [a, b] = keysOf(one).map(rootOf) as [string, string];
    // The smaller name, independent of the order of requests.
    if (a < b) parents.set(b, a);
    else if (b < a) parents.set(a, b);
  }
  return asked.map((one) => rootOf(keysOf(one)[0]));
}
