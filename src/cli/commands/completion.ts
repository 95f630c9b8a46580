import { type Action, actionCommand } from '../actions.ts';
import type { CommandEntry, CommandModule } from '../command.ts';
import { writeBash } from '../completion/bash.ts';
import { type CompletedCommand, describeCommands } from '../completion/describe.ts';
import { writeFish } from '../completion/fish.ts';
import { writeZsh } from '../completion/zsh.ts';
import { openHub } from '../open-hub.ts';

/** Shells insert names unquoted, so names must not contain special characters. */
const PLAIN = /^[\w./:@+-]+$/;

type WriteScript = (commands: readonly CompletedCommand[]) => string;

const scriptAction = (commands: readonly CommandEntry[], shell: string, write: WriteScript): Action => ({
  args: '',
  description: `print the script for ${shell}`,
  async run({ output }) {
    const script = write(await describeCommands(commands));
    output.document({ shell, script });
    output.text(script);
  },
});

export const createCompletion = (commands: readonly CommandEntry[]): CommandModule =>
  actionCommand('completion', {
    bash: scriptAction(commands, 'bash', writeBash),
    zsh: scriptAction(commands, 'zsh', writeZsh),
    fish: scriptAction(commands, 'fish', writeFish),
    models: {
      args: '',
      description: 'print the names of cached models, for the scripts',
      async run({ output }) {
        const references = (await openHub().listModels()).map(({ reference }) => reference);
        const models = references.filter((name) => PLAIN.test(name));
        output.document({ models });
        if (models.length > 0) output.lines(models.join('\n'));
      },
    },
  });
