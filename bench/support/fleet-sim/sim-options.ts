/** `affine` and `least loaded` are the gateway's own choice, with and without its knowledge of caches. */
export const POLICIES = ['affine', 'least loaded', 'round robin', 'random', 'oracle'] as const;
export type PolicyName = (typeof POLICIES)[number];

/** Time of a request on a node: a fixed one, that of its tokens, and one token per `decodeMs` after the first one. */
export interface ServiceTimes {
  readonly fixedMs: number;
  /** Per token to compute. */
  readonly tokenMs: number;
  /** Per token to compute and token before it, also of those in the cache: it attends to all of them. */
  readonly attentionMs: number;
  readonly decodeMs: number;
  /** Every request in progress delays a prompt by the time of this many prompt tokens. */
  readonly delayTokens: number;
}

/** Some nodes lose their caches and requests, and are down for up to `maxDownMs`. */
export interface Storm {
  readonly atMs: number;
  /** Of the nodes. */
  readonly share: number;
  readonly maxDownMs: number;
}

export interface SimOptions {
  readonly policy: PolicyName;
  readonly numNodes: number;
  readonly numGateways: number;
  /** Blocks in the cache of a node. */
  readonly cacheBlocks: number;
  readonly service: ServiceTimes;
  /** Weight of a request in progress in the cost of a node. */
  readonly tokensPerRequest: number;
  /** From the first token of a request to the gateways' knowledge of its blocks. */
  readonly eventDelayMs: number;
  /** Between two questions of a gateway for the load of a node. */
  readonly probeMs: number;
  /** Places of texts that one gateway remembers. */
  readonly maxTexts: number;
  /** The places of a text that are remembered, by its number of blocks of 128 bytes. */
  readonly placesOf: (numBlocks: number) => readonly number[];
  /** Whether all requests of a session arrive at one gateway. */
  readonly isSticky: boolean;
  readonly storm: Storm | null;
  /** Whether a choice compares all nodes, also those that cannot have the least cost. */
  readonly isExhaustive: boolean;
  readonly seed: number;
}
