// The files to deploy one server: every command, option and variable exists, and the guides match the files.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseCommand } from '../src/cli/program.ts';

const root = join(import.meta.dirname, '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const sources = (): string =>
  readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => read(join('src', file)))
    .join('\n');

const quiet = { columns: 80, out: () => {}, err: () => {} };
const parses = (words: readonly string[]): Promise<unknown> => parseCommand([...words], '0.0.0', quiet);

function unknownVariables(text: string): string[] {
  const code = sources();
  return (text.match(/\b(?:RUVLLM|HF)_[A-Z_]+\b/g) ?? []).filter((name) => !code.includes(name));
}

describe('one container', () => {
  const dockerfile = read('deploy/Dockerfile');
  const compose = parse(read('deploy/compose.yaml')) as {
    services: {
      ruvllm: { build: { context: string; dockerfile: string }; command: string[]; stop_grace_period: string };
    };
    volumes: object;
  };

  test('has an existing default command', async () => {
    const list = (keyword: string): string[] =>
      JSON.parse(new RegExp(`^${keyword} (\\[.*\\])$`, 'm').exec(dockerfile)![1]!) as string[];
    expect(list('ENTRYPOINT')).toEqual(['ruvllm']);
    await parses(list('CMD'));
  });

  test('names base images by digest only, and installs from the lock file without scripts', () => {
    expect(Array.from(dockerfile.matchAll(/^FROM (\S+)/gm), ([, image]) => image)).toEqual([
      '${NODE_IMAGE}',
      '${NODE_SLIM_IMAGE}',
    ]);
    const argumentsOf = Array.from(dockerfile.matchAll(/^ARG (.+)$/gm), ([, name]) => name);
    expect(new Set(argumentsOf)).toEqual(new Set(['NODE_IMAGE', 'NODE_SLIM_IMAGE'])); // without defaults
    expect(dockerfile).not.toMatch(/npm (?:install|i|add) /);
    const installs = dockerfile.match(/npm ci[^&\n]*/g)!;
    expect(installs).toHaveLength(2);
    for (const one of installs) expect(one).toContain('--ignore-scripts');
    const { devDependencies } = JSON.parse(read('package.json')) as { devDependencies: Record<string, string> };
    const extras = Array.from(dockerfile.matchAll(/dependencies\.(\S+)=(\S+)/g), ([, name, version]) => [
      name!,
      version,
    ]);
    expect(extras.length).toBeGreaterThan(0);
    for (const [name, version] of extras) expect([name, devDependencies[name!]]).toEqual([name, version]);
  });

  test('builds with scripts of package.json', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const called = Array.from(dockerfile.matchAll(/npm run ([\w:-]+)/g), ([, name]) => name!);
    expect(called.length).toBeGreaterThan(0);
    expect(called.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
  });

  test('sets only variables that the code reads', () => {
    expect(unknownVariables(dockerfile)).toEqual([]);
  });

  test('uses a new enough version of Node', () => {
    const [, minimum] = /(\d+)/.exec((JSON.parse(read('package.json')) as { engines: { node: string } }).engines.node)!;
    const images = read('docs/docker.md').matchAll(/^NODE\w*_IMAGE=node:(\d+)/gm);
    const versions = Array.from(images, ([, version]) => Number(version));
    expect(versions.length).toBe(2);
    expect(Math.min(...versions)).toBeGreaterThanOrEqual(Number(minimum));
  });

  test('runs as a user that Kubernetes can tell from root', () => {
    expect(dockerfile.match(/^USER .*$/gm)).toEqual(['USER 1000:1000']);
    expect(dockerfile).not.toMatch(/--platform=|amd64\b(?!,)/); // the same file for both architectures
  });

  test('has the tested driver of PostgreSQL', () => {
    const { devDependencies } = JSON.parse(read('package.json')) as { devDependencies: { pg: string } };
    expect(/ dependencies\.pg=(\S+)/.exec(dockerfile)![1]).toBe(devDependencies.pg);
  });

  test('compose builds that file with an existing command', async () => {
    const { build, command, stop_grace_period: grace } = compose.services.ruvllm;
    expect(read(join('deploy', build.context, build.dockerfile))).toBe(dockerfile);
    await parses(command);
    expect(Number.parseInt(grace, 10)).toBeGreaterThan(20); // --shutdown-timeout
  });

  test('detects an option that does not exist', async () => {
    await expect(parses([...compose.services.ruvllm.command, '--no-such-option'])).rejects.toThrow('--no-such-option');
  });
});

describe('examples/systemd', () => {
  const path = 'examples/systemd/ruvllm.service';
  const unit = read(path);

  test('has an existing command', async () => {
    const [env, command, ...words] = /^ExecStart=(.*)$/m.exec(unit)![1]!.split(' ');
    expect([env, command]).toEqual(['/usr/bin/env', 'ruvllm']);
    await parses(words);
  });

  test('sets only variables that the code reads', () => {
    expect(unknownVariables(unit)).toEqual([]);
  });

  test('waits longer than running requests before it stops', () => {
    expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)![1])).toBeGreaterThan(20); // --shutdown-timeout
  });

  const hasAnalyze = spawnSync('systemd-analyze', ['--version']).status === 0;
  test.skipIf(!hasAnalyze)('systemd accepts it', () => {
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', join(root, path)], { encoding: 'utf8' });
    expect({ status, complaints: stderr.split('\n').filter((line) => line.includes('ruvllm.service')) }).toEqual({
      status: 0,
      complaints: [],
    });
  });
});

test('the guides name the files and say that the image was not built', () => {
  expect(read('docs/docker.md')).toContain('(../deploy/Dockerfile)');
  expect(read('docs/docker.md')).toContain('the image is not built or run there');
  expect(read('docs/systemd.md')).toContain('(../examples/systemd/ruvllm.service)');
});
