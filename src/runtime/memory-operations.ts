/** The operations of the memory with their schemas, for the server. */
export { inputSchemaOf, MEMORY_OPERATIONS, type Operation, operationOf } from '../memory/operations/index.ts';
