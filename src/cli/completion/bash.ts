import type { CompletedCommand, Values } from './describe.ts';

/** Command and option names need no quoting. */
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
  const operands = command.takesModel ? 'models=1; files=1' : 'files=1';
  const words =
    command.actions.length === 0
      ? operands
      : `if (( index == 2 )); then ${list(command.actions.map(({ name }) => name))}; else ${operands}; fi`;
  return [
    `    ${command.name})`,
    '      case $previous in',
    ...byFlag,
    `        *) if [[ $current == -* ]]; then ${list(flags)}; else ${words}; fi ;;`,
    '      esac ;;',
  ].join('\n');
}

/**
 * The completion script for bash. It splits the line at spaces, not at `COMP_WORDBREAKS`, because model names contain
 * colons. It compares model names without expanding them: `compgen -W` would execute `$(…)`.
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
  # Bash replaces only the part after the last word break.
  local start=\${current%"\${current##*[:=]}"}
  for word in "\${words[@]}"; do
    [[ $word == "$current"* ]] && COMPREPLY+=("\${word#"$start"}")
  done
  if (( files && \${#COMPREPLY[@]} == 0 )); then compopt -o default 2>/dev/null; fi
}
complete -F _ruvllm ruvllm
`;
}
