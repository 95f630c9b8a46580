import type { RouteScope } from '../guard.ts';
import type { ErrorFormat, Method, Route, RouteCodes, RouteName } from '../route.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';

interface RouteHead {
  readonly scope: RouteScope;
  readonly isAnswer?: boolean;
}

/** The routes of one module, each with the scope that it requires. */
export function routesOf<Codes extends RouteCodes>(
  load: () => Promise<{ readonly routes: Codes }>,
  heads: { readonly [Name in keyof Codes]: RouteScope | RouteHead },
  errors: ErrorFormat = openaiErrors,
): readonly Route[] {
  return Object.entries<RouteScope | RouteHead>(heads).map(([name, head]) => {
    const [method, path] = name.split(' ') as [Method, string];
    return {
      method,
      path,
      ...(typeof head === 'string' ? { scope: head } : head),
      errors,
      load: async () => (await load()).routes[name as RouteName]!,
    };
  });
}
