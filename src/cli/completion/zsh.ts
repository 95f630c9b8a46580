import type { CompletedCommand, Values } from './describe.ts';

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
/** `name:description`, for `_describe`. */
const item = (name: string, description: string): string =>
  quote(`${name.replaceAll(':', '\\:')}:${description.replaceAll(':', '\\:')}`);

function fill(values: Values): string {
  if (values === 'model') return '_ruvllm_models';
  if (values === 'file') return '_files';
  return values === null || values === 'text' ? '_message text' : `compadd -- ${values.words.join(' ')}`;
}

function caseOf({ name, flags, actions, takesModel }: CompletedCommand): string {
  const byFlag = flags
    .filter(({ values }) => values !== null)
    .map((flag) => `        ${flag.name}) ${fill(flag.values)} ;;`);
  const options = flags.map((flag) => item(flag.name, flag.description)).join(' ');
  const operands = takesModel ? '_ruvllm_models; _files' : '_files';
  const words =
    actions.length === 0
      ? operands
      : `if (( CURRENT == 3 )); then items=(${actions.map((action) => item(action.name, action.description)).join(' ')}); _describe action items; else ${operands}; fi`;
  return [
    `    ${name})`,
    '      case $previous in',
    ...byFlag,
    `        *) if [[ $words[CURRENT] == -* ]]; then items=(${options}); _describe option items; else ${words}; fi ;;`,
    '      esac ;;',
  ].join('\n');
}

/** The completion script for zsh. */
export function writeZsh(commands: readonly CompletedCommand[]): string {
  return `#compdef ruvllm
# Completion of ruvllm for zsh: ruvllm completion zsh > "\${fpath[1]}/_ruvllm"
_ruvllm_models() {
  local -a models
  models=("\${(@f)$(\${words[1]} completion models 2>/dev/null)}")
  compadd -- "\${(@)models:#}"
}
_ruvllm() {
  local previous=$words[CURRENT-1]
  local -a items
  if (( CURRENT == 2 )); then
    items=(${commands.map(({ name, description }) => item(name, description)).join(' ')})
    _describe command items
    return
  fi
  case $words[2] in
${commands.map(caseOf).join('\n')}
  esac
}
if [[ $funcstack[1] == _ruvllm ]]; then _ruvllm "$@"; else compdef _ruvllm ruvllm; fi
`;
}
