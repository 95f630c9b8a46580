import { expect, test } from 'vitest';
import { shellCommands } from './shell-words.ts';

const words = (text: string): (readonly string[])[] => shellCommands(text).map((command) => command.words);

test('reads quotes, joined lines and comments', () => {
  expect(shellCommands('ruvllm run MODEL "a | b # c" \\\n  --seed 1   # --stop TEXT')).toEqual([
    { words: ['ruvllm', 'run', 'MODEL', 'a | b # c', '--seed', '1'], comment: '--stop TEXT', isPiped: false },
  ]);
});

test('reads nested commands and those after keywords, variables and pipes', () => {
  expect(words('A=1 ruvllm list; id=$(ruvllm keys list --json | grep x)')).toEqual([
    ['ruvllm', 'list'],
    ['ruvllm', 'keys', 'list', '--json'],
    ['grep', 'x'],
  ]);
  expect(words('until ruvllm doctor > out.txt; do sleep 1; done')).toEqual([
    ['ruvllm', 'doctor'],
    ['out.txt'],
    ['sleep', '1'],
    ['done'],
  ]);
  expect(shellCommands('ruvllm audit stats | verify').map(({ isPiped }) => isPiped)).toEqual([false, true]);
});
