// The build of the C kernels, with a compiler that only records its calls.
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
import { NATIVE_BUILDS } from '../src/platform/node/kernels/native-addon.ts';

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
  *" -include "*) [ -z "$FAKE_HEADERS" ] || { echo '<built-in>: fatal error: stdlib.h: No such file' >&2; exit 1; } ;;
  *" -mnope "*) exit 1 ;;
  *" -E "*) ;;
  *" -mbroken "*) echo 'a.c:1: error: no such intrinsic' >&2; exit 1 ;;
  *) for word; do [ "$before" = -o ] && out=$word; before=$word; done; echo "$*" > "$out" ;;
esac
`;

const hasShell = process.platform !== 'win32';
if (!hasShell) console.log('skipped: the native build is tested with a shell script as compiler');

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
  delete process.env['FAKE_HEADERS'];
  rmSync(folder, { recursive: true });
});

const outputs = () => readdirSync(join(folder, 'out/linux-x64')).toSorted();
const binary = (build: string) => join(folder, `out/linux-x64/ruvllm-${build}.node`);
const buildIn = (options: object = {}): Promise<Result> =>
  buildNative({
    platform: 'linux',
    arch: 'x64',
    libc: 'glibc',
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

test.skipIf(!hasShell)(
  'builds nothing twice, and rebuilds after a change of source, header, flag or compiler',
  async () => {
    expect(await builtIn()).toEqual(['fast', 'plain']);
    expect(outputs()).toEqual(['ruvllm-fast.node', 'ruvllm-plain.node']);
    const record = JSON.parse(readFileSync(join(folder, 'out/provenance.json'), 'utf8')) as { files: object[] };
    const compiled = (name: string) => ({ path: `prebuilds/linux-x64/ruvllm-${name}.node`, isCompiledHere: true });
    expect(record).toMatchObject({ sources: expect.any(String), files: [compiled('fast'), compiled('plain')] });
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
  },
);

test.skipIf(!hasShell)(
  'compiles only the best build that the processor runs, and removes outdated others',
  async () => {
    const builds = { baseline: [], fast: ['-mfast'], faster: ['-mfaster'], fastest: ['-mfastest'] };
    const best = (features: string[], options: object = {}) =>
      buildIn({ builds, only: 'best', findFeatures: () => features, ...options });
    expect((await best(['fast', 'faster'])).built).toEqual(['faster']);
    expect(outputs()).toEqual(['ruvllm-faster.node', 'ruvllm-features.node']);
    expect(readFileSync(binary('features'), 'utf8')).toMatch(/ -DFEATURES_ONLY /);
    expect((await best(['fast', 'faster'])).built).toEqual([]);

    writeFileSync(join(folder, 'c/pack.h'), 'int c;');
    expect((await best([])).built).toEqual(['baseline']);
    expect(outputs()).toEqual(['ruvllm-baseline.node', 'ruvllm-features.node']);

    // A compiler that does not know the best build's flags makes the next one, and asks no more.
    const old = { builds: { baseline: [], fast: ['-mfast'], new: ['-mnope'] } };
    for (const built of [['fast'], []]) expect((await best(['fast', 'new'], old)).built).toEqual(built);
  },
);

test.skipIf(!hasShell)('skips only the build whose flag the compiler rejects, and reports it once', async () => {
  const builds = { new: ['-mnope'], plain: [] };
  expect(await buildIn({ builds })).toEqual({ state: 'ready', message: null, built: ['plain'] });
  const report = 'native kernels: no new build, this compiler does not support -mnope';
  expect(lines).toContain(report);
  lines = [];
  expect(await buildIn({ builds })).toEqual({ state: 'ready', message: null, built: [] });
  expect(lines).toEqual([]);
});

test.skipIf(!hasShell)('sources that do not compile fail, leave no old binary, and are tried again', async () => {
  await buildIn();
  for (let i = 0; i < 2; i++) {
    const { state, message, built } = await buildIn({ builds: { plain: [], fast: ['-mbroken'] } });
    expect({ state, built }).toEqual({ state: 'failed', built: [] });
    expect(message).toMatch(/cc failed on: fast$/);
    expect(lines).toContain('a.c:1: error: no such intrinsic');
  }
  expect(outputs()).toEqual(['ruvllm-plain.node']);
});

test.skipIf(!hasShell)('reports the reason if compiler, headers or platform are missing', async () => {
  const missing = await buildIn({ compiler: join(folder, 'no-cc') });
  expect(missing.state).toBe('unavailable');
  expect(missing.message).toMatch(/^no C compiler \(.*no-cc\): for example, apt-get install gcc libc6-dev$/);
  const plan9 = await buildIn({ platform: 'plan9' });
  expect(plan9).toEqual({ state: 'unavailable', message: 'no native build for plan9-x64', built: [] });
  expect(existsSync(join(folder, 'out'))).toBe(false);
});

test.skipIf(!hasShell)('a compiler without C library headers is unavailable, and current binaries stay', async () => {
  process.env['FAKE_HEADERS'] = 'none';
  const { state, message, built } = await buildIn();
  expect({ state, built }).toEqual({ state: 'unavailable', built: [] });
  expect(message).toMatch(
    /cc has no C library headers \(<built-in>: fatal error: stdlib\.h: No such file\): for example, apt-get install libc6-dev$/,
  );
  delete process.env['FAKE_HEADERS'];
  expect(await builtIn()).toEqual(['fast', 'plain']);
  process.env['FAKE_HEADERS'] = 'none';
  expect(await buildIn()).toEqual({ state: 'ready', message: null, built: [] });
});

test.skipIf(!hasShell)('names a folder that cannot be written', async () => {
  writeFileSync(join(folder, 'out'), 'a file where the folder should be');
  expect(await buildIn()).toEqual({
    state: 'unavailable',
    message: `${join(folder, 'out/linux-x64')} cannot be written (ENOTDIR)`,
    built: [],
  });
});

test.skipIf(!hasShell)(
  'uses a separate folder and linker flags on musl and macOS, and no AMX outside Linux',
  async () => {
    await buildIn({ libc: 'musl' });
    await buildIn({ platform: 'darwin', libc: null, builds: undefined });
    expect(readdirSync(join(folder, 'out')).toSorted()).toEqual(['darwin-x64', 'linux-x64-musl', 'provenance.json']);
    const mac = readdirSync(join(folder, 'out/darwin-x64'));
    expect(mac.map((name) => name.slice(7, -5)).toSorted()).toEqual(['avx2', 'avx2vnni', 'avx512vnni', 'baseline']);
    expect(readFileSync(join(folder, 'out/darwin-x64/ruvllm-avx2.node'), 'utf8')).toMatch(
      / -Wl,-undefined,dynamic_lookup\n$/,
    );
    expect(readFileSync(join(folder, 'out/linux-x64-musl/ruvllm-fast.node'), 'utf8')).toMatch(/ -lpthread -lm\n$/);
  },
);

test('prebuilds have the same builds as a local compiler', async () => {
  const { ZIG_FLAGS, TARGETS } = (await import(new URL('../scripts/build-prebuilds.mjs', import.meta.url).href)) as {
    ZIG_FLAGS: typeof BUILD_FLAGS;
    TARGETS: { platform: string; arch: string }[];
  };
  const names = (flags: typeof BUILD_FLAGS) =>
    Object.entries(flags).map(([arch, builds]) => [arch, Object.keys(builds)]);
  expect(names(ZIG_FLAGS)).toEqual(names(BUILD_FLAGS));
  expect(TARGETS).toHaveLength(7);
});
