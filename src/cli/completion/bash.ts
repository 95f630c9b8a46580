import type { CompletedCommand, Values } from './describe.ts';

/** Names of commands and options are words; nothing here needs quoting. */
const list = (words: readonly string[]): string => `words=(${words.join(' ')})`;

function fill(values: Values): string {
  if (values === 'model') return 'models=1';
  if (values === 'file') return 'files=1';
  return values === null || values === 'text' ? ':' : list(values.words);
}

function caseOf(command: CompletedCommand): string {
  const valued = command.flags.filter(({ values }) => values !== null);
  const byFlag = valued.map(({ name, values }) => `        ${name}) ${fill(values)} ;;`);
  const flags = ['--help', ...command.flags.map(({ name }) => name)];
  const rest = command.takesModel ? 'models=1; files=1' : 'files=1';
  const first =
    command.actions.length === 0
      ? rest
      : `if (( index == 2 )); then ${list(command.actions.map(({ name }) => name))}; else ${rest}; fi`;
  return [
    `    ${command.name})`,
    '      case $previous in',
    ...byFlag,
    `        *) if [[ $current == -* ]]; then ${list(flags)}; else ${first}; fi ;;`,
    '      esac ;;',
  ].join('\n');
}

/**
 * A completion for bash. The line is split at spaces, not at `COMP_WORDBREAKS`: names of models have colons in them. Names
 * of models are compared and never expanded: `compgen -W` would run what stands in `$(…)`.
 */
export function writeBash(commands: readonly CompletedCommand[]): string {
  return `# Completion of ruvllm for bash: source <(ruvllm completion bash)
_ruvllm() {
  local line=\${COMP_LINE:0:COMP_POINT} current previous index word models=0 files=0
  local -a parts words=()
  read -ra parts <<< "$line"
  [[ $line == *[[:space:]] ]] && parts+=("")
  index=$(( \${#parts[@]} - 1 ))
  current=\${parts[index]}
  previous=\${parts[index - 1]}
  COMPREPLY=()
  if (( index == 1 )); then
    ${list([...commands.map(({ name }) => name), 'help', '--help', '--version'])}
  else
    case \${parts[1]} in
${commands.map(caseOf).join('\n')}
    help) ${list(commands.map(({ name }) => name))} ;;
    esac
  fi
  if (( models )); then
    while IFS= read -r word; do words+=("$word"); done < <("\${parts[0]}" completion models 2>/dev/null)
  fi
  # Bash replaces only what follows the last break of the word.
  local start=\${current%"\${current##*[:=]}"}
  for word in "\${words[@]}"; do
    [[ $word == "$current"* ]] && COMPREPLY+=("\${word#"$start"}")
  done
  if (( files && \${#COMPREPLY[@]} == 0 )); then compopt -o default 2>/dev/null; fi
}
complete -F _ruvllm ruvllm
`;
}
