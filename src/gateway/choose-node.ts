import type { GatewayNode } from './node-table.ts';

/**
 * Prompt tokens that one running request is worth: it takes a part of every step. With fewer, one warm node would get everything; with
 * more, a shared prefix would be computed on every node.
 */
export const TOKENS_PER_REQUEST = 128;

export interface Choice {
  /** Estimated tokens of the prompt. */
  readonly numTokens: number;
  /** Estimated tokens of the prompt that the node has in its prefix cache. */
  warmTokens(node: GatewayNode): number;
}

/** Tokens to compute before a request gets its first one: its own, and those of others in the queue before it. */
export function costOf(node: GatewayNode, { numTokens, warmTokens }: Choice): number {
  const running = node.numRequests + node.numOtherRequests;
  return Math.max(0, numTokens - warmTokens(node)) + node.pendingTokens + running * TOKENS_PER_REQUEST;
}

/** The node with the least work before the first token; of equals the one that was not chosen for longest. Null: there is none. */
export function chooseNode(nodes: readonly GatewayNode[], choice: Choice): GatewayNode | null {
  let best: GatewayNode | null = null;
  let bestCost = Infinity;
  for (const node of nodes) {
    const cost = costOf(node, choice);
    if (best !== null && (cost > bestCost || (cost === bestCost && node.lastTurn >= best.lastTurn))) continue;
    best = node;
    bestCost = cost;
  }
  return best;
}
