// Shipped packages, their licences, and a package that can be built again.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'ruvllm-supply-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const read = (path: string): Record<string, unknown> => JSON.parse(readFileSync(join(root, path), 'utf8')) as Record<string, unknown>; // prettier-ignore
const isBuilt = existsSync(join(root, 'dist/lib/index.js'));

interface Locked {
  path: string;
  name: string;
  version: string;
  license: string | null;
  integrity: string | null;
  hasInstallScript: boolean;
  isShipped: boolean;
}
const load = async (name: string): Promise<unknown> =>
  await import(new URL(`../scripts/supply-chain/${name}.mjs`, import.meta.url).href);
const { describePackages } = (await load('cyclonedx')) as {
  describePackages: (manifest: object, packages: readonly Locked[], files: readonly object[]) => object;
};
const { findProblems, satisfies } = (await load('licences')) as {
  findProblems: (packages: readonly Locked[]) => string[];
  satisfies: (expression: string, allowed: ReadonlySet<string>) => boolean;
};
const { listBundled, readPackages } = (await load('packages')) as {
  listBundled: (root: string) => string[];
  readPackages: (lock: object, bundled: readonly string[]) => Locked[];
};
const { describePrebuilds, listPrebuilds } = (await load('prebuilds')) as {
  describePrebuilds: (places: { prebuilds: string; stamps: string; sources: string }) => string;
  listPrebuilds: (prebuilds: string, stamps: string) => object[];
};
interface PinnedEntry {
  readonly version?: string;
  readonly integrity?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}
const { readPins } = (await load('pinned')) as {
  readPins: () => { archives: Record<string, string>; sets: Record<string, Record<string, PinnedEntry>> };
};
const { listArchives } = (await load('pin')) as { listArchives: (lock: object) => string[] };
const SHA512 = /^sha512-[A-Za-z0-9+/]{86}==$/;
const packages = readPackages(read('package-lock.json'), listBundled(root));

test('all locked packages have an allowed licence, a hash and no install script', () => {
  expect(packages.length).toBeGreaterThan(100);
  expect(findProblems(packages)).toEqual([]);
});

test('what is installed outside the lock file has a hash in pinned.json', () => {
  const { archives, sets } = readPins();
  for (const [spec, integrity] of Object.entries(archives))
    expect([spec, integrity]).toEqual([spec, expect.stringMatching(SHA512)]);
  for (const [set, { '': first, ...entries }] of Object.entries(sets)) {
    const named = { ...first!.dependencies, ...first!.optionalDependencies };
    for (const [name, version] of Object.entries(named))
      expect([set, name, entries[`node_modules/${name}`]?.version]).toEqual([set, name, version]);
    for (const [path, { integrity }] of Object.entries(entries))
      expect([set, path, integrity]).toEqual([set, path, expect.stringMatching(SHA512)]);
  }
  // Binaries for the platforms of CI and of the image; some registries lack those for others.
  const onLinux = listArchives(read('package-lock.json')).filter((spec) => !/darwin|win32/.test(spec));
  expect(onLinux.length).toBeGreaterThan(4);
  expect(onLinux.filter((spec) => archives[spec] === undefined)).toEqual([]);
});

test('only a lock file or pinned.json says what scripts and benchmarks install', () => {
  const files = ['scripts', 'bench', 'campaign', 'test/support'].flatMap((name) =>
    readdirSync(join(root, name), { recursive: true, encoding: 'utf8' }).map((file) => `${name}/${file}`),
  );
  const isInstalling = (text: string): boolean =>
    text.includes("'npm'") && /'(?:install|ci|pack)',|'cache', 'add'/.test(text);
  const installing = files.filter(
    (file) => /\.(?:mjs|ts)$/.test(file) && isInstalling(readFileSync(join(root, file), 'utf8')),
  );
  expect(installing.toSorted()).toEqual([
    'bench/start.bench.ts', // packs this package
    'bench/support/recall/npm-package.ts', // pinned.json
    'scripts/check-reproducible.mjs', // packs this package
    'scripts/clients.mjs', // test/clients/package-lock.json
    'scripts/prefetch.mjs', // models, which the server compares with its hashes
    'scripts/setup.mjs', // package-lock.json
    'scripts/supply-chain/pin.mjs', // writes pinned.json
    'scripts/supply-chain/pinned.mjs',
    'test/support/minilm.ts', // a model, with a hash of its own
  ]);
});

test('finds a licence, an install script and a missing hash that are not allowed', () => {
  const one = packages.find(({ name }) => name === 'hono')!;
  const problemsOf = (change: Partial<Locked>): string[] => findProblems([{ ...one, ...change }]);
  expect(problemsOf({})).toEqual([]);
  expect(problemsOf({ license: 'GPL-3.0-only' })[0]).toContain('GPL-3.0-only');
  expect(problemsOf({ license: 'MPL-2.0' })[0]).toContain('not allowed for shipped packages');
  expect(problemsOf({ license: 'MPL-2.0', isShipped: false })).toEqual([]);
  expect(problemsOf({ license: null })).toHaveLength(1);
  expect(problemsOf({ hasInstallScript: true })[0]).toContain('runs a script');
  expect(problemsOf({ integrity: 'sha1-abc' })[0]).toContain('no SHA-512');
});

test.each([
  ['MIT', true],
  ['GPL-3.0-only', false],
  ['(GPL-3.0-only OR MIT)', true],
  ['(MIT AND GPL-3.0-only)', false],
  ['MIT AND (GPL-3.0-only OR ISC)', true],
  ['(MIT', false],
  ['MIT WITH x', false],
])('the licence %s is allowed: %s', (expression, isAllowed) => {
  expect(satisfies(expression, new Set(['MIT', 'ISC']))).toBe(isAllowed);
});

test('shipped are the dependencies, those of the dashboard, and what these need', () => {
  const shipped = new Set(packages.filter(({ isShipped }) => isShipped).map(({ name }) => name));
  for (const name of [...Object.keys(read('package.json')['dependencies'] as object), 'preact', 'katex', 'dompurify', 'entities']) expect([name, shipped.has(name)]).toEqual([name, true]); // prettier-ignore
  for (const name of ['typescript', 'vitest', 'playwright-core', 'pg']) expect([name, shipped.has(name)]).toEqual([name, false]); // prettier-ignore
});

test('the bill of materials is CycloneDX, complete and always the same', () => {
  const create = (): string => JSON.stringify(describePackages(read('package.json'), packages, []));
  const bom = JSON.parse(create()) as { components: Record<string, unknown>[]; dependencies: { ref: string; dependsOn: string[] }[]; serialNumber: string }; // prettier-ignore
  expect(create()).toBe(create());
  expect(bom).toMatchObject({ bomFormat: 'CycloneDX', specVersion: '1.6', version: 1 });
  expect(bom.serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(bom.components).toHaveLength(packages.length);
  expect(bom.components.find(({ name }) => name === 'hono')).toMatchObject({
    type: 'library',
    scope: 'required',
    licenses: [{ license: { id: 'MIT' } }],
    hashes: [{ alg: 'SHA-512', content: expect.stringMatching(/^[0-9a-f]{128}$/) as string }],
    purl: expect.stringMatching(/^pkg:npm\/hono@\d/) as string,
  });
  const references = new Set(bom.components.map((component) => component['bom-ref']));
  expect(references.size).toBe(bom.components.length);
  for (const { dependsOn } of bom.dependencies) for (const one of dependsOn) expect(references).toContain(one);
});

test('records a hash of each native file, and whether this checkout compiled it', () => {
  const [prebuilds, stamps, sources] = ['prebuilds', 'stamps', 'c'].map((name) => join(folder, name)) as [string, string, string]; // prettier-ignore
  for (const path of [join(prebuilds, 'linux-x64'), stamps, sources]) mkdirSync(path, { recursive: true });
  writeFileSync(join(sources, 'a.c'), 'int a;');
  for (const name of ['ours', 'copied']) writeFileSync(join(prebuilds, 'linux-x64', `ruvllm-${name}.node`), name);
  const { size, mtimeMs } = statSync(join(prebuilds, 'linux-x64/ruvllm-ours.node'));
  writeFileSync(join(stamps, 'linux-x64-ours'), `abc ${size} ${mtimeMs}`);
  writeFileSync(join(stamps, 'linux-x64-copied'), 'abc 1 2');
  const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
  const files = [
    { path: 'prebuilds/linux-x64/ruvllm-copied.node', size: 6, sha256: sha256('copied'), isCompiledHere: false },
    { path: 'prebuilds/linux-x64/ruvllm-ours.node', size: 4, sha256: sha256('ours'), isCompiledHere: true },
  ];
  expect(listPrebuilds(prebuilds, stamps)).toEqual(files);
  const before = describePrebuilds({ prebuilds, stamps, sources });
  expect(JSON.parse(before)).toMatchObject({ files });
  writeFileSync(join(sources, 'a.c'), 'int b;');
  expect(describePrebuilds({ prebuilds, stamps, sources })).not.toBe(before);
});

test.skipIf(!isBuilt)('two packages of the same build are equal, byte for byte', () => {
  const pack = (name: string): string => {
    const into = join(folder, name);
    mkdirSync(into);
    execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', into], { cwd: root, stdio: 'ignore', shell: process.platform === 'win32' }); // prettier-ignore
    return createHash('sha256').update(readFileSync(join(into, readdirSync(into)[0]!))).digest('hex'); // prettier-ignore
  };
  expect(pack('one')).toBe(pack('two'));
});

test.skipIf(!isBuilt)('no built file names the folder in which it was built', () => {
  const files = readdirSync(join(root, 'dist'), { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  const named = files
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path).includes(root.replace(/\/$/, '')));
  expect(files.length).toBeGreaterThan(100);
  expect(named).toEqual([]);
});
