import type { Trajectory } from '../../memory/schemas/trajectory.ts';
import type { RatedRoute } from './train-router.ts';

/** More of a text costs time at every request and changes no feature by much. */
export const MAX_ROUTED_CHARS = 4096;
/** How long a conversation is counts up to here. */
export const MAX_ROUTED_TURNS = 5;

/** A conversation as routers read it: the last turns, each cut. */
export function routedTurns(turns: readonly string[]): readonly string[] {
  return turns.slice(-MAX_ROUTED_TURNS).map((turn) => turn.slice(0, MAX_ROUTED_CHARS));
}

/** What was said by people and tools, not by the model: that is what is to be answered. */
export function turnsOfMessages(messages: readonly { readonly role: string; readonly content: string }[]): string[] {
  return messages.filter(({ role }) => role !== 'system' && role !== 'developer').map(({ content }) => content);
}

/** A rated request as an example; null where nobody rated it, or none of the candidates answered. */
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
    // By what was asked and not by what was recalled for it, which is in the prompt, too.
    request: { turns: routedTurns([...turns.slice(0, -1), one.query]), ...state },
    candidate,
    quality: one.quality,
    propensity: route === undefined ? null : propensity,
    group: sessionId ?? requestId,
  };
}
