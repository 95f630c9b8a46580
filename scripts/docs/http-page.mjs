// docs/api/http.md as text, from what `GET /openapi.json` answers.

/** The routes by what they are about; the rest of a path decides nothing. */
const SECTIONS = [
  ['As OpenAI and Anthropic have it', /^\/v1\/(?!feedback|route)/],
  ['Feedback and routing', /^\/v1\//],
  ['Memory, audit log, sessions and policies', /^\/admin\/memory\//],
  ['Learning', /^\/admin\/learning\//],
  ['Keys, sessions of loaded models, adapters', /^\/admin\//],
  ['Text and the server itself', /^\//],
];

/** Bounds from here on are those of the numbers themselves. */
const MAX_TOLD = 2 ** 31 - 1;

/** A schema in a few words: its type, its values, its bounds. */
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
  if (maximum < MAX_TOLD)
    return minimum > -MAX_TOLD ? `${type}, ${minimum} to ${maximum}` : `${type}, at most ${maximum}`;
  if (minimum > -MAX_TOLD) return `${type}, at least ${minimum}`;
  return type;
}

function fieldTable({ properties = {}, required = [] }) {
  const rows = Object.entries(properties).map(([name, schema]) => {
    const preset = schema.default === undefined ? '' : `\`${JSON.stringify(schema.default)}\``;
    return `| \`${name}\` | ${typeOf(schema)} | ${required.includes(name) ? 'required' : preset} |`;
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
    'What `ruvllm serve` answers, as `GET /openapi.json` says it. The scope is what a key must allow ([security](../security.md)):',
    '`inference` for those that generate or change what the tenant has, `read` for any key, `operate` for `read-only` and `admin` keys,',
    '`admin` for those, `public` for everyone. A field that a body does not know is a 400. An admin key may name a tenant with `?tenant=` below',
    '`/admin/memory/` and `/admin/learning/`.',
    '',
  ];
  for (const [title, pattern] of SECTIONS) {
    const mine = routes.filter(({ path }) => SECTIONS.find(([, one]) => one.test(path))[1] === pattern);
    lines.push(`## ${title}`, '');
    for (const { path, method, operation } of mine) {
      lines.push(`### ${method} ${path}`, '', `${operation.summary} Scope: \`${operation['x-scope']}\`.`, '');
      const schema = operation.requestBody?.content['application/json'].schema;
      if (schema !== undefined) lines.push(...fieldTable(schema));
    }
  }
  return lines.join('\n');
}
