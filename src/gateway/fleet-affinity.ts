import { linkAbort } from '../core/abort.ts';
import { type Clock, systemClock } from '../core/clock.ts';
import { RuvLLMError } from '../core/errors.ts';
import { BLOCK_TOKENS } from '../server/fleet/block-ledger.ts';
import { ASK_HEADER, writeAsk } from '../server/fleet/fleet-ask.ts';
import type { FleetKeys } from '../server/fleet/fleet-keys.ts';
import { PROMPT_BLOCKS_HEADER, readPromptBlocks } from '../server/fleet/prompt-blocks.ts';
import type { Logger } from '../server/logger.ts';
import type { Affinity, AffinityPlan } from './affinity.ts';
import type { NodeFleetState } from './fleet-state.ts';
import { followBlocks, refusalOf } from './follow-blocks.ts';
import type { GatewayMetrics } from './gateway-metrics.ts';
import type { GatewayNode } from './node-table.ts';
import { readUpTo } from './read-body.ts';
import { hashText } from './text-chain.ts';
import type { FleetBus } from './shared/fleet-bus.ts';
import { shareTexts } from './shared/shared-texts.ts';
import { createTextIndex, type TextPlace } from './text-index.ts';
import type { Upstream } from './types.ts';

export interface FleetAffinityOptions {
  readonly nodes: readonly GatewayNode[];
  readonly keys: FleetKeys;
  readonly upstream: Upstream;
  readonly metrics: Pick<GatewayMetrics, 'countRefusedEvents' | 'countRefusedNote'>;
  readonly logger: Logger;
  /** Carries what other gateways learned about texts; null: this is the only gateway. */
  readonly bus?: FleetBus | null;
  /** Default: the process's. */
  readonly clock?: Clock;
}

const STATE_PATH = '/fleet/state';
const MAX_STATE_BYTES = 2 ** 20;
/** Bytes of text per token before a prompt of the model has been counted. */
const FIRST_BYTES_PER_TOKEN = 4;
/** After a refused event the node is not followed for this long: it would send the same again. */
const REFUSED_MS = 30_000;

interface Following {
  readonly epoch: string;
  stop(): void;
}

/** Knows the prefix caches of nodes by their events, and the blocks of a text by their answers to earlier requests. */
export function createFleetAffinity(options: FleetAffinityOptions): Affinity {
  const { nodes, keys, upstream, metrics, logger, bus = null, clock = systemClock } = options;
  const texts = createTextIndex();
  const share = bus === null ? (): void => {} : shareTexts({ bus, keys, clock, texts, onRefused: metrics.countRefusedNote }); // prettier-ignore
  const following = new Map<GatewayNode, Following>();
  const refusedUntil = new Map<GatewayNode, number>();
  const bytesPerToken = new Map<string, number>();
  const ended = new AbortController();

  /** The best known place of a text that the node has in its cache; places of longer beginnings come last. */
  function warmBlocks(node: GatewayNode, places: readonly TextPlace[]): number {
    for (let i = places.length - 1; i >= 0; i--) {
      const { block, numBlocks } = places[i]!;
      if (node.blocks.has(block)) return numBlocks;
    }
    return 0;
  }

  function plan({ tenant, model, promptText }: Parameters<Affinity['plan']>[0]): AffinityPlan {
    const bytes = new TextEncoder().encode(promptText);
    const sizeBytes = bytes.length; // the plan lives as long as its request: it must not hold the text
    const hashes = hashText(keys.textSalt, { tenant, model }, bytes);
    const places = texts.find(hashes);
    const ratio = bytesPerToken.get(model ?? '') ?? FIRST_BYTES_PER_TOKEN;
    const warm = new Map<GatewayNode, number>();
    return {
      numTokens: Math.ceil(sizeBytes / ratio),
      warmTokens(node) {
        const cached = warm.get(node) ?? warmBlocks(node, places) * BLOCK_TOKENS;
        warm.set(node, cached);
        return cached;
      },
      headers: {},
      learn(_node, headers) {
        const prompt = readPromptBlocks(headers[PROMPT_BLOCKS_HEADER]);
        if (prompt === null || prompt.numBlocks === 0) return;
        share(texts.learn(hashes, sizeBytes, prompt));
        if (bytesPerToken.size >= MAX_MODELS) bytesPerToken.clear();
        bytesPerToken.set(model ?? '', sizeBytes / (prompt.numBlocks * BLOCK_TOKENS));
      },
    };
  }

  async function readState(node: GatewayNode, signal: AbortSignal): Promise<NodeFleetState & { epoch: string }> {
    const ask = writeAsk(keys, STATE_PATH, clock.wallClock());
    const sent = { method: 'GET', target: STATE_PATH, headers: { [ASK_HEADER]: ask }, body: new Uint8Array(), signal };
    const { status, body } = await upstream.send(node.url, sent);
    const { bytes, rest } = await readUpTo(body, MAX_STATE_BYTES);
    if (rest !== null) await rest.return?.();
    if (status === 404) throw new RuvLLMError('untrusted', 'it belongs to no fleet: start it with the fleet secret');
    if (status === 403) throw new RuvLLMError('untrusted', 'it has another fleet secret, or its clock is wrong');
    if (status !== 200) throw new RuvLLMError('remote_failed', `${STATE_PATH} answered ${status}`);
    const { state, signature } = JSON.parse(new TextDecoder().decode(bytes)) as { state: string; signature: string };
    if (
      ![state, signature].every((one) => typeof one === 'string') ||
      !keys.verify('state', `${ask} ${state}`, signature)
    ) {
      throw new RuvLLMError('untrusted', 'its state does not have the signature of this fleet');
    }
    return JSON.parse(state) as NodeFleetState & { epoch: string };
  }

  /** Of nodes that serve different files under one name, those of the smaller number would give other answers. */
  function checkVersions(node: GatewayNode, { models }: NodeFleetState): void {
    for (const { id, modelHash } of models) {
      if (modelHash === '') continue;
      const counts = new Map<string, number>();
      for (const other of nodes) {
        if (other === node || other.health !== 'up') continue;
        const hash = other.fleet?.models.find((one) => one.id === id)?.modelHash ?? '';
        if (hash !== '') counts.set(hash, (counts.get(hash) ?? 0) + 1);
      }
      const numSame = (counts.get(modelHash) ?? 0) + 1;
      const [hash, numOther] = [...counts].reduce((best, one) => (one[1] > best[1] ? one : best), ['', 0]);
      // Of equal numbers those that are up already stay.
      if (hash === modelHash || numOther < numSame || (numOther === numSame && node.health === 'up')) continue;
      const shown = `${modelHash.slice(0, 12)} instead of ${hash.slice(0, 12)}`;
      throw new RuvLLMError('untrusted', `its model ${id} is another version: ${shown} of ${numOther} nodes`);
    }
  }

  function follow(node: GatewayNode, epoch: string): void {
    if (following.get(node)?.epoch === epoch || (refusedUntil.get(node) ?? 0) > clock.now()) return;
    following.get(node)?.stop();
    const link = linkAbort(ended.signal);
    const own: Following = { epoch, stop: link.abort };
    following.set(node, own);
    followBlocks(node, { keys, upstream, wallClock: clock.wallClock, epoch, signal: link.signal })
      .catch((error: unknown) => {
        const reason = refusalOf(error);
        if (reason === null) return; // the stream broke: the next question starts it again
        refusedUntil.set(node, clock.now() + REFUSED_MS);
        metrics.countRefusedEvents(node.name, reason);
        logger.log('warn', 'events refused', { node: node.name, url: node.url, reason: (error as Error).message });
      })
      .finally(() => {
        link.abort();
        link.unlink();
        if (following.get(node) === own) following.delete(node);
      });
  }

  return {
    get numTexts() {
      return texts.size;
    },
    plan,
    async checkNode(node, signal) {
      const { epoch, ...state } = await readState(node, signal);
      checkVersions(node, state);
      node.fleet = state;
      node.numOtherRequests = Math.max(0, state.numRequests - node.numRequests);
      follow(node, epoch);
    },
    forgetNode(node) {
      following.get(node)?.stop();
      refusedUntil.delete(node);
    },
    close() {
      ended.abort();
    },
  };
}

/** Names of models come from clients. */
const MAX_MODELS = 1000;
