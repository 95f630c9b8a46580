import type { Learning } from '../../runtime/learning/learning.ts';
import type { OpenLearningOptions } from './open-learning.ts';

/** Opens what learns from feedback; loaded with the first call, for most programs do not. */
export async function openLearning(options: OpenLearningOptions): Promise<Learning> {
  const { openNodeLearning } = await import('./open-learning.ts');
  return openNodeLearning(options);
}
