import type { Learning } from '../runtime/learning/learning.ts';
import type { OpenLearningOptions } from '../runtime/learning/open-learning.ts';

/** Opens learning from feedback, with the memory of this page. Loaded with the first call, because most pages do not learn. */
export async function openLearning(options: OpenLearningOptions): Promise<Learning> {
  const { openBrowserLearning } = await import('./open-learning.ts');
  return openBrowserLearning(options);
}
