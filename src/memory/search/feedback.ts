import { cosine } from '../common/cosine.ts';
import type { MemoryGraph } from '../graph/graph.ts';
import type { MemoryStore } from '../types.ts';

/** Largest change of a score in either direction, whatever the number of ratings: ratings decide between sources that are about as near. */
export const MAX_FEEDBACK_BOOST = 0.1;
/** Answers to less similar questions say nothing about this one. */
const MIN_QUESTION_SIMILARITY = 0.5;
/** Ratings that one search reads, the newest ones. */
const MAX_RATINGS = 64;

export interface FeedbackQuery {
  readonly tenant: string;
  readonly vector: Float32Array;
  readonly space: string;
  readonly sourceIds: readonly string[];
}

/** How much ratings of answers to similar questions add to the score of the sources they used. */
export async function feedbackBoosts(
  store: MemoryStore,
  graph: MemoryGraph,
  { tenant, vector, space, sourceIds }: FeedbackQuery,
): Promise<ReadonlyMap<string, number>> {
  const boosts = new Map<string, number>();
  if (sourceIds.length === 0) return boosts;
  const ratings = await graph.ratings(tenant, sourceIds, MAX_RATINGS);
  if (ratings.length === 0) return boosts;
  const answerIds = [...new Set(ratings.map(({ answerId }) => answerId))];
  const answers = await store.get(tenant, answerIds);
  const similarities = new Map<string, number>();
  for (const record of answers) {
    // Links that a caller made have the same relation and other records at their start.
    if (record?.kind !== 'trajectory' || record.vector === null || record.space !== space) continue;
    similarities.set(record.id, cosine(vector, record.vector));
  }
  for (const { sourceId, answerId, effect } of ratings) {
    const similarity = similarities.get(answerId) ?? 0;
    if (similarity < MIN_QUESTION_SIMILARITY) continue;
    boosts.set(sourceId, (boosts.get(sourceId) ?? 0) + similarity * effect);
  }
  for (const [id, boost] of boosts) {
    boosts.set(id, Math.min(MAX_FEEDBACK_BOOST, Math.max(-MAX_FEEDBACK_BOOST, boost)));
  }
  return boosts;
}
