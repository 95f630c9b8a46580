import { configSchema } from '../config/schema.ts';
import { describeSettings, type EffectiveSetting } from '../config/show.ts';
import { actionCommand } from '../actions.ts';
import { toSafeJson } from '../safe-text.ts';

const NOTES =
  'Flags take precedence over environment variables, then the settings file, then defaults. Only one file is used: ' +
  'that of --config, else of RUVLLM_CONFIG, else ruvllm.config.json in the current folder, else config.json in the ' +
  "user's configuration folder. Parent folders are not searched.";

function rowOf({ path, value, origin, problem }: EffectiveSetting): string[] {
  const text = value === null ? '–' : typeof value === 'string' ? value : JSON.stringify(value);
  return [path, text, problem === null ? origin : `${origin}, invalid`];
}

/** Shows settings; users change them in an editor. */
export const { flags, help, run } = actionCommand(
  'config',
  {
    show: {
      args: '',
      description: 'show every setting with its value and origin; secrets are masked',
      run({ io, output, config }) {
        if (config.error !== null) throw config.error;
        const settings = describeSettings(io, config);
        const file = config.file === null ? null : { path: config.file.path, reason: config.file.reason };
        const models = config.presets.models.map((preset) => ({ ...preset, origin: file!.path }));
        const groups = [...config.presets.groups].map(([name, maxLoaded]) => ({ name, maxLoaded, origin: file!.path }));
        output.document({ file, settings, models, groups });
        output.note(file === null ? 'no settings file' : `settings file ${file.path} (${file.reason})`);
        const presetRows = [
          ...models.map(({ name, model, origin }) => [`models.${name}`, model, origin]),
          ...groups.map(({ name, maxLoaded, origin }) => [`modelGroups.${name}`, `maxLoaded ${maxLoaded}`, origin]),
        ];
        output.table(['SETTING', 'VALUE', 'FROM'], [...settings.map(rowOf), ...presetRows]);
        for (const { path, problem } of settings) if (problem !== null) output.note(`${path}: ${problem}`);
      },
    },
    path: {
      args: '',
      description: 'show where settings files are searched and which one is used',
      run({ output, config: { places, file, error } }) {
        output.document({ places, found: file, error: error?.message ?? null });
        const rows = places.map((place) => [place.path, place.reason, place.path === file?.path ? 'used' : '–']);
        output.table(['FILE', 'NAMED BY', 'STATE'], rows);
        if (error !== null) output.note(`the file is invalid: ${error.message}`);
      },
    },
    schema: {
      args: '',
      description: 'print the JSON Schema of the settings file, for editors',
      run({ output }) {
        const schema = configSchema();
        output.document(schema);
        output.text(`${toSafeJson(schema, 2)}\n`);
      },
    },
  },
  { notes: NOTES },
);
