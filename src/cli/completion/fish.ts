import type { CompletedCommand, CompletedFlag } from './describe.ts';

/** Inside single quotes, fish has no other escapes. */
const quote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
const MODELS = quote('(ruvllm completion models 2>/dev/null)');

function flagLine(command: string, { name, description, values }: CompletedFlag): string {
  const valueOptions =
    values === null
      ? ''
      : values === 'model'
        ? ` -r -a ${MODELS}`
        : values === 'file'
          ? ' -r -F'
          : values === 'text'
            ? ' -x'
            : ` -x -a ${quote(values.words.join(' '))}`;
  return `complete -c ruvllm -n ${quote(`__fish_seen_subcommand_from ${command}`)} -l ${name.slice(2)}${valueOptions} -d ${quote(description)}`;
}

function linesOf({ name, description, flags, actions, takesModel }: CompletedCommand): string[] {
  const names = actions.map((action) => action.name).join(' ');
  const inCommand = `__fish_seen_subcommand_from ${name}`;
  return [
    `complete -c ruvllm -n __fish_use_subcommand -f -a ${name} -d ${quote(description)}`,
    ...(takesModel ? [`complete -c ruvllm -n ${quote(inCommand)} -a ${MODELS}`] : []),
    ...actions.map(
      (action) =>
        `complete -c ruvllm -n ${quote(`${inCommand}; and not __fish_seen_subcommand_from ${names}`)} -f -a ${action.name} -d ${quote(action.description)}`,
    ),
    ...flags.map((flag) => flagLine(name, flag)),
  ];
}

/** The completion script for fish. */
export function writeFish(commands: readonly CompletedCommand[]): string {
  const head = '# Completion of ruvllm for fish: ruvllm completion fish > ~/.config/fish/completions/ruvllm.fish';
  return `${[head, ...commands.flatMap(linesOf)].join('\n')}\n`;
}
