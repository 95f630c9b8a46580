// npm run test:emulated [-- ARCH [BUILD …]]: the kernel contract suite on prebuilds that this processor cannot run, with qemu
// processors that have exactly what each build needs. Not part of npm test: it takes many minutes and uncommon tools. ARCH is x64 or
// arm64; default: the one this machine is not.
import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { buildPrebuilds, TARGETS } from './build-prebuilds.mjs';
import { ensureInstalled, nodeTool, root, run, runOrExit } from './setup.mjs';

/**
 * The minimal qemu processor for a build: any further instruction ends the test. AVX-VNNI, AVX-512 and AMX are missing, because qemu
 * has none of them.
 */
const ARCHITECTURES = {
  x64: {
    emulator: 'qemu-x86_64',
    system: '/usr/x86_64-linux-gnu',
    packages: 'libc6-amd64-cross libstdc++6-amd64-cross',
    processors: {
      baseline: { name: 'Nehalem', features: [] },
      // Without features that qemu lacks and would warn about in each thread.
      avx2: { name: 'Haswell,-pcid,-x2apic,-tsc-deadline,-hle,-invpcid,-rtm', features: ['avx2'] },
    },
  },
  arm64: {
    emulator: 'qemu-aarch64',
    system: '/usr/aarch64-linux-gnu',
    packages: 'libc6-arm64-cross libstdc++6-arm64-cross',
    processors: {
      baseline: { name: 'cortex-a53', features: [] },
      dotprod: { name: 'neoverse-n1', features: ['dotprod'] },
      i8mm: { name: 'max', features: ['dotprod', 'i8mm'] },
    },
  },
};

const answers = async (command, ...args) => {
  try {
    return (await promisify(execFile)(command, args, { encoding: 'utf8' })).stdout.trim();
  } catch {
    return null;
  }
};

/** How to run an architecture's programs. This machine's own needs neither another Node nor another C library. */
function describeMachine(arch) {
  const { emulator, system, packages, processors } = ARCHITECTURES[arch];
  const folder = join(root, '.cache/emulated', arch);
  if (arch === process.arch)
    return { arch, folder, emulator, system: '/', packages, processors, node: process.execPath };
  const node = process.env.EMULATED_NODE || join(folder, 'package/bin/node');
  return { arch, folder, emulator, system, packages, processors, node };
}

const emulated = ({ system, node }, processor) => ['-L', system, '-cpu', processor, node];

async function findMissing(machine) {
  const { arch, emulator, system, packages, node } = machine;
  const missing = [];
  if ((await answers(emulator, '--version')) === null) missing.push(`${emulator}: apt-get install qemu-user`);
  if (system !== '/' && !existsSync(join(system, 'lib/libstdc++.so.6')))
    missing.push(`${system}/lib/libstdc++.so.6: apt-get install ${packages}`);
  if (!existsSync(node))
    missing.push(
      `Node for ${arch} at ${node} (or EMULATED_NODE): mkdir -p .cache/emulated/${arch} && cd .cache/emulated/${arch} && ` +
        `npm pack node-linux-${arch}@20.20.2 && tar xzf node-linux-${arch}-*.tgz`,
    );
  if (missing.length === 0 && (await answers(emulator, ...emulated(machine, 'max'), '--version')) === null)
    missing.push(`${emulator} cannot run ${node}: a Node that needs a newer C library than ${system} has?`);
  return missing;
}

/** The suite and its imports as JavaScript, beside a portable `vitest`. */
function compileSuite(folder, out) {
  mkdirSync(join(out, 'node_modules/vitest'), { recursive: true });
  const config = {
    extends: '../../../tsconfig.json',
    compilerOptions: { rootDir: '../../..', outDir: 'out', declaration: false, sourceMap: false },
    include: ['../../../src/kernels/native/*.ts'],
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

function testBuild(machine, build, out) {
  const { arch, emulator, processors } = machine;
  const { name, features } = processors[build];
  console.log(`${arch} ${build} on ${name} …`);
  const addon = JSON.stringify(join(out, `prebuilds/linux-${arch}/ruvllm-baseline.node`));
  const check = `const names = require(${addon}).cpuFeatures().join(); if (names !== '${features.join()}') throw new Error('features: ' + names)`;
  const suite = join(out, 'src/kernels/native/native-pack.test.js');
  const env = { ...process.env, RUVLLM_NATIVE_BUILD: build, PLAIN_VITEST_PREFIX: `native ${build} > ` };
  return [['-e', check], [suite]].every((args) => run(emulator, [...emulated(machine, name), ...args], { env }) === 0);
}

async function main() {
  const [arch = process.arch === 'arm64' ? 'x64' : 'arm64', ...names] = process.argv.slice(2);
  if (ARCHITECTURES[arch] === undefined) {
    console.error(
      `usage: npm run test:emulated -- ARCH [BUILD …], ARCH one of: ${Object.keys(ARCHITECTURES).join(', ')}`,
    );
    return 2;
  }
  const machine = describeMachine(arch);
  const builds = Object.keys(machine.processors).filter((build) => names.length === 0 || names.includes(build));
  ensureInstalled();
  const missing = await findMissing(machine);
  if (missing.length > 0) {
    console.error(`test:emulated cannot run here. Missing:\n${missing.map((line) => `  ${line}`).join('\n')}`);
    return 2;
  }
  const out = join(machine.folder, 'out');
  compileSuite(machine.folder, out);
  const targets = TARGETS.filter((target) => target.arch === arch && target.libc === 'glibc');
  const problems = await buildPrebuilds({
    targets,
    out: join(out, 'prebuilds'),
    stamps: join(machine.folder, 'stamps'),
  });
  for (const problem of problems) console.error(`error: ${problem}`);
  if (problems.length > 0) return 1;
  const failed = builds.filter((build) => !testBuild(machine, build, out));
  console.log(failed.length === 0 ? `${arch}: ${builds.join(', ')} passed` : `${arch}: FAILED: ${failed.join(', ')}`);
  return failed.length === 0 ? 0 : 1;
}

process.exitCode = await main();
