import { json, type Route } from '../route.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';

/** `/v1/models/:id{.+}` as OpenAPI writes it. */
const templateOf = (path: string): string => path.replaceAll(/:(\w+)(?:\{[^}]*\})?/g, '{$1}');
const parametersOf = ({ path, query = {} }: Pick<Route, 'path' | 'query'>): object[] => [
  ...Array.from(path.matchAll(/:(\w+)/g), ([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  })),
  ...Object.entries(query).map(([name, { schema }]) => ({ name, in: 'query', required: false, schema })),
];

/** The documentation of a table of routes. */
export function describeRoutes(routes: readonly Route[], version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const { method, path, scope, summary, body, query } of routes) {
    const operations = (paths[templateOf(path)] ??= {});
    operations[method.toLowerCase()] = {
      summary,
      'x-scope': scope,
      ...(scope === 'public' ? { security: [] } : {}),
      parameters: parametersOf({ path, ...(query === undefined ? {} : { query }) }),
      ...(body === null ? {} : { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
      responses: {
        '200': { description: 'what was asked for' },
        default: {
          description: 'what went wrong',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
        },
      },
    };
  }
  const text = { type: ['string', 'null'] };
  const error = { type: 'object', properties: { message: text, type: text, param: text, code: text } };
  return {
    openapi: '3.1.0',
    info: { title: 'RuvLLM', version },
    security: [{ key: [] }],
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer' } },
      schemas: { Error: { type: 'object', properties: { error }, required: ['error'] } },
    },
    paths,
  };
}

/** `GET /openapi.json`: every route of the table, this one included. */
export function openapiRoute(table: () => readonly Route[]): Route {
  return {
    method: 'GET',
    path: '/openapi.json',
    scope: 'read',
    summary: 'This documentation.',
    body: null,
    errors: openaiErrors,
    handle: ({ services }) => json(describeRoutes(table(), services.version)),
  };
}
