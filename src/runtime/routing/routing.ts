import { type Clock, systemClock, within } from '../../core/clock.ts';
import { isWholeTenant } from '../../core/erasure.ts';
import { messageOf, RuvLLMError } from '../../core/errors.ts';
import { type HeardPattern, hearPatterns, nearPatterns } from '../../learning/reasoning-bank/near-patterns.ts';
import {
  expectedLatencies,
  expectedTokens,
  explainDecision,
  type RouteDecision,
  type RouteInput,
} from '../../learning/router/index.ts';
import { DEFAULT_SAMPLING } from '../../sampling/generate-params.ts';
import { routedTurns } from '../../learning/router-training/rated-routes.ts';
import type { Memory } from '../../memory/memory.ts';
import { createCandidateHealth } from './candidate-health.ts';
import { createRouteExploration } from './explore.ts';
import { type JudgedRoute, judgeRoute, type JudgeRules } from './judge-route.ts';
import type { RouteCandidate, RouteConfig } from './route-config.ts';
import { createTenantRouters, NO_ROUTER, type TenantRouter } from './tenant-routers.ts';
import type { CandidateModel, RouteChoice, RouteQuestion, Routing, SamplingChoice } from './types.ts';

export interface RoutingContext {
  readonly config: RouteConfig;
  /** Null: no learning; the safe default answers. */
  readonly memory: Memory | null;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Limits the wait for sentence vectors. Default: the process clock. */
  readonly clock?: Clock;
  readonly seed: number;
  /** Called with problems for the operator. */
  readonly report: (message: string) => void;
}

/** Patterns per decision. */
const NUM_PATTERNS = 8;
const MAX_SIMILARITIES = 32;
const clamp = (value: number, low: number, high: number): number => Math.max(low, Math.min(high, value || 0));

/** The smallest context size that is distinguished. */
const SMALLEST_CONTEXT = 256;
/** Expected length of an answer without a limit: the library's default limit. */
const EXPECTED_ANSWER_TOKENS = 256;

/** Tokens of the prompt, as a candidate counts them. */
const promptTokensOf = ({ turns, numPromptTokens, models }: RouteQuestion, candidate: number): number =>
  models?.[candidate]?.promptTokens ?? numPromptTokens ?? expectedTokens(turns.join(''));

/** An answer without a limit of its own takes what is left. */
const hasContextFor = (question: RouteQuestion, candidate: number): boolean =>
  promptTokensOf(question, candidate) + (question.maxTokens ?? 1) <=
  (question.models?.[candidate]?.maxContext ?? Infinity);

const contextSizeOf = (question: RouteQuestion, candidate: number): number =>
  2 ** Math.ceil(Math.log2(Math.max(SMALLEST_CONTEXT, promptTokensOf(question, candidate) + (question.maxTokens ?? EXPECTED_ANSWER_TOKENS)))); // prettier-ignore

const warmShareOf = ({ promptTokens, cachedTokens }: CandidateModel): number =>
  promptTokens === null || promptTokens === 0 ? 0 : Math.min(1, cachedTokens / promptTokens);

/** The client's settings, otherwise the learned ones, otherwise the default. */
function chooseSampling(question: RouteQuestion, tenantRouter: TenantRouter, candidate: string | null): SamplingChoice {
  const { isOpen, temperature, topP } = question.sampling ?? { ...DEFAULT_SAMPLING, isOpen: true };
  const learned = isOpen ? tenantRouter.sampling.find((one) => one.candidate === candidate) : undefined;
  if (learned === undefined) return { temperature, topP, source: isOpen ? 'default' : 'request', numSamples: 0 };
  return { temperature: learned.temperature, topP: learned.topP, source: 'learned', numSamples: learned.numSamples };
}

interface Considered {
  readonly tenantRouter: TenantRouter;
  readonly input: RouteInput | null;
  readonly decision: RouteDecision | null;
  readonly patterns: readonly HeardPattern[];
  readonly policyMs: number;
  readonly judged: JudgedRoute;
  readonly scores: readonly number[];
  /** Whether each candidate is available and has the features and the context. */
  readonly isAble: readonly boolean[];
  readonly state: Omit<RouteChoice['state'], 'candidate'>;
}

/** Chooses the candidate for a request with the tenant's learned router. */
export function createRouting({ config, memory, now, seed, report, clock = systemClock }: RoutingContext): Routing {
  const { candidates, safeDefault, minConfidence } = config;
  const ids = candidates.map(({ id }) => id);
  const rules: JudgeRules = { ids, safeDefault, minConfidence, patternNames: candidates.map(patternName) };
  const health = createCandidateHealth(ids, now);
  const routers = memory === null ? null : createTenantRouters(memory, config, report, clock);
  const exploration = createRouteExploration(config, seed);

  memory?.erasure.register({
    name: 'routers',
    async erase(subject) {
      // Also for a user: a router that learned from it is withdrawn, and the next may get its policy version.
      await routers!.forget(subject.tenant);
      if (isWholeTenant(subject)) exploration?.forget(subject.tenant);
    },
    count: async (subject) => (isWholeTenant(subject) && routers!.peek(subject.tenant) !== null ? 1 : 0),
  });

  async function findPatterns(tenant: string, question: RouteQuestion): Promise<readonly HeardPattern[]> {
    const { embedded, near = null } = question;
    if (embedded === null || routers === null) return [];
    try {
      if (near !== null) routers.bank.keepAtHand(tenant, embedded);
      const recalled = near === null ? null : hearPatterns(near, NUM_PATTERNS);
      if (recalled !== null) return recalled;
      return await routers.bank.search(tenant, { ...embedded, k: NUM_PATTERNS });
    } catch (error) {
      // The request continues without patterns.
      report(`the search for patterns failed: ${messageOf(error)}`);
      return [];
    }
  }

  /** The vector that the memory's search used, or else the encoder's, if it comes in time. */
  async function vectorOf(
    { embedded }: RouteQuestion,
    turns: readonly string[],
    space: string,
  ): Promise<Float32Array | undefined> {
    if (embedded?.space === space) return embedded.vector;
    if (memory?.spaces.texts !== space) return undefined;
    const embedding = memory.embed(turns.at(-1) ?? '').catch(() => null);
    return (await within(clock, config.encoderTimeoutMs, embedding))?.value?.vector;
  }

  async function consider(tenant: string, question: RouteQuestion): Promise<Considered> {
    const startMs = now();
    const tenantRouter = routers === null ? NO_ROUTER : await routers.get(tenant);
    const policyMs = now() - startMs;
    const state = {
      similarities: question.similarities.slice(0, MAX_SIMILARITIES).map((one) => clamp(one, -1, 1)),
      load: clamp(question.load, 0, 1),
      latencyMs: [...health.latencies()],
      warmShares: (question.models ?? []).map(warmShareOf),
    };
    const { similarities, ...system } = state;
    const turns = routedTurns(question.turns);
    const space = tenantRouter.router?.encoder.space ?? null;
    const vector = space === null ? undefined : await vectorOf(question, turns, space);
    const request = { turns, retrieval: { similarities }, system, vector };
    const isMissing = space !== null && vector === undefined;
    const input = tenantRouter.router === null || isMissing ? null : tenantRouter.router.encoder.encode(request);
    const decision = input === null ? null : tenantRouter.router!.policy.decide(input);
    // Patterns adjust a router's scores: without a router they are not needed.
    const patterns = decision !== null && tenantRouter.hasPatterns ? await findPatterns(tenant, question) : [];
    const { isAble, isEligible } = ableOf(question);
    const missing = isMissing ? `no sentence vector within ${config.encoderTimeoutMs} ms` : undefined;
    const judged = judgeRoute(decision, patterns, isEligible, rules, missing);
    const scores = isEligible.map((one, i) => (one ? (decision?.scores[i] ?? 0) : -Infinity));
    return { tenantRouter, input, decision, patterns, judged, scores, isAble, state, policyMs };
  }

  /** Candidates with the features, the context and availability; if none is able, the context is ignored first, then availability. */
  function ableOf(question: RouteQuestion): { isAble: readonly boolean[]; isEligible: readonly boolean[] } {
    const can = candidates.map((one) => !(one.kind === 'remote' && question.isLocalOnly));
    const up = can.map((one, i) => one && health.isUp(ids[i]!));
    const fit = up.map((one, i) => one && hasContextFor(question, i));
    const isEligible = [fit, up, can].find((some) => some.includes(true));
    if (isEligible !== undefined) return { isAble: fit, isEligible };
    throw new RuvLLMError('unsupported', 'the request requires a local model, but no candidate is local', {
      data: { option: 'model' },
    });
  }

  return {
    config,
    async decide(tenant, question) {
      const startMs = now();
      const { tenantRouter, judged, scores, state, policyMs } = await consider(tenant, question);
      const drawn = exploration?.draw(tenant, judged, scores) ?? { judged, propensity: 1 };
      const { candidate, probs, confidence, why, patternIds } = drawn.judged;
      return {
        candidate: candidates[candidate]!,
        probs,
        confidence,
        why,
        propensity: drawn.propensity,
        policyMs,
        routingMs: now() - startMs - policyMs,
        version: tenantRouter.version,
        patternIds,
        contextSize: contextSizeOf(question, candidate),
        sampling: chooseSampling(question, tenantRouter, ids[candidate]!),
        state: { ...state, candidate: ids[candidate]! },
      };
    },
    async explain(tenant, question) {
      const startMs = now();
      const { tenantRouter, input, decision, patterns, judged, isAble, state } = await consider(tenant, question);
      const plain = {
        policy: 'safe default',
        candidates: ids.map(() => ({ quality: null, score: null, trust: null })),
        features: [],
        neighbours: [],
      };
      const { router } = tenantRouter;
      const explanation = router === null || input === null ? plain : explainDecision(router, input, decision!);
      const numTokens = expectedTokens(question.turns.at(-1) ?? '');
      const latencies = expectedLatencies(config.priced, state);
      return {
        ...explanation,
        candidates: candidates.map(({ id, kind }, i) => {
          const { quality, score, trust } = explanation.candidates[i]!;
          const cost = config.priced[i]!.pricePerToken * numTokens;
          const { cachedTokens = 0 } = question.models?.[i] ?? {};
          return { id, kind, quality, score, trust, cost, latencyMs: latencies[i]!, cachedTokens, isAble: isAble[i]! };
        }),
        inputs: {
          promptTokens: promptTokensOf(question, judged.candidate),
          similarities: state.similarities,
          load: state.load,
          isLocalOnly: question.isLocalOnly,
          vector: input?.vector === undefined ? null : question.embedded?.space === tenantRouter.router!.encoder.space ? 'recall' : 'encoder', // prettier-ignore
        },
        safeDefault: ids[safeDefault]!,
        minConfidence,
        candidate: ids[judged.candidate]!,
        confidence: judged.confidence,
        reason: judged.why.kind,
        detail: judged.why.detail,
        version: tenantRouter.version,
        policyVersion: tenantRouter.policyVersion,
        contextSize: contextSizeOf(question, judged.candidate),
        sampling: chooseSampling(question, tenantRouter, ids[judged.candidate]!),
        probs: judged.probs,
        patternShare: judged.share,
        patterns: patterns.map(({ pattern, similarity }) => ({
          text: pattern.text.slice(0, 200),
          similarity,
          recommends: pattern.recommendedModel,
        })),
        routingMs: now() - startMs,
      };
    },
    fallBack(choice, question, reason) {
      const safe = candidates[safeDefault]!;
      if (choice.candidate.id === safe.id || (safe.kind === 'remote' && question.isLocalOnly)) return null;
      const detail = `"${choice.candidate.id}" failed before its first token: ${reason}`.slice(0, 500);
      const state = { ...choice.state, candidate: safe.id };
      const sampling = chooseSampling(question, NO_ROUTER, null);
      return { ...choice, candidate: safe, why: { kind: 'fallback', detail }, propensity: null, sampling, state };
    },
    foresee(tenant, turns) {
      routers?.foresee(tenant);
      routers?.peek(tenant)?.router?.encoder.foresee(routedTurns(turns));
    },
    nearQuery(tenant) {
      const tenantRouter = routers?.peek(tenant) ?? null;
      if (tenantRouter?.router == null || !tenantRouter.hasPatterns) return null;
      const { requests } = memory!.spaces;
      // Patterns in this thread are searched when the embedding is known.
      return requests !== null && routers!.bank.isAtHand(tenant, requests) ? null : nearPatterns(NUM_PATTERNS);
    },
    note: (candidateId, ttftMs) => health.note(candidateId, ttftMs),
    tenants: () => routers?.tenants() ?? [],
  };
}

/** The name in patterns, as in trajectories: the id of a remote engine, the model of an adapter. */
function patternName(one: RouteCandidate): string | null {
  if (one.kind === 'adapter') return null;
  return one.kind === 'remote' ? one.id : one.model;
}
