import type { Flag } from '../flags.ts';
import { mcpServersSchema } from '../../mcp/server-config.ts';
import { presetSchemas } from './model-presets.ts';
import { SECTIONS, SETTINGS } from './settings.ts';
import type { JsonSchema } from '../../core/kinds.ts';

/** Describes a flag with its variable; `false` is what a `--no-` flag sets. */
function describe({ name, description }: Flag, variable: string): string {
  const prefix = name.startsWith('--no-') ? 'false: ' : '';
  return `${prefix}${description.replace(/ \(RUVLLM_\w+(?:=\w+)?\)$/, '')} (${variable})`;
}

/** JSON Schema of `ruvllm.config.json`; draft 7, because editors support it best. */
export function configSchema(): JsonSchema {
  const propertiesOf = (section: string | null): Record<string, JsonSchema> =>
    Object.fromEntries(
      SETTINGS.filter((setting) => setting.section === section).map(({ key, kind, flag, variable }) => [
        key,
        { description: describe(flag, variable), ...kind.schema },
      ]),
    );
  const objectOf = (description: string, properties: Record<string, unknown>): JsonSchema => ({
    description,
    type: 'object',
    additionalProperties: false,
    properties,
  });
  const sections = SECTIONS.flatMap(({ name, description }) =>
    name === null ? [] : [[name, objectOf(description, propertiesOf(name))] as const],
  );
  const top = SECTIONS.find(({ name }) => name === null)!;
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'ruvllm.config.json',
    ...objectOf(top.description, {
      $schema: { type: 'string' },
      ...propertiesOf(null),
      ...Object.fromEntries(sections),
      ...presetSchemas(),
      mcpServers: mcpServersSchema(),
    }),
  };
}
