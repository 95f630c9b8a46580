import { clipText } from '../../memory/common/text-limits.ts';
import type { Trajectory } from '../../memory/schemas/trajectory.ts';
import { verdictOf } from '../trajectories/verdict.ts';
import { dot, normalized } from './k-means.ts';
import { confidenceOf, type Pattern, poolSamples } from './pattern.ts';
import { differ, recommendModel } from './recommend.ts';
import { type Sample, sampleOf } from './welch.ts';

/** One that somebody judged, with a vector. */
export type RatedTrajectory = Trajectory & { readonly embedding: Float32Array; readonly quality: number };

/** Of a query and of an answer: a pattern is a hint, not an archive. */
const MAX_PART = 500;

/** What these have in common; its words are those of the one nearest to the middle. */
export function patternOfMembers(
  id: string,
  members: readonly RatedTrajectory[],
  space: string,
  nowMs: number,
): Pattern {
  const middle = meanOf(members.map(({ embedding }) => embedding));
  const nearest = (one: RatedTrajectory): number => dot(middle, normalized(one.embedding));
  const typical = members.reduce((best, one) => (nearest(one) > nearest(best) ? one : best));
  const byModel: Record<string, number[]> = Object.create(null) as Record<string, number[]>;
  for (const { model, quality } of members) (byModel[model] ??= []).push(quality);
  const models = Object.fromEntries(Object.entries(byModel).map(([model, values]) => [model, sampleOf(values)]));
  const quality = sampleOf(members.map((one) => one.quality));
  return {
    id,
    text: describe(typical, members),
    embedding: middle,
    space,
    verdict: verdictOf(quality.mean),
    support: members.length,
    confidence: confidenceOf(quality),
    numUses: 0,
    lastUsedMs: nowMs,
    quality,
    models,
    recommendedModel: recommendModel(models),
  };
}

/** What is new goes into what is known, which keeps its id: a bank that is told the same again does not grow. */
export function mergePatterns(known: Pattern, fresh: Pattern): Pattern {
  const support = known.support + fresh.support;
  const embedding = known.embedding.map(
    (value, i) => (value * known.support + fresh.embedding[i]! * fresh.support) / support,
  );
  const models: Record<string, Sample> = { ...known.models };
  for (const [model, sample] of Object.entries(fresh.models)) models[model] = renewed(models[model], sample);
  const quality = renewed(known.quality, fresh.quality);
  // Another verdict needs enough that speaks for it: a few bad days are no change.
  const isOther = verdictOf(quality.mean) !== known.verdict && differ(known.quality, fresh.quality);
  return {
    ...known,
    text: fresh.quality.mean > known.quality.mean ? fresh.text : known.text,
    embedding: normalized(embedding),
    lastUsedMs: Math.max(known.lastUsedMs, fresh.lastUsedMs),
    support,
    quality,
    models,
    verdict: isOther ? verdictOf(quality.mean) : known.verdict,
    confidence: confidenceOf(quality),
    recommendedModel: recommendModel(models),
  };
}

/** Where the new surely differs from the old, things have changed, and only the new counts. */
function renewed(known: Sample | undefined, fresh: Sample): Sample {
  if (known === undefined) return fresh;
  return differ(known, fresh) ? fresh : poolSamples(known, fresh);
}

function meanOf(vectors: readonly Float32Array[]): Float32Array {
  const sum = new Float32Array(vectors[0]!.length);
  for (const vector of vectors) {
    const unit = normalized(vector);
    for (let i = 0; i < sum.length; i++) sum[i]! += unit[i]!;
  }
  return normalized(sum);
}

/** The best answer to the typical question; a correction is better than what it corrects. */
function describe(typical: RatedTrajectory, members: readonly RatedTrajectory[]): string {
  const best = members.reduce((a, b) => (worth(b) > worth(a) ? b : a));
  const answer = best.correction ?? (worth(best) >= 0.5 ? best.answer : null);
  const asked = `Asked: ${clipText(typical.query, MAX_PART).text}`;
  return answer === null
    ? `${asked}\nNo answer was good.`
    : `${asked}\nA good answer: ${clipText(answer, MAX_PART).text}`;
}

const worth = (one: RatedTrajectory): number => (one.correction === null ? one.quality : 1);
