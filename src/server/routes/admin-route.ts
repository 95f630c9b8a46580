import type { Route } from '../route.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';

export function adminRoute(
  method: Route['method'],
  path: string,
  summary: string,
  handle: Route['handle'],
  body: Route['body'] = null,
): Route {
  return { method, path, scope: 'admin', summary, body, errors: openaiErrors, handle };
}
