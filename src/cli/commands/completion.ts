import type { CommandEntry, CommandRunner, HelpParts } from '../command.ts';
import { writeBash } from '../completion/bash.ts';
import { type CompletedCommand, describeCommands } from '../completion/describe.ts';
import { writeFish } from '../completion/fish.ts';
import { writeZsh } from '../completion/zsh.ts';
import { unknownAction } from '../memory/action.ts';
import { openHub } from '../open-hub.ts';

const SHELLS: Readonly<Record<string, (commands: readonly CompletedCommand[]) => string>> = {
  bash: writeBash,
  zsh: writeZsh,
  fish: writeFish,
};

export const COMPLETION_HELP: HelpParts = {
  actions: [
    { name: 'bash', args: '', description: 'print the script for bash' },
    { name: 'zsh', args: '', description: 'print the script for zsh' },
    { name: 'fish', args: '', description: 'print the script for fish' },
    { name: 'models', args: '', description: 'print the names of cached models, for the scripts' },
  ],
};

/** Shells insert names unquoted, so names must not contain special characters. */
const PLAIN = /^[\w./:@+-]+$/;

/** Prints a completion script or the names of cached models. */
export const createCompletion =
  (commands: readonly CommandEntry[]): CommandRunner =>
  async ({ output, args }) => {
    const shell = args[0]!;
    if (shell === 'models') {
      const models = (await openHub().listModels())
        .map(({ reference }) => reference)
        .filter((name) => PLAIN.test(name));
      output.document({ models });
      if (models.length > 0) output.lines(models.join('\n'));
      return;
    }
    if (!Object.hasOwn(SHELLS, shell)) throw unknownAction('completion', shell, { ...SHELLS, models: null });
    const script = SHELLS[shell]!(await describeCommands(commands));
    output.document({ shell, script });
    output.text(script);
  };
