import { type Action, actionCommand } from '../actions.ts';
import { writeBash } from '../completion/bash.ts';
import { type CompletedCommand, describeCommands } from '../completion/describe.ts';
import { writeFish } from '../completion/fish.ts';
import { writeZsh } from '../completion/zsh.ts';
import { openHub } from '../open-hub.ts';

/** Shells insert names unquoted, so names must not contain special characters. */
const PLAIN = /^[\w./:@+-]+$/;

const scriptAction = (shell: string, write: (commands: readonly CompletedCommand[]) => string): Action => ({
  args: '',
  description: `print the script for ${shell}`,
  async run({ output, commands }) {
    const script = write(await describeCommands(commands));
    output.document({ shell, script });
    output.text(script);
  },
});

export const { flags, help, run } = actionCommand('completion', {
  bash: scriptAction('bash', writeBash),
  zsh: scriptAction('zsh', writeZsh),
  fish: scriptAction('fish', writeFish),
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
