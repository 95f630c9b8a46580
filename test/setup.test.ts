// Setup of a new clone on a machine that lacks something.
import { execFile } from 'node:child_process';
import {
  chmodSync,
  cpSync,
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
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startFakeRegistry } from './support/fake-registry.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const scripts = join(root, 'scripts');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ruvllm-setup-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs Node with a registry, without this machine's npm settings and cache. */
function runNode(args: readonly string[], registry = 'http://127.0.0.1:9'): Promise<Ended> {
  const env = {
    ...process.env,
    npm_config_registry: registry,
    npm_config_cache: join(folder, 'cache'),
    npm_config_userconfig: join(folder, 'npmrc'),
  };
  return new Promise((resolve) => {
    execFile(process.execPath, args, { env, encoding: 'utf8' }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

const runModule = (code: string, registry?: string) => runNode(['--input-type=module', '-e', code], registry);
const scriptUrl = (name: string) => JSON.stringify(pathToFileURL(join(scripts, name)).href);

describe('a Node that is too old', () => {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    engines: { node: string };
    scripts: Record<string, string>;
  };
  const minimum = manifest.engines.node.replace('>=', '');
  const old = (version: string) => {
    const file = join(folder, 'old.cjs');
    writeFileSync(
      file,
      `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });`,
    );
    return file;
  };

  test('is rejected with one sentence before anything else', async () => {
    // Copies: a failing check must not start a build or all tests from inside this one.
    for (const name of ['bin', 'scripts/run.mjs', 'package.json']) {
      cpSync(join(root, name), join(folder, name), { recursive: true });
    }
    writeFileSync(join(folder, 'scripts/start.mjs'), 'this is ??= no JavaScript');
    for (const version of ['18.20.8', '20.18.3']) {
      for (const args of [['bin/ruvllm.mjs'], ['scripts/run.mjs', 'start']]) {
        expect(await runNode(['-r', old(version), join(folder, args[0]!), ...args.slice(1)])).toEqual({
          code: 1,
          stdout: '',
          stderr:
            `error: RuvLLM requires Node ${minimum} or newer; this is Node ${version}.\n` +
            'next: install a newer one from https://nodejs.org, or run "nvm install --lts"\n',
        });
      }
    }
  });

  test.each(['start', 'test', 'build'])('npm run %s checks first', (name) => {
    expect(manifest.scripts[name]).toBe(`node scripts/run.mjs ${name}`);
  });

  test('accepts newer versions', async () => {
    for (const version of [`${minimum}.0`, '22.0.0', '26.6.0']) {
      const file = pathToFileURL(join(root, 'bin/require-node.mjs')).href;
      expect(await runNode(['-r', old(version), '--import', file, '-e', '0'])).toMatchObject({ code: 0, stderr: '' });
    }
  });
});

/** A lock file with one package that needs a binary, and its other entries. */
function writeProject(binaries: Readonly<Record<string, string>>, locked: readonly string[] = []): string {
  const packages = {
    '': { devDependencies: { tool: '1.0.0' } },
    'node_modules/tool': { version: '1.0.0', optionalDependencies: binaries },
    ...Object.fromEntries(locked.map((name) => [`node_modules/${name}`, { version: binaries[name], optional: true }])),
  };
  const file = join(folder, 'package-lock.json');
  writeFileSync(file, JSON.stringify({ name: 'x', lockfileVersion: 3, packages }));
  return file;
}

describe('npm run check:platforms', () => {
  const binaries = { 'tool-linux-x64-gnu': '1.0.0', '@tool/linux-arm64': '2.0.0', 'tool-linux-x64-musl': '1.0.0', 'tool-darwin-arm64': '1.0.0' }; // prettier-ignore
  const both = ['tool-linux-x64-gnu', '@tool/linux-arm64'];
  const check = async (locked: readonly string[], published: readonly string[]): Promise<Ended> => {
    await using registry = await startFakeRegistry(published);
    return await runNode([join(scripts, 'check-platforms.mjs'), writeProject(binaries, locked)], registry.url);
  };

  test('passes if both Linux binaries are locked and published', async () => {
    expect(await check(both, ['tool-linux-x64-gnu@1.0.0', '@tool/linux-arm64@2.0.0'])).toMatchObject({
      code: 0,
      stdout: 'check:platforms: 2 binaries for Linux on x64 and arm64 are locked and in the registry\n',
    });
  });

  test('fails if the registry has a binary only in another version, or not at all', async () => {
    const { code, stderr } = await check(both, ['@tool/linux-arm64@1.9.0']);
    expect(code).toBe(1);
    expect(stderr).toContain('check:platforms: tool-linux-x64-gnu@1.0.0 is not in the registry');
    expect(stderr).toContain('check:platforms: @tool/linux-arm64@2.0.0 is not in the registry');
  });

  test('fails if a binary is not locked', async () => {
    const { code, stderr } = await check(['@tool/linux-arm64'], ['tool-linux-x64-gnu@1.0.0', '@tool/linux-arm64@2.0.0']); // prettier-ignore
    expect(code).toBe(1);
    expect(stderr).toBe(
      'check:platforms: tool-linux-x64-gnu@1.0.0 is not in the lock file, and tool cannot run without it\n',
    );
  });

  test('reports an unreachable registry with a separate exit code', async () => {
    const { code, stderr } = await runNode([join(scripts, 'check-platforms.mjs'), writeProject(binaries, both)]);
    expect(code).toBe(2);
    expect(stderr).toBe('check:platforms: the registry did not answer for 2 of 2 packages (ECONNREFUSED)\n');
  });
});

describe('a lock file without the binaries of this platform', () => {
  const binaries = { 'tool-plan9-mips': '1.0.0', '@tool/plan9-mips': '1.0.0', 'tool-linux-x64-gnu': '1.0.0' };
  const has = (name: string) => existsSync(join(folder, 'node_modules', name, 'package.json'));
  const ensure = async (published: readonly string[], areGood = true): Promise<Ended> => {
    writeProject(binaries);
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'x', devDependencies: { tool: '1.0.0' } }));
    mkdirSync(join(folder, 'node_modules/tool'), { recursive: true });
    writeFileSync(join(folder, 'node_modules/tool/package.json'), '{ "name": "tool", "version": "1.0.0" }');
    await using registry = await startFakeRegistry(['tool@1.0.0', ...published]);
    const archives: Record<string, string | undefined> = {};
    for (const spec of published)
      archives[spec] = areGood ? registry.integrities.get(spec) : `sha512-${'A'.repeat(86)}==`;
    const options = { folder, platform: { os: 'plan9', arch: 'mips', libc: null }, pins: { archives } };
    return await runModule(
      `import { ensurePlatformPackages } from ${scriptUrl('setup.mjs')}; ensurePlatformPackages(${JSON.stringify(options)})`,
      registry.url,
    );
  };

  test('installs them from the registry in exactly the locked version', async () => {
    const { code, stderr } = await ensure(['tool-plan9-mips@1.0.0', '@tool/plan9-mips@1.0.0']);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: 'Installing tool-plan9-mips@1.0.0, @tool/plan9-mips@1.0.0 …\n',
    });
    expect(['tool-plan9-mips', '@tool/plan9-mips', 'tool-linux-x64-gnu'].map(has)).toEqual([true, true, false]);
  });

  test('installs the others and names one that the registry lacks', async () => {
    const { code, stderr } = await ensure(['@tool/plan9-mips@1.0.0']);
    expect(code).toBe(0);
    expect(stderr.split('\n')[1]).toMatch(
      /^tool cannot run here without its binary tool-plan9-mips@1.0.0: its hash is not in .*pinned.json: add it with "npm run pin -- tool-plan9-mips@1.0.0"$/,
    );
    expect(['tool-plan9-mips', '@tool/plan9-mips'].map(has)).toEqual([false, true]);
  });

  test('installs nothing that has another hash than the pinned one', async () => {
    const { code, stderr } = await ensure(['tool-plan9-mips@1.0.0'], false);
    expect(code).toBe(0);
    expect(stderr).toContain('its archive has the hash sha512-');
    expect(readdirSync(join(folder, 'node_modules'))).toEqual(['tool']);
  });
});

describe('a bundler that cannot run', () => {
  const buildWith = (isOptional: boolean) => {
    const failing = join(folder, 'failing.mjs');
    writeFileSync(failing, 'throw new Error("Cannot find native binding")');
    const scripts = Object.fromEntries(['browser', 'dashboard', 'docs'].map((name) => [name, failing]));
    return runModule(
      `import { buildPages } from ${scriptUrl('build.mjs')};` +
        `await buildPages({ force: true, isOptional: ${isOptional}, scripts: ${JSON.stringify(scripts)} }); console.log('goes on')`,
    );
  };

  test('npm start runs without the pages, says so in a sentence each, and leaves those of an earlier build', async () => {
    const { code, stdout, stderr } = await buildWith(true);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'goes on\n' });
    expect(
      stderr
        .split('\n')
        .filter((line) => !line.endsWith('…'))
        .toSorted(),
    ).toEqual([
      '',
      'The dashboard was not built because vite failed (npm run build shows why); the server runs without it.',
      'The documentation was not built (npm run build shows why); the server runs without it.',
      'ruvllm/browser was not built because the bundler failed (npm run build shows why).',
    ]);
    expect(readdirSync(join(root, 'dist')).filter((name) => name.startsWith('.'))).toEqual([]);
  });

  test('npm run build fails', async () => {
    const { code, stdout, stderr } = await buildWith(false);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('Cannot find native binding');
  });
});

describe('two builds at once', () => {
  const lock = () => join(folder, 'setup.lock');
  const hold = (ms: number) =>
    runModule(
      `import { withLock } from ${scriptUrl('lock.mjs')};` +
        `await withLock(${JSON.stringify(lock())}, async () => { const from = Date.now(); await new Promise((go) => setTimeout(go, ${ms})); console.log(JSON.stringify([from, Date.now()])) })`,
    );

  test('take turns, and the second one says whom it waits for', async () => {
    const [one, two] = await Promise.all([hold(700), hold(700)]);
    const spans = [one, two].map(({ stdout }) => JSON.parse(stdout) as [number, number]).toSorted(([a], [b]) => a - b);
    expect(spans[1]![0]).toBeGreaterThanOrEqual(spans[0]![1]);
    expect(one.stderr + two.stderr).toMatch(/^Waiting for process \d+, which is building in this folder …\n$/);
    expect(existsSync(lock())).toBe(false);
  });

  test('the lock of a killed process is taken over', async () => {
    writeFileSync(lock(), '2147483646');
    expect(await hold(0)).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('a checkout that cannot be written', () => {
  // Root may write everywhere, so the scripts run as another user.
  const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  const start = (checkout: string): Promise<Ended> => {
    for (const path of [folder, checkout]) chmodSync(path, path === folder ? 0o755 : 0o555);
    return new Promise((resolve) => {
      const args = [join(checkout, 'scripts/run.mjs'), 'start'];
      execFile(process.execPath, args, { ...user, cwd: '/', encoding: 'utf8' }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
      );
    });
  };
  const copy = (): string => {
    const checkout = join(folder, 'checkout');
    for (const name of ['scripts', 'bin', 'src/hub/default-models.ts', 'package.json', 'package-lock.json']) {
      cpSync(join(root, name), join(checkout, name), { recursive: true });
    }
    return checkout;
  };

  test.skipIf(process.platform === 'win32')('is rejected with one sentence before npm runs', async () => {
    const checkout = copy();
    const { code, stderr } = await start(checkout);
    chmodSync(checkout, 0o755);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr:
        `error: ${join(checkout, 'node_modules')} cannot be written (EACCES), and the dependencies must be installed there\n` +
        'next: make it writable for this user, or work in a copy of the folder\n',
    });
  });

  test.skipIf(process.platform === 'win32')('with everything installed, so is the build', async () => {
    const checkout = copy();
    mkdirSync(join(checkout, 'node_modules'));
    writeFileSync(join(checkout, 'node_modules/.package-lock.json'), '{}');
    const { code, stderr } = await start(checkout);
    chmodSync(checkout, 0o755);
    expect(code).toBe(1);
    expect(stderr.split('\n')[0]).toBe(
      `error: ${join(checkout, 'dist')} cannot be written (EACCES), and the library must be built there`,
    );
  });
});
