import { type Clock, delay } from '../core/clock.ts';
import { RuvLLMError } from '../core/errors.ts';
import { describeFailure } from '../server/errors.ts';
import type { Route } from '../server/route.ts';
import { type Attempt, attempt, isStream } from './attempt.ts';
import { type Choice, chooseNode, enterNode, type Leave, scaleFor } from './choose-node.ts';
import { requestHeaders, responseHeaders } from './forward-headers.ts';
import { type GatewayNode, isBehind, lacksModel, noteLackedModel, reportsModel, setHealth } from './node-table.ts';
import { endWait, giveUpWait, isSilent, startWait } from './silence.ts';
import type { ReleaseView } from './releases/release-view.ts';
import type { GatewayBody, GatewayRequest, GatewayResponse, Upstream } from './types.ts';
import { wholeRecords } from './whole-records.ts';

/** A request that ends the node that answers it must not end all of them. */
const MAX_LOST_NODES = 3;
/** Nodes switch to a committed release within this time. */
const COMMIT_WAIT_MS = 2000;
const COMMIT_POLL_MS = 20;
const NODE_POLL_MS = 100;
/** Statuses of answers after which another node may get the request. */
const MOVED: ReadonlySet<number> = new Set([404, 503, 508, 529]);

export interface ForwardOptions {
  readonly nodes: readonly GatewayNode[];
  readonly upstream: Upstream;
  readonly clock: Clock;
  /** Of this fleet, with this one. */
  numGateways(): number;
  /** Asks the nodes that are not up for their health; resolves when all have answered or failed. */
  askNodes(): Promise<void>;
  /** How long a request waits while no node is up. */
  readonly nodeWaitMs: number;
  /** How long a node may take for the beginning of an answer that it can begin at once, and for a whole one. */
  readonly firstByteMs: number;
  readonly answerMs: number;
  /** Adapters that the fleet has published; null: none can be. */
  readonly releases: ReleaseView | null;
  /** Asks nodes that have not reported this release. */
  askBehind(release: number): Promise<void>;
  /** Asks a node whose connection broke for its health. Until it answers, it gets no requests. */
  doubt(node: GatewayNode, reason: string): void;
  /** Called when a request was sent to another node, with the reason. */
  onRetry(node: GatewayNode, reason: string): void;
  /** Called when a node accepts requests but does not answer them; others get them for a while. */
  onSilent(node: GatewayNode): void;
}

export interface Forwarded {
  readonly request: GatewayRequest;
  readonly body: Uint8Array;
  readonly route: Route;
  readonly requestId: string;
  /** The model it names; null: none. */
  readonly model: string | null;
  readonly choice: Choice<GatewayNode>;
  /** Whether a second run of the request changes nothing but its own answer. */
  readonly isRepeatable: boolean;
  /** Whether its answer begins at once, even if a model takes minutes for all of it. */
  readonly beginsAtOnce: boolean;
  /** Further headers for the node. */
  readonly headers: Readonly<Record<string, string>>;
  /** Called with the headers of the node's answer, before the first byte is passed on. */
  onAnswer(node: GatewayNode, attempt: Attempt): void;
  /** Called when the node of a stream is lost. */
  onBroken(error: unknown): void;
  /** Called once, when the answer is complete or the client has left. */
  onEnd(): void;
}

/** A node that the request counts towards. */
interface Chosen {
  readonly node: GatewayNode;
  readonly leave: Leave;
}

/** Sends requests to nodes: to another one as long as the client has got no byte. */
export function createForwarder(options: ForwardOptions) {
  const { nodes, upstream, clock, releases, onRetry } = options;
  let turn = 0;

  const servesModel = (node: GatewayNode, model: string | null): boolean =>
    model === null || !lacksModel(node, model, clock.now());

  /** Chooses a node and counts the request at once: requests that arrive together would all choose the same one. */
  async function choose(sent: Forwarded, tried: Set<GatewayNode>, endMs: number): Promise<Chosen | null> {
    const { request } = sent;
    const isPublished = sent.model !== null && releases?.isPublished(sent.model) === true;
    const find = (): Chosen | null => {
      const up = nodes.filter(
        (node) => node.health === 'up' && !tried.has(node) && !(isPublished && isBehind(node, releases!.number)),
      );
      const able = up.filter((node) => servesModel(node, sent.model));
      // Nodes that have the model and its adapter loaded, if any has said so.
      const reporting = sent.model === null ? [] : able.filter((node) => reportsModel(node, sent.model!));
      const serving = reporting.length > 0 ? reporting : able;
      // If no node is known to serve it, one of them says so with its own error.
      const candidates = serving.length > 0 || tried.size > 0 ? serving : up;
      const awake = candidates.filter((one) => !isSilent(one, clock.now()));
      const node = chooseNode(awake.length > 0 ? awake : candidates, sent.choice, scaleFor(options.numGateways()));
      if (node === null) return null;
      startWait(node, clock.now());
      return { node, leave: enterNode(node, sent.choice, ++turn) };
    };
    if (isPublished) await untilCommitted(tried, request.signal);
    const first = find();
    // Nodes that announce themselves may still be unknown.
    if (first !== null || (nodes.length > 0 && nodes.every(({ health }) => health === 'up'))) return first;
    // A node may have come back since it was last asked.
    await options.askNodes();
    const second = find();
    if (second !== null || !(await untilUp(endMs, request.signal))) return second;
    // A node that was lost may be the one that is back.
    tried.clear();
    return find();
  }

  /** A fleet without nodes is often one that starts, or starts again. Returns whether it waited for a node that came. */
  async function untilUp(endMs: number, signal: AbortSignal): Promise<boolean> {
    const isUp = (): boolean => nodes.some(({ health }) => health === 'up');
    if (isUp()) return false;
    while (!isUp() && clock.now() < endMs && !signal.aborted) {
      await delay(clock, NODE_POLL_MS, signal);
      await options.askNodes();
    }
    return isUp();
  }

  /** Right after a commit the gateway may know the release before any node has reported it. */
  async function untilCommitted(tried: ReadonlySet<GatewayNode>, signal: AbortSignal): Promise<void> {
    const endMs = clock.now() + COMMIT_WAIT_MS;
    const isWaiting = (): boolean => {
      const up = nodes.filter(({ health }) => health === 'up');
      return up.some((node) => !tried.has(node)) && up.every((node) => isBehind(node, releases!.number));
    };
    while (isWaiting() && clock.now() < endMs && !signal.aborted) {
      await options.askBehind(releases!.number);
      if (isWaiting()) await delay(clock, COMMIT_POLL_MS, signal);
    }
  }

  /** Why another node should get the request; null: this is the answer. */
  function reasonToMove(node: GatewayNode, { status, bytes, rest }: Attempt, model: string | null): string | null {
    if (rest !== null || !MOVED.has(status)) return null;
    const text = new TextDecoder().decode(bytes.subarray(0, 4096));
    if (status === 508) return 'it leads back to this gateway';
    if (status !== 404) {
      if (text.includes('shutting')) setHealth(node, 'draining', 'it is shutting down');
      return `it answered ${status}`;
    }
    if (model === null || !text.includes('model_not_found')) return null;
    noteLackedModel(node, model, clock.now());
    return 'it does not serve the model';
  }

  async function forward(sent: Forwarded): Promise<GatewayResponse> {
    const { request, isRepeatable } = sent;
    const tried = new Set<GatewayNode>();
    const outgoing = {
      method: request.method,
      target: request.target,
      headers: { ...requestHeaders(request.headers), ...sent.headers },
      body: sent.body,
      signal: request.signal,
    };
    let refused: { readonly node: GatewayNode; readonly attempt: Attempt } | null = null;
    let numLost = 0;
    let reason = 'no node is up';
    const endMs = clock.now() + options.nodeWaitMs;
    const headMs = sent.beginsAtOnce ? options.firstByteMs : options.answerMs;
    const limits = { clock, headMs, answerMs: options.answerMs };
    for (;;) {
      const chosen = await choose(sent, tried, endMs);
      if (chosen === null) break;
      const { node, leave } = chosen;
      tried.add(node);
      try {
        const answer = await attempt(upstream, node, outgoing, limits);
        endWait(node, clock.now());
        const move = reasonToMove(node, answer, sent.model);
        if (move === null) {
          sent.onAnswer(node, answer);
          return respond(sent, node, answer, leave);
        }
        leave.all();
        answer.end();
        refused = { node, attempt: answer };
        reason = `node ${node.name}: ${move}`;
        onRetry(node, move);
      } catch (error) {
        leave.all();
        const isLate = error instanceof RuvLLMError && error.data['isLate'] === true;
        const limitMs = isLate ? 0 : request.signal.aborted ? headMs : Infinity;
        if (giveUpWait(node, clock.now(), limitMs)) options.onSilent(node);
        if (request.signal.aborted) throw error;
        reason = `node ${node.name}: ${(error as Error).message}`;
        const mayBeDone = error instanceof RuvLLMError && error.data['isSent'] === true;
        if (mayBeDone && !isRepeatable) throw lostWhileWriting(node, error);
        if (!isLate) options.doubt(node, (error as Error).message);
        if (mayBeDone && ++numLost >= MAX_LOST_NODES) {
          reason = `${numLost} nodes were lost while they handled this request; the last: ${(error as Error).message}`;
          break;
        }
        onRetry(node, (error as Error).message);
      }
    }
    if (refused !== null && numLost === 0) {
      sent.onEnd();
      return answerOf(refused.node, refused.attempt, refused.attempt.bytes);
    }
    const data = { numNodes: nodes.length, numTried: tried.size, retryAfterSeconds: 2 };
    const message = `none of ${nodes.length} nodes can answer, ${tried.size} were tried; ${reason}`;
    throw new RuvLLMError('overloaded', message, { data, isRetryable: true });
  }

  function respond(sent: Forwarded, node: GatewayNode, answer: Attempt, leave: Leave): GatewayResponse {
    leave.tokens();
    let isOver = false;
    const end = (): void => {
      if (isOver) return;
      isOver = true;
      leave.all();
      answer.end();
      sent.onEnd();
    };
    if (answer.rest === null) {
      end();
      return answerOf(node, answer, answer.bytes);
    }
    const chunks = withEnd(chunksOf(answer.bytes, answer.rest), end);
    if (!isStream(answer)) return answerOf(node, answer, chunks);
    const isLines = !answer.headers['content-type']!.startsWith('text/event-stream');
    const lastWords = (error: unknown): Uint8Array | null => {
      if (sent.request.signal.aborted) return null;
      options.doubt(node, (error as Error).message);
      sent.onBroken(error);
      return brokenStream(sent, node, isLines);
    };
    return answerOf(node, answer, withEnd(wholeRecords(chunks, isLines ? 1 : 2, lastWords), end));
  }

  return { forward };
}

/** The names of a node and its answer; lengths are those of the bytes that are passed on. */
function answerOf(node: GatewayNode, { status, headers }: Attempt, body: GatewayBody): GatewayResponse {
  return { status, headers: { ...responseHeaders(headers), 'x-ruvllm-node': node.name }, body };
}

async function* chunksOf(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  for (;;) {
    const { value, done } = await rest.next();
    if (done === true) return;
    yield value;
  }
}

async function* withEnd(chunks: AsyncIterable<Uint8Array>, end: () => void): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks;
  } finally {
    end();
  }
}

function lostWhileWriting(node: GatewayNode, cause: unknown): RuvLLMError {
  const message = `node ${node.name} was lost while it handled the request, which may have taken effect; check before sending it again`;
  return new RuvLLMError('remote_failed', message, { cause, data: { node: node.name } });
}

/** The last record of a stream whose node was lost: the status is already sent. */
function brokenStream({ route, requestId }: Forwarded, node: GatewayNode, isLines: boolean): Uint8Array {
  const message = `node ${node.name} was lost during the answer; send the request again`;
  const failure = describeFailure(new RuvLLMError('remote_failed', message, { isRetryable: true }));
  const text = JSON.stringify(route.errors.body(failure, requestId));
  const isNamed = 'type' in route.errors.body(failure, requestId);
  return new TextEncoder().encode(isLines ? `${text}\n` : `${isNamed ? 'event: error\n' : ''}data: ${text}\n\n`);
}
