import type { Route } from '../server/route.ts';

export interface RouteMatch {
  readonly route: Route | null;
  /** Methods of the path; empty: no route has it. */
  readonly allow: readonly string[];
}

/** Finds the route of a path. Paths without parameters come first, as in the server. */
export function createRouteMatcher(routes: readonly Route[]): (method: string, path: string) => RouteMatch {
  const fixed = new Map<string, Route[]>();
  const patterns: { readonly pattern: RegExp; readonly routes: Route[]; readonly path: string }[] = [];
  for (const route of routes) {
    if (!route.path.includes(':')) {
      fixed.set(route.path, [...(fixed.get(route.path) ?? []), route]);
      continue;
    }
    const same = patterns.find(({ path }) => path === route.path);
    if (same === undefined) patterns.push({ pattern: patternOf(route.path), routes: [route], path: route.path });
    else same.routes.push(route);
  }
  return (method, path) => {
    const found = fixed.get(path) ?? patterns.find(({ pattern }) => pattern.test(path))?.routes ?? [];
    const asked = method === 'HEAD' ? 'GET' : method;
    return { route: found.find((one) => one.method === asked) ?? null, allow: found.map((one) => one.method) };
  };
}

/** Hono's notation: `:id` is one part of the path, `:id{.+}` the rest of it. */
function patternOf(path: string): RegExp {
  const source = path
    .split(/(:\w+(?:\{[^}]*\})?\??)/)
    .map((part) => {
      if (!part.startsWith(':')) return part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
      return `(?:${/^:\w+\{([^}]*)\}/.exec(part)?.[1] ?? '[^/]+'})`;
    })
    .join('');
  return new RegExp(`^${source}$`);
}
