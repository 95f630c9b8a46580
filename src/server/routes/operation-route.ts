import { inputSchemaOf, type Operation } from '../../runtime/memory-operations.ts';
import { nameOption } from '../../runtime/name-option.ts';
import { refusal } from '../errors.ts';
import { type Exchange, json, type RouteCode, type RouteCodes } from '../route.ts';
import type { Services } from '../services.ts';

/** The tenant of the key, or the one that an admin key names. */
export function tenantOf({ request, caller }: Exchange): string {
  const named = new URL(request.url).searchParams.get('tenant');
  if (named === null || named === caller.tenant) return caller.tenant;
  if (!caller.scopes.includes('admin')) {
    throw refusal(403, 'insufficient_scope', 'only an admin key can name another tenant', {
      param: 'tenant',
      type: 'permission_error',
    });
  }
  return nameOption(named, 'tenant');
}

/** The common part of a group of operations. */
export interface OperationGroup<Target> {
  pathOf(operation: Operation<Target>): string;
  /** Null: this server does not have it. */
  targetOf(services: Services): Target | null;
  /** The error message then. */
  readonly unavailable: string;
  /** Converts errors for clients. */
  readonly explain?: (error: unknown) => unknown;
}

export const operationRoutes = <Target>(
  operations: readonly Operation<Target>[],
  group: OperationGroup<Target>,
): RouteCodes =>
  Object.fromEntries(
    operations.map((operation) => [`POST ${group.pathOf(operation)}`, operationRoute(operation, group)]),
  );

function operationRoute<Target>(operation: Operation<Target>, group: OperationGroup<Target>): RouteCode {
  return {
    summary: operation.summary,
    // Only the OpenAPI document needs it.
    get body() {
      return inputSchemaOf(operation);
    },
    async handle(exchange) {
      const tenant = tenantOf(exchange);
      const target = group.targetOf(exchange.services);
      if (target === null) throw refusal(501, 'not_implemented', group.unavailable);
      const input = await exchange.readBody();
      try {
        return json(await operation.run(target, tenant, input));
      } catch (error) {
        throw group.explain?.(error) ?? error;
      }
    },
  };
}
