import { clipText } from '../../memory/common/text-limits.ts';
import type { Trajectory } from '../../memory/schemas/trajectory.ts';
import { verdictOf } from '../trajectories/verdict.ts';
import { dot, normalized } from './k-means.ts';
import { confidenceOf, type Pattern, poolSamples } from './pattern.ts';
import { differ, recommendModel } from './recommend.ts';
import { type Sample, sampleOf } from './welch.ts';

export type RatedTrajectory = Trajectory & { readonly embedding: Float32Array; readonly quality: number };

/** Longest query and answer in a pattern. */
const MAX_PART = 500;

/** Makes a pattern with the question nearest to the center. */
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

/** Merges new trajectories into a pattern, which keeps its id: repeated input does not grow the bank. */
export function mergePatterns(known: Pattern, fresh: Pattern): Pattern {
  const support = known.support + fresh.support;
  const embedding = known.embedding.map(
    (value, i) => (value * known.support + fresh.embedding[i]! * fresh.support) / support,
  );
  const models: Record<string, Sample> = { ...known.models };
  for (const [model, sample] of Object.entries(fresh.models)) models[model] = renewed(models[model], sample);
  const quality = renewed(known.quality, fresh.quality);
  // A changed verdict requires significance: a few bad answers are noise.
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

/** If the new sample differs significantly from the old one, only the new one counts. */
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

/** The best answer to the typical question; a correction beats the answer it corrects. */
function describe(typical: RatedTrajectory, members: readonly RatedTrajectory[]): string {
  const best = members.reduce((a, b) => (worth(b) > worth(a) ? b : a));
  const answer = best.correction ?? (worth(best) >= 0.5 ? best.answer : null);
  const asked = `Asked: ${clipText(typical.query, MAX_PART).text}`;
  return answer === null
    ? `${asked}\nNo answer was good.`
    : `${asked}\nA good answer: ${clipText(answer, MAX_PART).text}`;
}

const worth = (one: RatedTrajectory): number => (one.correction === null ? one.quality : 1);
