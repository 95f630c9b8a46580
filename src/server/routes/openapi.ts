import { json, type Route } from '../route.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';

/** `/v1/models/:id{.+}` in OpenAPI's notation. */
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

const IGNORED_HEADER = {
  'x-ignored-fields': {
    description: 'Names of unknown fields that were ignored; absent if there were none. With --strict they are a 400.',
    schema: { type: 'string' },
  },
};

/** The OpenAPI document of these routes. */
export function describeRoutes(routes: readonly Route[], version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const { method, path, scope, summary, body: schema, query, ignoresUnknownFields = false } = route;
    const { bodyType = 'application/json' } = route;
    const body = schema === null || !ignoresUnknownFields ? schema : { ...schema, additionalProperties: true };
    const operations = (paths[templateOf(path)] ??= {});
    operations[method.toLowerCase()] = {
      summary,
      'x-scope': scope,
      ...(scope === 'public' ? { security: [] } : {}),
      parameters: parametersOf({ path, ...(query === undefined ? {} : { query }) }),
      ...(body === null ? {} : { requestBody: { required: true, content: { [bodyType]: { schema: body } } } }),
      responses: {
        '200': { description: 'Success.', ...(ignoresUnknownFields ? { headers: IGNORED_HEADER } : {}) },
        default: {
          description: 'An error.',
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

/** `GET /openapi.json`: all routes, including this one. */
export function openapiRoute(table: () => readonly Route[]): Route {
  return {
    method: 'GET',
    path: '/openapi.json',
    scope: 'read',
    summary: 'This OpenAPI document.',
    body: null,
    errors: openaiErrors,
    handle: ({ services }) => json(describeRoutes(table(), services.version)),
  };
}
