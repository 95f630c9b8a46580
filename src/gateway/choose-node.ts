/**
 * Prompt tokens that one running request is worth: it takes a part of every step. With fewer, one warm node would get everything; with
 * more, a shared prefix would be computed on every node.
 */
export const TOKENS_PER_REQUEST = 128;
/** For each gateway of the fleet, and at most: measured in the simulator with 2 to 32 gateways. */
const STEP_PER_GATEWAY = 128;
const MAX_STEP = 1024;

/** How loads are compared. */
export interface LoadScale {
  readonly tokensPerRequest: number;
  /** Loads are rounded down to multiples of so many tokens. */
  readonly stepTokens: number;
}

/**
 * A gateway sees the requests of others a second late. If all compared loads exactly, they would send their next requests to the same node;
 * of nodes with about the same load, each takes the one that it has not chosen for longest.
 */
export const scaleFor = (numGateways: number): LoadScale => ({
  tokensPerRequest: TOKENS_PER_REQUEST,
  stepTokens: numGateways === 1 ? 1 : Math.min(MAX_STEP, STEP_PER_GATEWAY * numGateways),
});

/** The load of a node, as one gateway knows it. */
export interface NodeLoad {
  /** Requests of this gateway that it handles, and the prompt tokens that it still has to compute for them. */
  numRequests: number;
  pendingTokens: number;
  /** Requests that other clients and gateways sent it, by its own last report. */
  numOtherRequests: number;
  /** The turn in which it was last chosen. */
  lastTurn: number;
}

export interface Choice<N> {
  /** Estimated tokens of the prompt. */
  readonly numTokens: number;
  /** Estimated tokens of the prompt that the node has in its prefix cache. */
  warmTokens(node: N): number;
}

/** Tokens to compute before a request gets its first one: its own, and those of others in the queue before it. */
export function costOf<N extends NodeLoad>(
  node: N,
  { numTokens, warmTokens }: Choice<N>,
  { tokensPerRequest, stepTokens }: LoadScale,
): number {
  const running = node.numRequests + node.numOtherRequests;
  const load = node.pendingTokens + running * tokensPerRequest;
  return Math.max(0, numTokens - warmTokens(node)) + load - (load % stepTokens);
}

/** The node with the least work before the first token; of equals the one that was not chosen for longest. Null: there is none. */
export function chooseNode<N extends NodeLoad>(nodes: readonly N[], choice: Choice<N>, scale: LoadScale): N | null {
  let best: N | null = null;
  let bestCost = Infinity;
  for (const node of nodes) {
    const cost = costOf(node, choice, scale);
    if (best !== null && (cost > bestCost || (cost === bestCost && node.lastTurn >= best.lastTurn))) continue;
    best = node;
    bestCost = cost;
  }
  return best;
}

/** A request that counts towards a node: `tokens` once its prompt is computed, `all` when it has ended. */
export interface Leave {
  readonly tokens: () => void;
  readonly all: () => void;
}

/** Counts a request towards the load of its node. */
export function enterNode<N extends NodeLoad>(node: N, choice: Choice<N>, turn: number): Leave {
  let tokens = Math.max(0, choice.numTokens - choice.warmTokens(node));
  let isRunning = true;
  node.lastTurn = turn;
  node.numRequests++;
  node.pendingTokens += tokens;
  const leaveTokens = (): void => {
    node.pendingTokens -= tokens;
    tokens = 0;
  };
  return {
    tokens: leaveTokens,
    all() {
      leaveTokens();
      if (isRunning) node.numRequests--;
      isRunning = false;
    },
  };
}
