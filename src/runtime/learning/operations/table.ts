import { RuvLLMError } from '../../../core/errors.ts';
import type { LearningOperation } from './define.ts';
import { feedbackOperation } from './give-feedback.ts';
import { runOperations } from './run-operations.ts';
import { seriesOperation } from './series-operation.ts';
import { statusOperations } from './status-operations.ts';
import { versionOperations } from './version-operations.ts';

/** Everything an operator can do with what is learned. */
export const LEARNING_OPERATIONS: readonly LearningOperation[] = [
  feedbackOperation,
  ...statusOperations,
  seriesOperation,
  ...runOperations,
  ...versionOperations,
];

/** The operation of a name that the code itself says. */
export function learningOperation(name: string): LearningOperation {
  const found = LEARNING_OPERATIONS.find((operation) => operation.name === name);
  if (found === undefined) throw new RuvLLMError('internal', `there is no operation ${name}`);
  return found;
}

/** Where an operation is over HTTP. */
export function learningPath({ name }: Pick<LearningOperation, 'name'>): string {
  return `/admin/learning/${name.replace(/^learn\./, '')}`;
}
