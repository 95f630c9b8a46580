import type { NodeLoad } from '../../../src/gateway/choose-node.ts';

/** The node with the least load, and of equals the one that was not chosen for longest. */
export interface LoadTree {
  /** After the load or turn of a node has changed. */
  update(index: number): void;
  /** -1: no node is up. */
  least(): number;
}

/** A tournament: each inner place has the winner of the two below it. */
export function createLoadTree(nodes: readonly NodeLoad[], loadOf: (index: number) => number): LoadTree {
  let numLeaves = 1;
  while (numLeaves < nodes.length) numLeaves *= 2;
  const winners = new Int32Array(2 * numLeaves).fill(-1);
  const loads = new Float64Array(nodes.length);

  const better = (a: number, b: number): number => {
    if (a === -1 || b === -1) return a === -1 ? b : a;
    if (loads[a] !== loads[b]) return loads[a]! < loads[b]! ? a : b;
    return nodes[b]!.lastTurn < nodes[a]!.lastTurn ? b : a;
  };
  for (let i = 0; i < nodes.length; i++) {
    loads[i] = loadOf(i);
    winners[numLeaves + i] = i;
  }
  for (let place = numLeaves - 1; place > 0; place--)
    winners[place] = better(winners[2 * place]!, winners[2 * place + 1]!);

  return {
    update(index) {
      loads[index] = loadOf(index);
      for (let place = (numLeaves + index) >> 1; place > 0; place >>= 1) {
        winners[place] = better(winners[2 * place]!, winners[2 * place + 1]!);
      }
    },
    least: () => (winners[1]! !== -1 && loads[winners[1]!]! < Infinity ? winners[1]! : -1),
  };
}
