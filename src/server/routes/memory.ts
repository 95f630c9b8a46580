import { z } from 'zod';
import { MEMORY_OPERATIONS, type MemoryOperation, operationPath, type OperationScope } from '../../memory/operations/index.ts'; // prettier-ignore
import { nameOption } from '../../runtime/name-option.ts';
import { refusal } from '../errors.ts';
import { type Exchange, json, type Route, type RouteScope } from '../route.ts';
import type { JsonSchema } from '../wire/fields.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';

/** A key that generates may change what its tenant knows; one that looks may look at it. */
const ROUTE_SCOPES: Readonly<Record<OperationScope, RouteScope>> = {
  read: 'read',
  write: 'inference',
  admin: 'admin',
};

/** Whose memory it is: the key's, or the tenant an administrator names. */
function tenantOf({ request, caller }: Exchange): string {
  const named = new URL(request.url).searchParams.get('tenant');
  if (named === null || named === caller.tenant) return caller.tenant;
  if (!caller.scopes.includes('admin')) {
    throw refusal(403, 'insufficient_scope', 'only an admin key may name another tenant', {
      param: 'tenant',
      type: 'permission_error',
    });
  }
  return nameOption(named, 'tenant');
}

/** What the input is checked by, as the documentation shows it. */
function schemaOf({ input }: MemoryOperation): JsonSchema {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' });
  return schema;
}

function toRoute(operation: MemoryOperation): Route {
  return {
    method: 'POST',
    path: operationPath(operation),
    scope: ROUTE_SCOPES[operation.scope],
    summary: operation.summary,
    body: schemaOf(operation),
    errors: openaiErrors,
    async handle(exchange) {
      const { services } = exchange;
      const tenant = tenantOf(exchange);
      if (services.memory === null) {
        throw refusal(
          501,
          'not_implemented',
          'this server runs without a memory; ruvllm serve --memory PLACE opens one',
        );
      }
      const input = await exchange.readBody();
      return json(await operation.run(services.memory, tenant, input));
    },
  };
}

/** Every operation of the memory as a route. */
export const memoryRoutes: readonly Route[] = MEMORY_OPERATIONS.map(toRoute);
