/** Which nodes have which blocks, as gateways know it from events. */
export interface Holders {
  add(block: number, node: number): void;
  remove(block: number, node: number): void;
  /** Calls back with each node that has the block. */
  forEach(block: number, visit: (node: number) => void): void;
}

/** Linked lists in one pool. Blocks are 0 to `numBlocks` - 1. */
export function createHolders(numBlocks: number): Holders {
  const heads = new Int32Array(numBlocks).fill(-1);
  let nodes = new Int32Array(1024);
  let nexts = new Int32Array(1024);
  let numUsed = 0;
  let free = -1;

  function take(): number {
    if (free !== -1) {
      const entry = free;
      free = nexts[entry]!;
      return entry;
    }
    if (numUsed === nodes.length) {
      const grow = (old: Int32Array): Int32Array<ArrayBuffer> => {
        const larger = new Int32Array(2 * old.length);
        larger.set(old);
        return larger;
      };
      nodes = grow(nodes);
      nexts = grow(nexts);
    }
    return numUsed++;
  }

  return {
    add(block, node) {
      for (let entry = heads[block]!; entry !== -1; entry = nexts[entry]!) if (nodes[entry] === node) return;
      const entry = take();
      nodes[entry] = node;
      nexts[entry] = heads[block]!;
      heads[block] = entry;
    },
    remove(block, node) {
      let before = -1;
      for (let entry = heads[block]!; entry !== -1; before = entry, entry = nexts[entry]!) {
        if (nodes[entry] !== node) continue;
        if (before === -1) heads[block] = nexts[entry]!;
        else nexts[before] = nexts[entry]!;
        nexts[entry] = free;
        free = entry;
        return;
      }
    },
    forEach(block, visit) {
      for (let entry = heads[block]!; entry !== -1; entry = nexts[entry]!) visit(nodes[entry]!);
    },
  };
}
