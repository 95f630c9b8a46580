export type { MemoryOperation, OperationScope } from './operation.ts';
export { MEMORY_OPERATIONS, operationOf, operationPath } from './table.ts';
