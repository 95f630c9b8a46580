// The completion scripts in their shells; a shell that is not installed is skipped.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../src/cli/commands.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const isBuilt = existsSync(join(root, 'dist/lib/cli.js'));
if (!isBuilt) console.log('completion tests skipped: dist/ is not built, run "npm run build"');
const has = (shell: string): boolean => {
  const isInstalled = isBuilt && spawnSync(shell, ['-c', 'true']).status === 0;
  if (!isInstalled && isBuilt) console.log(`completion of ${shell} skipped: not installed`);
  return isInstalled;
};

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-completion-'));
const bin = join(folder, 'ruvllm');
const environment = { PATH: `${folder}:${process.env['PATH']}`, HOME: folder, HF_HUB_CACHE: join(folder, 'hub') };
const run = (command: string, ...args: string[]) =>
  spawnSync(command, args, { env: environment, encoding: 'utf8', cwd: folder, timeout: 600_000 });

beforeAll(() => {
  symlinkSync(join(root, 'bin/ruvllm.mjs'), bin);
  for (const name of ['models--owner--repo', 'models--own$(touch pwned)--x']) {
    const repo = join(folder, 'hub', name);
    const commit = 'b'.repeat(40);
    for (const inner of ['blobs', 'refs', `snapshots/${commit}`]) mkdirSync(join(repo, inner), { recursive: true });
    writeFileSync(join(repo, 'blobs', 'a'.repeat(64)), 'x');
    writeFileSync(join(repo, 'refs/main'), commit);
    symlinkSync(`../../blobs/${'a'.repeat(64)}`, join(repo, 'snapshots', commit, 'm-Q4_K_M.gguf'));
  }
  writeFileSync(join(folder, 'local.gguf'), '');
  for (const shell of ['bash', 'zsh', 'fish']) {
    if (isBuilt) writeFileSync(join(folder, `c.${shell}`), run(bin, 'completion', shell).stdout);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Completions that every shell must offer for a line; command names come from the command table. */
const CASES: readonly (readonly [line: string, offered: readonly string[]])[] = [
  ['ruvllm ru', ['run']],
  ['ruvllm run --kern', ['--kernels']],
  ['ruvllm run --kernels ', ['auto', 'native', 'webgpu', 'wasm', 'reference']],
  ['ruvllm keys re', ['revoke']],
  ['ruvllm run owner/re', ['owner/repo:Q4_K_M']],
];

describe.skipIf(!has('bash'))('bash', () => {
  const complete = (line: string): string[] => {
    const script = `source c.bash; COMP_LINE=$1; COMP_POINT=\${#1}; _ruvllm; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = run('bash', '--norc', '-c', script, 'bash', line);
    expect(stderr).toBe('');
    return stdout.split('\n').filter((word) => word !== '');
  };

  test.each(CASES)('%j', (line, offered) => expect(complete(line)).toEqual(offered));

  test('completes every command and its options', () => {
    expect(complete('ruvllm ')).toEqual([...COMMANDS.map(({ name }) => name), 'help', '--help', '--version']);
    const help = JSON.parse(run(bin, 'serve', '--help', '--json').stdout) as { options: { name: string }[] };
    expect(complete('ruvllm serve --')).toEqual(['--help', ...help.options.map(({ name }) => name)]);
  });

  test('offers only the part after a colon, because bash breaks words there', () => {
    expect(complete('ruvllm run owner/repo:Q')).toEqual(['Q4_K_M']);
  });

  test('neither offers nor runs a name that a shell would execute', () => {
    expect(complete('ruvllm run own')).toEqual(['owner/repo:Q4_K_M']);
    expect(existsSync(join(folder, 'pwned'))).toBe(false);
  });
});

describe.skipIf(!has('fish'))('fish', () => {
  test.each(CASES)('%j', (line, offered) => {
    const { stdout } = run('fish', '--no-config', '-c', 'source c.fish; complete -C $argv[1]', line);
    const words = stdout.split('\n').map((one) => one.split('\t')[0]!);
    expect(words).toEqual(expect.arrayContaining([...offered]));
    expect(words).not.toContain('own$(touch pwned)/x:Q4_K_M');
  });
});

describe.skipIf(!has('zsh'))('zsh', () => {
  /** Types the line and Tab in a new shell on a new terminal. */
  const complete = (line: string): string => {
    const script = `
      zmodload zsh/zpty
      zpty z 'zsh -f -i'
      zpty -w z "PROMPT=; unsetopt zle_bracketed_paste; autoload -Uz compinit; compinit -u -d ./zcompdump; source ./c.zsh; zstyle ':completion:*' list-prompt ''; LISTMAX=1000; COLUMNS=500; print REA''DY"
      zpty -r -t z out '*READY*' || zpty -r z out '*READY*'
      zpty -w -n z "$1"$'\\t'
      sleep 2
      while zpty -r -t z more; do print -r -- $more; done`;
    return run('zsh', '-f', '-c', script, 'zsh', line).stdout;
  };

  test('zsh reads the script and completes', () => {
    expect(run('zsh', '-n', 'c.zsh').stderr).toBe('');
    expect(complete('ruvllm comple')).toContain('completion');
    expect(complete('ruvllm run --kern')).toContain('--kernels');
  });
});
