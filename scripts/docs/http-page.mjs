// docs/api/http.md as text, from the response of `GET /openapi.json`.

/** Sections by the beginning of the path. */
const SECTIONS = [
  ['As OpenAI and Anthropic have it', /^\/v1\/(?!feedback|route)/],
  ['Feedback and routing', /^\/v1\//],
  ['Memory, audit log, sessions and policies', /^\/admin\/memory\//],
  ['Learning', /^\/admin\/learning\//],
  ['Keys, sessions of loaded models, adapters', /^\/admin\//],
  ['Text and the server itself', /^\//],
];

/** Larger bounds are those of the number type. */
const MAX_LISTED = 2 ** 31 - 1;

/** A schema in a few words: its type, values and bounds. */
function typeOf(schema) {
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(' ');
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  const either = schema.oneOf ?? schema.anyOf;
  if (either !== undefined) return [...new Set(either.map(typeOf))].join(' or ');
  if (schema.type === 'array') {
    const items = schema.items === undefined ? '' : typeOf(schema.items);
    return items === '' || items === 'anything' ? 'list' : `list of ${items}`;
  }
  const type = schema.type === undefined ? 'anything' : [schema.type].flat().join(' or ');
  const { minimum = -Infinity, maximum = Infinity } = schema;
  if (maximum < MAX_LISTED)
    return minimum > -MAX_LISTED ? `${type}, ${minimum} to ${maximum}` : `${type}, at most ${maximum}`;
  if (minimum > -MAX_LISTED) return `${type}, at least ${minimum}`;
  return type;
}

function fieldTable({ properties = {}, required = [] }) {
  const rows = Object.entries(properties).map(([name, schema]) => {
    const preset = schema.default === undefined ? '' : `\`${JSON.stringify(schema.default)}\``;
    const type = schema.description ?? typeOf(schema);
    return `| \`${name}\` | ${type} | ${required.includes(name) ? 'required' : preset} |`;
  });
  return rows.length === 0 ? ['No fields: `{}`.', ''] : ['| field | type | default |', '| - | - | - |', ...rows, ''];
}

/** The page for an OpenAPI document. */
export function buildHttpPage({ paths }) {
  const routes = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const lines = [
    '# HTTP',
    '',
    '<!-- Made by npm run docs:api from the table of routes: edit the summaries there. -->',
    '',
    'The routes of `ruvllm serve`, as in `GET /openapi.json`. Each requires a scope ([security](../security.md)): `inference` for routes that',
    'generate text or change data of the tenant, `read` for any key, `operate` for `read-only` and `admin` keys, `admin` for `admin` keys,',
    '`public` for everyone. Routes of inference ignore unknown fields in a body and name them in the header `x-ignored-fields`; with `--strict`, and on all',
    'other routes, they are a 400. Some fields of the original APIs are accepted for compatibility and have no effect, as noted in their rows. Below `/admin/memory/` and `/admin/learning/` an admin key may name a tenant with `?tenant=`.',
    '',
  ];
  for (const [title, pattern] of SECTIONS) {
    const mine = routes.filter(({ path }) => SECTIONS.find(([, one]) => one.test(path))[1] === pattern);
    lines.push(`## ${title}`, '');
    for (const { path, method, operation } of mine) {
      lines.push(`### ${method} ${path}`, '', `${operation.summary} Scope: \`${operation['x-scope']}\`.`, '');
      for (const [type, { schema }] of Object.entries(operation.requestBody?.content ?? {})) {
        if (type !== 'application/json') lines.push(`The body is \`${type}\`.`, '');
        lines.push(...fieldTable(schema));
      }
    }
  }
  return lines.join('\n');
}
