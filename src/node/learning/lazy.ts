import type { Learning } from '../../runtime/learning/learning.ts';
import type { OpenLearningOptions } from './open-learning.ts';

/** Opens learning from feedback. Loaded with the first call, because most programs do not learn. */
export async function openLearning(options: OpenLearningOptions): Promise<Learning> {
  const { openNodeLearning } = await import('./open-learning.ts');
  return openNodeLearning(options);
}
