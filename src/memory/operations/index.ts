export {
  inputSchemaOf,
  notFound,
  operationsOn,
  refuseInput,
  type MemoryOperation,
  type Operation,
  type OperationScope,
} from './operation.ts';
export { MEMORY_OPERATIONS, operationOf, operationPath } from './table.ts';
