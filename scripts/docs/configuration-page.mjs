// docs/api/configuration.md as text, from the schema of ruvllm.config.json.

/** Larger bounds are those of the number type. */
const MAX_LISTED = 2 ** 31;

const typeOf = ({ enum: values, type, items, anyOf, pattern, minimum, maximum, additionalProperties }) => {
  if (values !== undefined) return values.map((value) => `\`${value}\``).join(' ');
  if (anyOf !== undefined) return 'size: a number of bytes, or a text such as `512MiB`';
  if (type === 'array') return `list of ${typeOf(items)}`;
  if (type === 'object' && typeof additionalProperties === 'object') return 'object of texts by name';
  if (type === 'object') return 'object';
  if (type === 'boolean') return '`true` or `false`';
  if (type === 'string') return pattern?.includes('(m|h|d|w)') ? 'duration, such as `30d`' : 'text';
  const isBounded = minimum !== undefined && Math.abs(minimum) < MAX_LISTED && Math.abs(maximum) < MAX_LISTED;
  return isBounded ? `${type}, ${minimum} to ${maximum}` : type;
};

/** The description without the variable that it ends with, and the variable. */
function splitVariable(description = '') {
  const match = /^(.*?) \((RUVLLM_[A-Z_]+)\)$/s.exec(description);
  return match === null ? [description, ''] : [match[1], `\`${match[2]}\``];
}

function tableOf(properties) {
  const rows = Object.entries(properties).flatMap(([name, schema]) => {
    const [description, variable] = splitVariable(schema.description);
    const row = `| \`${name}\` | ${typeOf(schema)} | ${description.replaceAll('|', '\\|')} | ${variable} |`;
    const inner = Object.entries(schema.properties ?? {}).map(([key, one]) => `| \`${name}.${key}\` | ${typeOf(one)} | ${one.description ?? ''} | |`); // prettier-ignore
    return [row, ...inner];
  });
  return ['| setting | type | meaning | variable |', '| - | - | - | - |', ...rows, ''];
}

const isSection = ({ type }) => type === 'object';

/** The page for the schema. */
export function buildConfigurationPage({ properties: { $schema: _, ...properties } }) {
  const all = Object.entries(properties);
  const plain = Object.fromEntries(all.filter(([, schema]) => !isSection(schema)));
  const sections = all
    .filter(([, schema]) => isSection(schema))
    .flatMap(([name, { description, properties: own, additionalProperties: each }]) => {
      const title = own === undefined ? `\`${name}.NAME\`` : `\`${name}\``;
      return [`## ${title}`, '', description.replace('docs/model-settings.md', '[the guide](../model-settings.md)'), '', ...tableOf(own ?? each.properties)]; // prettier-ignore
    });
  return [
    '# Configuration',
    '',
    '<!-- Made by npm run docs:api from the schema of the settings: edit the descriptions of the flags. -->',
    '',
    'The settings in `ruvllm.config.json`. A flag takes precedence over its environment variable, and that over the file; `kvSpill` is `--kv-spill`.',
    '`ruvllm config show` prints every value with its origin, `ruvllm config path` the places of the file, and `ruvllm config schema` the schema for editors.',
    '',
    '## Top level',
    '',
    ...tableOf(plain),
    ...sections,
  ].join('\n');
}
