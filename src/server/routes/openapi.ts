import { json, type Route, type RouteCode, type RouteCodes } from '../route.ts';

/** `/v1/models/:id{.+}` in OpenAPI's notation. */
const templateOf = (path: string): string => path.replaceAll(/:(\w+)(?:\{[^}]*\})?/g, '{$1}');
const parametersOf = ({ path, query = {} }: Pick<Route, 'path'> & Pick<RouteCode, 'query'>): object[] => [
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
export async function describeRoutes(routes: readonly Route[], version: string): Promise<object> {
  const paths: Record<string, Record<string, object>> = {};
  for (const { method, path, scope, load } of routes) {
    const { summary, body: schema, query, ignoresUnknownFields = false, bodyType = 'application/json' } = await load();
    const body = schema === undefined || !ignoresUnknownFields ? schema : { ...schema, additionalProperties: true };
    const operations = (paths[templateOf(path)] ??= {});
    operations[method.toLowerCase()] = {
      summary,
      'x-scope': scope,
      ...(scope === 'public' ? { security: [] } : {}),
      parameters: parametersOf({ path, ...(query === undefined ? {} : { query }) }),
      ...(body === undefined ? {} : { requestBody: { required: true, content: { [bodyType]: { schema: body } } } }),
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
export const describing = (table: () => readonly Route[]) =>
  ({
    'GET /openapi.json': {
      summary: 'This OpenAPI document.',
      handle: async ({ services }) => json(await describeRoutes(table(), services.version)),
    },
  }) satisfies RouteCodes;
