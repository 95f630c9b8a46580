import type { Choice } from './choose-node.ts';
import type { GatewayNode } from './node-table.ts';

/** Where a request is warm, as far as the gateway knows. */
export interface AffinityPlan extends Choice<GatewayNode> {
  /** Headers that ask the node to name the blocks of the prompt. */
  readonly headers: Readonly<Record<string, string>>;
  /** Learns from the headers of the node's answer which blocks the prompt has. */
  learn(node: GatewayNode, headers: Readonly<Record<string, string>>): void;
}

/** Knows the prefix caches of the nodes. */
export interface Affinity {
  /** Blocks of text whose tokens are known. */
  readonly numTexts: number;
  plan(request: { readonly tenant: string; readonly model: string | null; readonly promptText: string }): AffinityPlan;
  /** Reads the state of a node and follows its events; throws if it does not belong to the fleet. */
  checkNode(node: GatewayNode, signal: AbortSignal): Promise<void>;
  /** Stops following a node that left the fleet. */
  forgetNode(node: GatewayNode): void;
  close(): void;
}
