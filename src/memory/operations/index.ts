export {
  inputSchemaOf,
  notFound,
  operationsOn,
  refuseInput,
  type MemoryOperation,
  type Operation,
} from './operation.ts';
export { operationPath, type OperationScope } from './operation-names.ts';
export { MEMORY_OPERATIONS, operationOf } from './table.ts';
