import { MAX_LISTS } from './columns.ts';
import type { VectorSpace } from './vector-space.ts';

/** Collects link candidates, and lets the kernels choose for many nodes at once. */
interface LinkPicker {
  /** Candidates may repeat, and contain the node itself. `use` gets the chosen links, at the latest in `flush`. */
  add(node: number, candidates: ArrayLike<number>, use: (links: Int32Array) => void): void;
  flush(): void;
}

export function createLinkPicker(space: VectorSpace, degree: number, width: number): LinkPicker {
  const { lists, candidates, picked } = space.work;
  let uses: ((links: Int32Array) => void)[] = [];
  let numCandidates = 0;
  const flush = (): void => {
    if (uses.length === 0) return;
    space.pack.pickLinks({
      table: space.exactTable,
      lists: space.workAt.lists,
      numLists: uses.length,
      candidates: space.workAt.candidates,
      width,
      degree,
      isFilled: false,
      out: space.workAt.picked,
      lanes: space.lanes,
    });
    space.finish();
    const waiting = uses;
    uses = [];
    numCandidates = 0;
    waiting.forEach((use, i) => {
      const links = picked.subarray(i * degree, (i + 1) * degree);
      const end = links.indexOf(-1);
      use(end < 0 ? links : links.subarray(0, end));
    });
  };
  return {
    add(node, ids, use) {
      if (uses.length === MAX_LISTS || numCandidates + ids.length > candidates.length) flush();
      lists.set([node, numCandidates, ids.length], uses.length * 3);
      candidates.set(ids, numCandidates);
      numCandidates += ids.length;
      uses.push(use);
    },
    flush,
  };
}
