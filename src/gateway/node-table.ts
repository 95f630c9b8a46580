import type { NodeLoad } from './choose-node.ts';
import type { NodeFleetState } from './fleet-state.ts';
import { createSilence, type NodeSilence } from './silence.ts';

/**
 * `up` gets requests. `draining`, `loading`: the node says that it cannot answer now. `down`: it does not answer at all. `refused`: it
 * answers but does not belong to this fleet.
 */
export type NodeHealth = 'unknown' | 'up' | 'loading' | 'draining' | 'down' | 'refused';

/** A node as the gateway sees it. */
export interface GatewayNode extends NodeLoad {
  /** Its number in the list, from 1 on: addresses stay private. */
  readonly name: string;
  readonly url: string;
  health: NodeHealth;
  /** Why it is not up; null: it is. */
  reason: string | null;
  /** Its own report; null: it has given none. */
  fleet: NodeFleetState | null;
  /** Blocks in its prefix caches, by its own events. */
  readonly blocks: Set<string>;
  /** Models that it does not serve, by its own answers, until a time. */
  readonly lackedModels: Map<string, number>;
  /** Aborts when the node is lost; requests without a sent byte go elsewhere. */
  lost: AbortController;
  readonly silence: NodeSilence;
}

/** `lastTurn` differs between gateways: those that start together would all send their first requests to the same nodes. */
export function createNode(name: string, url: string, lastTurn = 0): GatewayNode {
  return {
    name,
    url,
    health: 'unknown',
    reason: 'not asked yet',
    numRequests: 0,
    pendingTokens: 0,
    numOtherRequests: 0,
    lastTurn,
    fleet: null,
    blocks: new Set(),
    lackedModels: new Map(),
    lost: new AbortController(),
    silence: createSilence(),
  };
}

/** Changes the health of a node. A node that goes down ends what it was doing. */
export function setHealth(node: GatewayNode, health: NodeHealth, reason: string | null): void {
  node.health = health;
  node.reason = reason;
  if (health !== 'down') return;
  node.lost.abort();
  node.lost = new AbortController();
}

/** Whether a node has reported the model, with its adapter if the name has one. */
export const reportsModel = ({ fleet }: GatewayNode, name: string): boolean =>
  fleet?.models.some(
    ({ id, aliases, adapters }) =>
      [id, ...aliases].includes(name) ||
      adapters.some(
        (adapter) => [id, ...aliases].includes(name.slice(0, -adapter.length - 1)) && name.endsWith(`:${adapter}`),
      ),
  ) ?? false;

/** Whether it has not reported this release of published adapters or a later one. */
export const isBehind = ({ fleet }: GatewayNode, release: number): boolean => (fleet?.release ?? 0) < release;

/** Names of models come from clients: a flood of invented ones must not grow the table. */
const MAX_LACKED = 1000;
const LACKED_MS = 30_000;

export function noteLackedModel(node: GatewayNode, model: string, nowMs: number): void {
  if (node.lackedModels.size >= MAX_LACKED) node.lackedModels.clear();
  node.lackedModels.set(model, nowMs + LACKED_MS);
}

export function lacksModel(node: GatewayNode, model: string, nowMs: number): boolean {
  const untilMs = node.lackedModels.get(model);
  if (untilMs === undefined) return false;
  if (untilMs > nowMs) return true;
  node.lackedModels.delete(model);
  return false;
}
