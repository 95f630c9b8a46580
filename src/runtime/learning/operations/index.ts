export { createLearningControl, type LearningControl, type LearningHost } from './control.ts';
export type { LearningOperation } from './define.ts';
export { type FeedbackReport, giveFeedback, readReceipt, type ReportedOutcome } from './give-feedback.ts';
export type { PartReport } from './run-parts.ts';
export type { LearningRun } from './runs.ts';
export { learningPath } from './operation-names.ts';
export { LEARNING_OPERATIONS, learningOperation } from './table.ts';
