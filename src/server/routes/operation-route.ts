import { z } from 'zod';
import type { Operation, OperationScope } from '../../runtime/lower-layers.ts';
import { nameOption } from '../../runtime/name-option.ts';
import { refusal } from '../errors.ts';
import { type Exchange, json, type Route } from '../route.ts';
import { type RouteScope } from '../guard.ts';
import type { Services } from '../services.ts';
import type { JsonSchema } from '../wire/fields.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';

/** A key that generates may change what its tenant knows; one that looks may look at it. */
const ROUTE_SCOPES: Readonly<Record<OperationScope, RouteScope>> = {
  read: 'read',
  write: 'inference',
  admin: 'admin',
};

/** Whose it is: the key's, or the tenant an administrator names. */
export function tenantOf({ request, caller }: Exchange): string {
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
function schemaOf(input: z.ZodType): JsonSchema {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' });
  return schema;
}

export interface OperationPlace<Target> {
  pathOf(operation: Operation<Target>): string;
  /** Null: this server has none. */
  targetOf(services: Services): Target | null;
  /** Said where there is none, with what opens one. */
  readonly absence: string;
  /** What an error is to a client, where that differs. */
  readonly explain?: (error: unknown) => unknown;
}

/** An operation as a route. */
export function operationRoute<Target>(operation: Operation<Target>, place: OperationPlace<Target>): Route {
  return {
    method: 'POST',
    path: place.pathOf(operation),
    scope: ROUTE_SCOPES[operation.scope],
    summary: operation.summary,
    body: schemaOf(operation.input),
    errors: openaiErrors,
    async handle(exchange) {
      const tenant = tenantOf(exchange);
      const target = place.targetOf(exchange.services);
      if (target === null) throw refusal(501, 'not_implemented', place.absence);
      const input = await exchange.readBody();
      try {
        return json(await operation.run(target, tenant, input));
      } catch (error) {
        throw place.explain?.(error) ?? error;
      }
    },
  };
}
