/** Names, paths and scopes of the operations, without their code. */
export { LEARNING_SCOPES, learningPath } from './learning/operations/operation-names.ts';
export { MEMORY_SCOPES, operationPath, type OperationScope } from '../memory/operations/operation-names.ts';
