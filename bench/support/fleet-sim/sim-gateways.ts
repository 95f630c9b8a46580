import { createRandom } from '../../../src/core/random.ts';
import { TEXT_BLOCK_BYTES } from '../../../src/gateway/text-chain.ts';
import {
  chooseNode,
  costOf,
  enterNode,
  type Choice,
  type Leave,
  type NodeLoad,
  scaleFor,
} from '../../../src/gateway/choose-node.ts';
import type { Holders } from './holders.ts';
import { createLoadTree, type LoadTree } from './load-tree.ts';
import { createLru, type Lru } from './lru.ts';
import type { SimNodes } from './sim-nodes.ts';
import type { SimOptions } from './sim-options.ts';
import type { SimTrace } from './trace.ts';

/** A node as one gateway sees it. */
interface SeenNode extends NodeLoad {
  readonly index: number;
}

/** As a gateway assumes before it has counted a prompt. */
const BYTES_PER_TOKEN = 4;

interface Gateway {
  readonly seen: readonly SeenNode[];
  /** Those that are up. */
  up: readonly SeenNode[];
  readonly texts: Lru;
  readonly loads: LoadTree;
  turn: number;
}

const NO_PROMPT: Choice<SeenNode> = { numTokens: 0, warmTokens: () => 0 };

export interface SimGateways {
  gatewayOf(request: number): number;
  /** Chooses a node and counts the request towards its load. Null: no node is up. */
  choose(gateway: number, request: number, nowMs: number): { readonly node: number; readonly leave: Leave } | null;
  /** The answer of a node names the blocks of the prompt. */
  learn(gateway: number, request: number): void;
  /** The report of a node about requests in progress. */
  probe(node: number, numRunning: number): void;
  setUp(isUp: (node: number) => boolean): void;
}

export function createSimGateways(
  trace: SimTrace,
  options: SimOptions,
  parts: { readonly holders: Holders; readonly nodes: SimNodes },
): SimGateways {
  const { policy, numNodes, numGateways, tokensPerRequest } = options;
  const scale = { ...scaleFor(numGateways), tokensPerRequest };
  const { starts, blocks, numTokens, blockTokens, sessions } = trace;
  const { holders, nodes } = parts;
  const random = createRandom(options.seed);
  const isUp = new Uint8Array(numNodes).fill(1);
  const loadOf = (node: SeenNode): number => costOf(node, NO_PROMPT, scale);
  const gateways = Array.from({ length: numGateways }, (): Gateway => {
    const seen = Array.from({ length: numNodes }, (_, index): SeenNode => ({ index, numRequests: 0, pendingTokens: 0, numOtherRequests: 0, lastTurn: -random.next() })); // prettier-ignore
    const loads = createLoadTree(seen, (index) => (isUp[index] === 1 ? loadOf(seen[index]!) : Infinity));
    return { seen, up: seen, texts: createLru(options.maxTexts), loads, turn: Math.floor(random.next() * numNodes) };
  });
  // Cached tokens of the current request on each node that has any.
  const warm = new Int32Array(numNodes);
  const warmStamp = new Int32Array(numNodes).fill(-1);
  let stamp = 0;

  /**
   * As `warmBlocks` in fleet-affinity.ts: the longest known place of the prompt that a node has. Visits each node that has one, until
   * `isEnough` says of a number of warm tokens that nodes with as many or fewer do not matter.
   */
  function findWarm(
    request: number,
    isKnown: (block: number) => boolean,
    visit?: (node: number) => void,
    isEnough?: (warmTokens: number) => boolean,
  ): void {
    // prettier-ignore
    stamp++;
    for (let i = starts[request + 1]! - starts[request]! - 1; i >= 0; i--) {
      if (!isKnown(i)) continue;
      const tokens = (i + 1) * blockTokens;
      if (isEnough?.(tokens) === true) return;
      holders.forEach(blocks[starts[request]! + i]!, (node) => {
        if (warmStamp[node] === stamp) return;
        warmStamp[node] = stamp;
        warm[node] = tokens;
        visit?.(node);
      });
    }
  }
  const warmTokens = ({ index }: SeenNode): number => (warmStamp[index] === stamp ? warm[index]! : 0);

  /** A block of the trace is the text of several blocks of a gateway, or a part of one. */
  const textsPerBlock = Math.max(1, Math.round((blockTokens * BYTES_PER_TOKEN) / TEXT_BLOCK_BYTES));
  const textAt = (request: number, index: number): number =>
    blocks[starts[request]! + Math.floor(index / textsPerBlock)]! * textsPerBlock + (index % textsPerBlock);
  const numTexts = (request: number): number => (starts[request + 1]! - starts[request]!) * textsPerBlock;

  /** Knows caches and times exactly: the node with the earliest first token of this request. */
  function chooseExactly(up: readonly SeenNode[], request: number, nowMs: number): SeenNode | null {
    findWarm(request, () => true);
    let best: SeenNode | null = null;
    let bestMs = Infinity;
    for (const node of up) {
      const tokens = Math.max(1, numTokens[request]! - warmTokens(node));
      const ms = Math.max(nowMs, nodes.freeMs[node.index]!) + nodes.serviceMs(node.index, tokens, numTokens[request]!);
      if (best !== null && (ms > bestMs || (ms === bestMs && node.lastTurn >= best.lastTurn))) continue;
      best = node;
      bestMs = ms;
    }
    return best;
  }

  /**
   * The nodes of which one has the least cost of all: those with warm tokens, and of the others the one with the least load. Equal to a
   * choice among all, which takes too long for thousands of nodes.
   */
  function findCandidates({ seen, loads }: Gateway, request: number, isKnown: (block: number) => boolean): SeenNode[] {
    const least = loads.least();
    if (least === -1) return [];
    const candidates: SeenNode[] = [];
    const all = numTokens[request]!;
    const leastLoad = loadOf(seen[least]!);
    let bestCost = Infinity;
    const visit = (node: number): void => {
      if (isUp[node] === 0) return;
      candidates.push(seen[node]!);
      bestCost = Math.min(bestCost, Math.max(0, all - warm[node]!) + loadOf(seen[node]!));
    };
    findWarm(request, isKnown, visit, (tokens) => Math.max(0, all - tokens) + leastLoad > bestCost);
    if (warmStamp[least] !== stamp) candidates.push(seen[least]!);
    return candidates;
  }

  return {
    gatewayOf: (request) =>
      (options.isSticky ? sessions[request]! : Math.floor(random.next() * numGateways)) % numGateways,
    choose(index, request, nowMs) {
      const gateway = gateways[index]!;
      const { up } = gateway;
      if (up.length === 0) return null;
      const choice: Choice<SeenNode> = { numTokens: numTokens[request]!, warmTokens };
      let node: SeenNode | null;
      if (policy === 'oracle') node = chooseExactly(up, request, nowMs);
      else {
        // The text of a block is known if its end is a known place.
        const isKnown = (i: number): boolean => gateway.texts.has(textAt(request, (i + 1) * textsPerBlock - 1));
        const isWarm = policy === 'affine' ? isKnown : () => false;
        if (policy === 'round robin' || policy === 'random') stamp++; // nothing is known to be warm
        if (policy === 'round robin') node = up[gateway.turn % up.length]!;
        else if (policy === 'random') node = up[Math.floor(random.next() * up.length)]!;
        else if (!options.isExhaustive) node = chooseNode(findCandidates(gateway, request, isWarm), choice, scale);
        else {
          findWarm(request, isWarm);
          node = chooseNode(up, choice, scale);
        }
      }
      if (node === null) return null;
      const leave = enterNode(node, choice, ++gateway.turn);
      const { index: chosen } = node;
      gateway.loads.update(chosen);
      const then = (run: () => void) => (): void => {
        run();
        gateway.loads.update(chosen);
      };
      return { node: chosen, leave: { tokens: then(leave.tokens), all: then(leave.all) } };
    },
    learn(index, request) {
      const { texts } = gateways[index]!;
      for (const index of options.placesOf(numTexts(request))) texts.touch(textAt(request, index));
    },
    probe(node, numRunning) {
      for (const { seen, loads } of gateways) {
        const numOther = Math.max(0, numRunning - seen[node]!.numRequests);
        if (numOther === seen[node]!.numOtherRequests) continue;
        seen[node]!.numOtherRequests = numOther;
        loads.update(node);
      }
    },
    setUp(isNowUp) {
      for (let node = 0; node < numNodes; node++) isUp[node] = isNowUp(node) ? 1 : 0;
      for (const gateway of gateways) {
        gateway.up = gateway.seen.filter(({ index }) => isUp[index] === 1);
        for (let node = 0; node < numNodes; node++) gateway.loads.update(node);
      }
    },
  };
}
