import { MEMORY_OPERATIONS } from '../../runtime/memory-operations.ts';
import { operationPath } from '../../runtime/operation-names.ts';
import { operationRoutes } from './operation-route.ts';

/** Every operation of the memory as a route. */
export const routes = operationRoutes(MEMORY_OPERATIONS, {
  pathOf: operationPath,
  targetOf: ({ memory }) => memory,
  unavailable: 'this server runs without a memory; start it with --memory PLACE',
});
