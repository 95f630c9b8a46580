// The build of the kernels in C, with a compiler that only notes how it was called.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { NATIVE_BUILDS } from '../src/platform/node/native-addon.ts';

interface Result {
  state: 'ready' | 'unavailable' | 'failed';
  message: string | null;
  built: string[];
}
const { BUILD_FLAGS, buildNative } = (await import(new URL('../scripts/build-native.mjs', import.meta.url).href)) as {
  BUILD_FLAGS: Record<string, Record<string, string[]>>;
  buildNative(options: object): Promise<Result>;
};

const COMPILER = `#!/bin/sh
case " $* " in
  *" --version "*) echo "\${FAKE_VERSION:-fake 1}" ;;
  *" -mnope "*) exit 1 ;;
  *" -E "*) ;;
  *" -mbroken "*) echo 'a.c:1: error: no such intrinsic' >&2; exit 1 ;;
  *) for word; do [ "$before" = -o ] && out=$word; before=$word; done; echo "$*" > "$out" ;;
esac
`;

const hasShell = process.platform !== 'win32';
if (!hasShell) console.log('the native build is tested with a shell script for a compiler: skipped here');

let folder: string;
let lines: string[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ruvllm-build-'));
  mkdirSync(join(folder, 'c'));
  writeFileSync(join(folder, 'c/a.c'), 'int a;');
  writeFileSync(join(folder, 'c/pack.h'), 'int b;');
  writeFileSync(join(folder, 'cc'), COMPILER);
  chmodSync(join(folder, 'cc'), 0o755);
  lines = [];
});
afterEach(() => {
  delete process.env['FAKE_VERSION'];
  rmSync(folder, { recursive: true });
});

const outputs = () => readdirSync(join(folder, 'out/linux-x64')).toSorted();
const binary = (build: string) => join(folder, `out/linux-x64/ruvllm-${build}.node`);
const buildIn = (options: object = {}): Promise<Result> =>
  buildNative({
    platform: 'linux',
    arch: 'x64',
    sources: join(folder, 'c'),
    out: join(folder, 'out'),
    stamps: join(folder, 'stamps'),
    headers: '/nowhere',
    compiler: join(folder, 'cc'),
    builds: { plain: [], fast: ['-mfast'] },
    log: (line: string) => lines.push(line),
    ...options,
  });
const builtIn = async (options?: object): Promise<string[]> => (await buildIn(options)).built.toSorted();

test('every build has flags and a requirement', () => {
  for (const [arch, kinds] of Object.entries(NATIVE_BUILDS)) {
    expect(Object.keys(BUILD_FLAGS[arch]!).toSorted()).toEqual(kinds.map(({ build }) => build).toSorted());
  }
  expect(Object.keys(BUILD_FLAGS)).toEqual(Object.keys(NATIVE_BUILDS));
});

test.skipIf(!hasShell)('nothing is built twice; another source, header, flag or compiler builds again', async () => {
  expect(await builtIn()).toEqual(['fast', 'plain']);
  expect(outputs()).toEqual(['ruvllm-fast.node', 'ruvllm-plain.node']);
  expect(readFileSync(binary('fast'), 'utf8')).toMatch(/ -mfast -I\/nowhere \S+\/c\/a\.c -o /);
  expect(await builtIn()).toEqual([]);

  writeFileSync(join(folder, 'c/pack.h'), 'int c;');
  expect(await builtIn()).toEqual(['fast', 'plain']);
  expect(await builtIn({ builds: { plain: [], fast: ['-mfaster'] } })).toEqual(['fast']);
  process.env['FAKE_VERSION'] = 'fake 2';
  expect(await builtIn()).toEqual(['fast', 'plain']);
  rmSync(binary('plain'));
  writeFileSync(binary('fast'), 'put here by someone else');
  expect(await builtIn()).toEqual(['fast', 'plain']);
  expect(await builtIn()).toEqual([]);
});

test.skipIf(!hasShell)('a flag the compiler does not know costs that build only, and is told once', async () => {
  const builds = { new: ['-mnope'], plain: [] };
  expect(await buildIn({ builds })).toEqual({ state: 'ready', message: null, built: ['plain'] });
  const told = 'native kernels: no new build, this compiler does not know -mnope';
  expect(lines).toContain(told);
  lines = [];
  expect(await buildIn({ builds })).toEqual({ state: 'ready', message: null, built: [] });
  expect(lines).toEqual([]);
});

test.skipIf(!hasShell)(
  'sources that do not compile are a failure, leave no old binary, and are tried again',
  async () => {
    await buildIn();
    for (let i = 0; i < 2; i++) {
      const { state, message, built } = await buildIn({ builds: { plain: [], fast: ['-mbroken'] } });
      expect({ state, built }).toEqual({ state: 'failed', built: [] });
      expect(message).toMatch(/cc failed on: fast$/);
      expect(lines).toContain('a.c:1: error: no such intrinsic');
    }
    expect(outputs()).toEqual(['ruvllm-plain.node']);
  },
);

test.skipIf(!hasShell)('no compiler, no headers, no such platform: unavailable, with the reason', async () => {
  const missing = await buildIn({ compiler: join(folder, 'no-cc') });
  expect(missing.state).toBe('unavailable');
  expect(missing.message).toMatch(/^no C compiler \(.*no-cc\): for example, apt-get install gcc libc6-dev$/);
  const plan9 = await buildIn({ platform: 'plan9' });
  expect(plan9).toEqual({ state: 'unavailable', message: 'no native build for plan9-x64', built: [] });
  expect(existsSync(join(folder, 'out'))).toBe(false);
});
