import type { Trajectory } from '../../memory/schemas/trajectory.ts';
import type { RouteRequest } from '../router/index.ts';

/** A rated request and the candidate that answered it. */
export interface RatedRoute {
  readonly request: RouteRequest;
  readonly candidate: number;
  /** 0 to 1. */
  readonly quality: number;
  /** Probability with which the candidate was drawn; null: the request named it. */
  readonly propensity: number | null;
  /** Conversation; never on both sides of a split. */
  readonly group: string;
}

/** Longer texts cost time at every request and hardly change a feature. */
export const MAX_ROUTED_CHARS = 4096;
/** The length of a conversation is a feature up to this number of turns. */
export const MAX_ROUTED_TURNS = 5;

/** The last turns of a conversation, each truncated. */
export function routedTurns(turns: readonly string[]): readonly string[] {
  return turns.slice(-MAX_ROUTED_TURNS).map((turn) => turn.slice(0, MAX_ROUTED_CHARS));
}

/** All messages except system and developer messages. */
export function turnsOfMessages(messages: readonly { readonly role: string; readonly content: string }[]): string[] {
  return messages.filter(({ role }) => role !== 'system' && role !== 'developer').map(({ content }) => content);
}

/** A rated request as an example; null if it is unrated or no candidate answered it. */
export function toRatedRoute(one: Trajectory, candidateOf: (one: Trajectory) => number): RatedRoute | null {
  const candidate = candidateOf(one);
  if (one.quality === null || candidate < 0) return null;
  const { prompt, route, sessionId, requestId, parameters } = one;
  const turns = Array.isArray(prompt) ? turnsOfMessages(prompt) : [one.query];
  const propensity = parameters.propensity === null || parameters.propensity <= 0 ? null : parameters.propensity;
  const state =
    route === undefined
      ? {}
      : {
          retrieval: { similarities: route.similarities },
          system: { load: route.load, latencyMs: route.latencyMs, warmShares: route.warmShares ?? [] },
        };
  return {
    // The query, because the last message of the prompt also contains recalled memories.
    request: { turns: routedTurns([...turns.slice(0, -1), one.query]), ...state },
    candidate,
    quality: one.quality,
    propensity: route === undefined ? null : propensity,
    group: sessionId ?? requestId,
  };
}
