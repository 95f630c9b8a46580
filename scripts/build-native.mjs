// npm run build:native: the C kernel pack, once per instruction set, into prebuilds/PLATFORM-ARCH[-musl]. Other commands compile only the
// build that this processor runs. Optional: without a compiler WASM is used.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'; // prettier-ignore
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { currentPlatform } from './platform-packages.mjs';
import { root } from './setup.mjs';
import { describePrebuilds } from './supply-chain/prebuilds.mjs';

/** Compiler flags by build; src/platform/node/kernels/native-addon.ts has the required processor features. */
export const BUILD_FLAGS = {
  x64: {
    baseline: [],
    avx2: ['-mavx2', '-mfma', '-mf16c'],
    avx2vnni: ['-mavx2', '-mfma', '-mf16c', '-mavxvnni'],
    // Not icelake-server: its byte permutes (VBMI) crash on Cascade Lake, which has VNNI but not VBMI.
    avx512vnni: ['-march=cascadelake', '-mtune=icelake-server', '-mprefer-vector-width=512'],
    amx: ['-march=cascadelake', '-mtune=icelake-server', '-mprefer-vector-width=512', '-mamx-tile', '-mamx-int8'],
  },
  arm64: {
    baseline: [],
    dotprod: ['-march=armv8.2-a+dotprod'],
    // Not armv8.6-a: Neoverse V1 has i8mm but not all of 8.5 and 8.6.
    i8mm: ['-march=armv8.2-a+dotprod+i8mm'],
  },
};
/** The feature that a build needs, where it has another name. */
const FEATURES = { avx2vnni: 'avxvnni' };
/** The smallest addon; it says which builds this processor runs. */
const FEATURES_BUILD = {
  name: 'features',
  inputs: ['features-addon.c', 'platform-features.c'],
  flags: ['-DFEATURES_ONLY'],
};
/** A compiler that is stuck must not hold the command that waits for it. */
const COMPILE_TIMEOUT_MS = 180_000;
const FLAGS = '-O3 -std=gnu11 -fPIC -shared -fvisibility=hidden -fno-math-errno -fno-trapping-math -ffp-contract=fast';
/** Node's functions are resolved at load time: by default on Linux, by a flag on macOS, by our own code on Windows. */
const LINK_FLAGS = { linux: ['-lpthread', '-lm'], darwin: ['-Wl,-undefined,dynamic_lookup'], win32: [] };
const COMPILER_HINTS = { linux: 'apt-get install gcc libc6-dev', darwin: 'xcode-select --install' };
/** One header of each kind the sources include. */
const SYSTEM_HEADERS = ['stdlib.h', 'math.h', 'stdatomic.h'].flatMap((header) => ['-include', header]);
const AT_ONCE = 2;

/** The builds of a platform: AMX needs a permission that only Linux grants. */
export function buildsOf(platform, arch, flags = BUILD_FLAGS) {
  const builds = Object.entries(flags[arch] ?? {}).filter(([build]) => build !== 'amx' || platform === 'linux');
  return Object.fromEntries(builds);
}

/** The folder of prebuilds/; src/platform/node/kernels/native-addon.ts looks there. */
export const prebuildName = (platform, arch, libc) => `${platform}-${arch}${libc === 'musl' ? '-musl' : ''}`;

/** Node-API's headers: the pinned package first, so that a system without Node's headers builds the same binary. */
const HEADERS = [
  join(root, 'node_modules/node-api-headers/include'),
  join(dirname(process.execPath), '../include/node'),
  '/usr/include/node',
  '/usr/local/include/node',
];

/** Runs a command without a shell; a missing command has status 127, as in one. */
function capture(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, timeout: COMPILE_TIMEOUT_MS, killSignal: 'SIGKILL' });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (output += text));
    child.on('error', (error) => resolve({ status: 127, output: error.message }));
    child.on('close', (status, signal) => {
      if (signal !== null) output += `\n${command} was stopped by ${signal}`;
      resolve({ status: status ?? 1, output });
    });
  });
}

/** Hash of all inputs of a binary: compiler, flags and sources. */
function hashOf(parts, sources, files) {
  const hash = createHash('sha256').update(JSON.stringify(parts));
  for (const file of files) hash.update(`\0${file}\0`).update(readFileSync(join(sources, file)));
  return hash.digest('hex');
}

/** The stamp has the size and time of a binary, so that a file copied by hand is not taken for ours. */
const identity = (file) => (existsSync(file) ? `${statSync(file).size} ${statSync(file).mtimeMs}` : 'none');

/** What this processor has, as the addon of the features says; null: it cannot be loaded. */
function readFeatures(file) {
  try {
    return createRequire(import.meta.url)(file).cpuFeatures();
  } catch {
    return null;
  }
}

/** The names of `builds` that a processor runs, best first. */
function fittingBuilds(builds, features) {
  return Object.keys(builds)
    .filter((build) => build === 'baseline' || features.includes(FEATURES[build] ?? build))
    .toReversed();
}

/** Writes what each native file is, and from which sources: the same record as in the package. */
function recordProvenance(places) {
  const file = join(places.prebuilds, 'provenance.json');
  const text = describePrebuilds(places);
  try {
    if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text);
  } catch (error) {
    // A checkout that belongs to somebody else has the record of its owner.
    if (error.code !== 'EACCES' && error.code !== 'EROFS') throw error;
  }
}

/**
 * Builds outdated files, two at a time; with `only: 'best'` no more than the best one that runs here. `unavailable`: this machine has no compiler or headers, which is not a failure; `failed`: the
 * compiler rejected our sources. Both have a message.
 */
export async function buildNative({
  platform = process.platform,
  arch = process.arch,
  libc = currentPlatform().libc,
  sources = join(root, 'src/kernels/native/c'),
  out = join(root, 'prebuilds'),
  stamps = join(root, '.cache/native'),
  headers = HEADERS.find((folder) => existsSync(join(folder, 'node_api.h'))),
  compiler = process.env.CC || 'cc',
  builds = buildsOf(platform, arch),
  only = 'all',
  findFeatures = readFeatures,
  log = (line) => console.error(line),
} = {}) {
  const unavailable = (message) => ({ state: 'unavailable', message, built: [] });
  const link = LINK_FLAGS[platform];
  if (link === undefined || Object.keys(builds).length === 0)
    return unavailable(`no native build for ${platform}-${arch}`);
  if (headers === undefined) return unavailable('no Node-API headers: npm install');
  const [command, ...prefix] = compiler.split(' ');
  const version = await capture(command, [...prefix, '--version']);
  if (version.status !== 0)
    return unavailable(
      `no C compiler (${compiler}): for example, ${COMPILER_HINTS[process.platform] ?? COMPILER_HINTS.linux}`,
    );

  const name = prebuildName(platform, arch, libc);
  const folder = join(out, name);
  const files = readdirSync(sources).sort();
  const built = [];
  const failures = [];

  const describeJob = (build, flags, inputs) => {
    const target = join(folder, `ruvllm-${build}.node`);
    const stamp = join(stamps, `${name}-${build}`);
    const hash = hashOf([version.output, FLAGS, link, flags, headers], sources, files);
    return { build, flags, target, stamp, hash, inputs: inputs.map((file) => join(sources, file)) };
  };
  const ready = () => {
    recordProvenance({ prebuilds: out, stamps, sources });
    return { state: 'ready', message: null, built };
  };
  const all = files.filter((file) => file.endsWith('.c'));
  const jobs = Object.entries(builds).map(([build, flags]) => describeJob(build, flags, all));
  const features = describeJob(FEATURES_BUILD.name, FEATURES_BUILD.flags, FEATURES_BUILD.inputs);
  const isCurrent = ({ stamp, hash, target }) =>
    existsSync(stamp) && readFileSync(stamp, 'utf8') === `${hash} ${identity(target)}`;
  const outdated = jobs.filter((job) => !isCurrent(job));
  if (outdated.length === 0) return ready();
  const findBest = () => {
    const names = fittingBuilds(builds, (existsSync(features.target) && findFeatures(features.target)) || []);
    // A build that this compiler cannot make has a stamp, but no file.
    return names.map((build) => jobs.find((job) => job.build === build)).find((job) => !isCurrent(job) || existsSync(job.target)); // prettier-ignore
  };
  if (only === 'best' && isCurrent(features)) {
    const best = findBest();
    if (best === undefined || isCurrent(best)) return ready();
  }
  try {
    for (const path of [folder, stamps]) {
      mkdirSync(path, { recursive: true });
      accessSync(path, constants.W_OK);
    }
  } catch (error) {
    return unavailable(`${folder} cannot be written (${error.code})`);
  }
  // A compiler without C library headers is as common as no compiler, and not the sources' fault.
  const { status, output } = await capture(command, [...prefix, ...SYSTEM_HEADERS, '-E', '-x', 'c', '/dev/null']);
  if (status !== 0) {
    const reason = output.trim().split('\n').find((line) => line.includes('error')) ?? 'no reason given'; // prettier-ignore
    return unavailable(`${compiler} has no C library headers (${reason}): for example, apt-get install libc6-dev`);
  }

  const buildOne = async ({ build, flags, target, stamp, hash, inputs }) => {
    // From here on the old binary belongs to other sources, whose records this version may not read.
    rmSync(target, { force: true });
    const probe = await capture(command, [...prefix, ...flags, '-E', '-x', 'c', '/dev/null']);
    if (probe.status === 0) {
      if (build !== FEATURES_BUILD.name) log(`Compiling native kernels for ${build} …`);
      // A temporary name, then a rename: no process loads half a file, and two concurrent builds do no harm.
      const partial = `${target}.${process.pid}.tmp`;
      const args = [...FLAGS.split(' '), ...flags, `-I${headers}`, ...inputs, '-o', partial, ...link];
      const { status, output } = await capture(command, [...prefix, ...args]);
      if (status !== 0) {
        rmSync(partial, { force: true });
        failures.push(build);
        log(output.trimEnd());
        return;
      }
      if (output !== '') log(output.trimEnd());
      renameSync(partial, target);
      if (build !== FEATURES_BUILD.name) built.push(build);
    } else {
      log(`native kernels: no ${build} build, this compiler does not support ${flags.join(' ')}`);
    }
    writeFileSync(stamp, `${hash} ${identity(target)}`);
  };

  if (only === 'best') {
    if (!isCurrent(features)) await buildOne(features);
    // Their sources have changed: this version may not read their records.
    for (const { target } of outdated) rmSync(target, { force: true });
    for (let best = findBest(); best !== undefined && !isCurrent(best); best = findBest()) {
      await buildOne(best);
      if (failures.length > 0) break;
    }
  } else {
    const queue = [...outdated];
    const worker = async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) await buildOne(next);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  }
  if (failures.length > 0) return { state: 'failed', message: `${compiler} failed on: ${failures.join(', ')}`, built };
  return ready();
}

/** For commands that work without native kernels: builds the best one; reports in one line why there is none. */
export async function tryBuildNative({ only = 'best' } = {}) {
  const result = await buildNative({ only }).catch((error) => ({ state: 'failed', message: error.message, built: [] }));
  if (result.state !== 'ready') console.error(`native kernels are not built, WASM is used: ${result.message}`);
  return result;
}

if (process.argv[1] && import.meta.filename === process.argv[1]) {
  const { state, message } = await buildNative();
  if (state !== 'ready') {
    console.error(`error: ${message}`);
    process.exitCode = 1;
  }
}
