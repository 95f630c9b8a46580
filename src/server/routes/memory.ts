import { MEMORY_OPERATIONS, operationPath } from '../../runtime/lower-layers.ts';
import type { Route } from '../route.ts';
import { operationRoute } from './operation-route.ts';

/** Every operation of the memory as a route. */
export const memoryRoutes: readonly Route[] = MEMORY_OPERATIONS.map((operation) =>
  operationRoute(operation, {
    pathOf: operationPath,
    targetOf: ({ memory }) => memory,
    unavailable: 'this server runs without a memory; start it with --memory PLACE',
  }),
);
