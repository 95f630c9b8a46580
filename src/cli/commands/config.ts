import { configSchema } from '../config/schema.ts';
import { describeSettings, type ShownSetting } from '../config/show.ts';
import type { CommandContext, CommandRunner, HelpParts } from '../command.ts';
import { toSafeJson } from '../safe-text.ts';
import { unknownAction } from '../memory/action.ts';

const NOTES =
  'A flag comes first, then its environment variable, then the file, then the default. One file holds: that of --config, ' +
  'else of RUVLLM_CONFIG, else ruvllm.config.json in the current folder, else config.json in the configuration folder of ' +
  'this user. Folders above the current one are not searched.';

interface ConfigAction {
  readonly description: string;
  run(context: CommandContext): void;
}

const ACTIONS: Readonly<Record<string, ConfigAction>> = {
  show: {
    description: 'every setting, its value and where that comes from; secrets are masked',
    run({ io, output, config }) {
      if (config.error !== null) throw config.error;
      const settings = describeSettings(io, config);
      const file = config.found === null ? null : { path: config.found.path, reason: config.found.reason };
      output.document({ file, settings });
      output.note(file === null ? 'no file of settings' : `settings of ${file.path} (${file.reason})`);
      output.table(['SETTING', 'VALUE', 'FROM'], settings.map(rowOf));
      for (const { path, problem } of settings) if (problem !== null) output.note(`${path}: ${problem}`);
    },
  },
  path: {
    description: 'where settings are looked for, and which file holds',
    run({ output, config: { places, found, error } }) {
      output.document({ places, found, error: error?.message ?? null });
      const rows = places.map((place) => [place.path, place.reason, place.path === found?.path ? 'holds' : '–']);
      output.table(['FILE', 'NAMED BY', 'STATE'], rows);
      if (error !== null) output.note(`it is not used: ${error.message}`);
    },
  },
  schema: {
    description: 'the JSON schema of the file, for editors',
    run({ output }) {
      const schema = configSchema();
      output.document(schema);
      output.text(`${toSafeJson(schema, 2)}\n`);
    },
  },
};

function rowOf({ path, value, origin, problem }: ShownSetting): string[] {
  const shown = value === null ? '–' : typeof value === 'string' ? value : JSON.stringify(value);
  return [path, shown, problem === null ? origin : `${origin}, not valid`];
}

export const CONFIG_HELP: HelpParts = {
  actions: Object.entries(ACTIONS).map(([name, { description }]) => ({ name, args: '', description })),
  notes: NOTES,
};

/** Shows settings; changing them is what an editor is for. */
export const config: CommandRunner = async (context) => {
  const action = context.args[0]!;
  if (!Object.hasOwn(ACTIONS, action)) throw unknownAction('config', action, ACTIONS);
  ACTIONS[action]!.run(context);
};
