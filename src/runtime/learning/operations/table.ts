import { RuvLLMError } from '../../../core/errors.ts';
import type { LearningOperation } from './define.ts';
import { dataOperation } from './data-operation.ts';
import { federationOperations } from './federation-operations.ts';
import { feedbackOperation, receiptOperation } from './give-feedback.ts';
import { lessonsOperation } from './lessons-operation.ts';
import { runOperations } from './run-operations.ts';
import { seriesOperation } from './series-operation.ts';
import { statusOperations } from './status-operations.ts';
import { versionOperations } from './version-operations.ts';

/** All operations on learning. */
export const LEARNING_OPERATIONS: readonly LearningOperation[] = [
  feedbackOperation,
  receiptOperation,
  ...statusOperations,
  lessonsOperation,
  dataOperation,
  seriesOperation,
  ...runOperations,
  ...versionOperations,
  ...federationOperations,
];

/** An operation by its internal name. */
export function learningOperation(name: string): LearningOperation {
  const found = LEARNING_OPERATIONS.find((operation) => operation.name === name);
  if (found === undefined) throw new RuvLLMError('internal', `operation ${name} not found`);
  return found;
}
