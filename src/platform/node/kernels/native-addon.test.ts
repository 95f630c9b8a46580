import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { NATIVE_ABI } from '../../../kernels/native/addon.ts';
import {
  describeUntestedBuild,
  inspectNativeBuilds,
  loadNativeBuilds,
  NATIVE_BUILDS,
  PREBUILD_NAME,
  prebuildName,
  readNativeFeatures,
} from './native-addon.ts';

const here = NATIVE_BUILDS[process.arch] ?? [];
const builds = loadNativeBuilds({ limit: '' });
const names = builds.map(({ build }) => build);
if (builds.length === 0)
  console.log('native kernels are not built here (npm run build:native): some tests are skipped');

test.skipIf(builds.length === 0)('RUVLLM_NATIVE_BUILD leaves what is not better than the named build', () => {
  for (const [i, name] of names.entries()) {
    expect(loadNativeBuilds({ limit: name }).map(({ build }) => build)).toEqual(names.slice(i));
  }
  process.env['RUVLLM_NATIVE_BUILD'] = 'baseline';
  try {
    // `npm test` compiles the best build only.
    expect(loadNativeBuilds().map(({ build }) => build)).toEqual(names.filter((name) => name === 'baseline'));
    expect(inspectNativeBuilds()[0]).toMatchObject({
      build: here[0]!.build,
      problem: { kind: 'excluded', message: 'excluded by RUVLLM_NATIVE_BUILD=baseline' },
    });
  } finally {
    delete process.env['RUVLLM_NATIVE_BUILD'];
  }
});

test.skipIf(builds.length === 0)('one build and the addon of the features are enough to know what runs here', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-prebuilds-'));
  try {
    const search = { folder: pathToFileURL(`${folder}/`), limit: '' };
    const copy = (name: string): void =>
      cpSync(
        new URL(`../../../../prebuilds/${PREBUILD_NAME}/ruvllm-${name}.node`, import.meta.url),
        join(folder, `ruvllm-${name}.node`),
      );
    copy(names[0]!);
    if (names[0] !== 'baseline') {
      expect(loadNativeBuilds(search)).toEqual([]);
      expect(inspectNativeBuilds(search)[0]!.problem).toEqual({
        kind: 'unfit',
        message: 'the addon that detects the processor cannot be loaded',
      });
    }
    copy('features');
    expect(loadNativeBuilds(search).map(({ build }) => build)).toEqual([names[0]]);
    expect(readNativeFeatures(search.folder)).toEqual(readNativeFeatures());
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('an unknown RUVLLM_NATIVE_BUILD is refused with the names there are', () => {
  expect(() => loadNativeBuilds({ limit: 'avx9000', architecture: 'x64' })).toThrow(
    expect.objectContaining({
      code: 'invalid_option',
      message: 'RUVLLM_NATIVE_BUILD is "avx9000", on x64 it is one of: amx, avx512vnni, avx2vnni, avx2, baseline',
    }),
  );
  expect(() => loadNativeBuilds({ limit: 'amx', architecture: 'mips' })).toThrow('on mips it is one of: none');
});

test('a file that is no addon is refused, not thrown; nothing built is no fault', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-prebuilds-'));
  try {
    const search = { folder: pathToFileURL(`${folder}/`), architecture: 'x64', limit: '' };
    expect(inspectNativeBuilds(search).at(-1)).toMatchObject({ problem: { kind: 'missing', message: 'not built' } });
    for (const bytes of ['', '\x7fELF, and then the disk was full', 'MZ'.repeat(500), '\xcf\xfa\xed\xfe'.repeat(500)]) {
      writeFileSync(join(folder, 'ruvllm-baseline.node'), bytes, 'latin1');
      expect(loadNativeBuilds(search)).toEqual([]);
      const states = inspectNativeBuilds(search);
      expect(states.at(-1)).toMatchObject({ build: 'baseline', addon: null, problem: { kind: 'broken' } });
      expect(states.at(-1)!.problem!.message).toMatch(
        /^cannot be loaded: .+ \(reinstall ruvllm, or in a clone npm run build:native\)$/,
      );
      expect(states[0]!.problem!.kind).toBe('unfit');
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.skipIf(builds.length === 0)('a build of another interface version is broken, whatever it can do', () => {
  const other = NATIVE_ABI + 1;
  expect(builds.map(({ addon }) => addon.abi)).toEqual(builds.map(() => NATIVE_ABI));
  expect(loadNativeBuilds({ limit: '', abi: other })).toEqual([]);
  const states = inspectNativeBuilds({ limit: '', abi: other });
  // `npm test` compiles the best build only.
  for (const name of names) {
    expect(states.find(({ build }) => build === name)).toMatchObject({
      addon: null,
      problem: {
        kind: 'broken',
        message: `compiled from other sources: its interface has version ${NATIVE_ABI}, this package needs ${other}: npm run build:native`,
      },
    });
  }
});

// Were they not the same, every build would be refused and every test of one skipped.
test('both sides have the same interface version', () => {
  const header = readFileSync(new URL('../../../kernels/native/c/pack.h', import.meta.url), 'utf8');
  expect(header.match(/^enum \{ ABI = (\d+) \};$/m)?.[1]).toBe(String(NATIVE_ABI));
});

test('prebuilds of another C library have a folder of their own', () => {
  expect(prebuildName('linux', 'x64', 'glibc')).toBe('linux-x64');
  expect(prebuildName('linux', 'x64', 'musl')).toBe('linux-x64-musl');
  expect(prebuildName('darwin', 'arm64', null)).toBe('darwin-arm64');
});

test('platforms whose kernels the project never ran are named', () => {
  expect(['linux-x64', 'linux-arm64'].map((name) => describeUntestedBuild(name))).toEqual([null, null]);
  expect(describeUntestedBuild('win32-x64')).toBe(
    'the project has not run its win32-x64 kernels; the self-check passed on this machine',
  );
});

test.skipIf(builds.length === 0 || process.platform !== 'linux')(
  'our own file for another processor, or cut off',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'ruvllm-prebuilds-'));
    try {
      const path = join(folder, 'ruvllm-baseline.node');
      const bytes = readFileSync(
        new URL(`../../../../prebuilds/${PREBUILD_NAME}/ruvllm-${names[0]}.node`, import.meta.url),
      );
      const problemOf = (content: Uint8Array): string => {
        writeFileSync(path, content);
        return inspectNativeBuilds({ folder: pathToFileURL(`${folder}/`), limit: '' }).at(-1)!.problem!.message;
      };
      const foreign = Buffer.from(bytes);
      foreign.writeUInt16LE(process.arch === 'x64' ? 183 : 62, 18);
      const other = process.arch === 'x64' ? 'arm64' : 'x64';
      expect(problemOf(foreign)).toContain(`it is an ELF library for ${other}, and this is linux-${process.arch}`);
      // Each would be mapped, and end the process at its first touch.
      for (const share of [0.1, 0.5, 0.99]) {
        expect(problemOf(bytes.subarray(0, bytes.length * share))).toContain('its header promises');
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
