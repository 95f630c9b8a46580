// npm run bench -- start [--quick]: from a clone to the first answer, and what the package, a command and an idle server weigh.
// --quick leaves out the clones and the minutes of idleness. Prints one line of JSON.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { median } from './support/report.ts';
import { measureServerMemory } from './support/server-memory.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const model = join(root, '../shared/models/stories260K-f32.gguf');
const isQuick = process.argv.includes('--quick');
const RUNS = 5;
const PORT = 18_733;
const log = (line: string): void => console.error(line);

/** Processor time of a whole Node process in milliseconds: the median of several. */
function processorMs(args: readonly string[]): number {
  const report = `process.on('exit', () => { const { user, system } = process.cpuUsage(); process.stderr.write('CPU ' + (user + system)); })`;
  const times = Array.from({ length: RUNS }, () => {
    const watched = ['--import', `data:text/javascript,${encodeURIComponent(report)}`, ...args];
    const { stderr } = spawnSync(watched);
    return Number(/CPU (\d+)/.exec(stderr)![1]) / 1000;
  });
  return median(times);
}

function spawnSync(args: readonly string[]): { stderr: string } {
  const script = `const r = require('node:child_process').spawnSync(process.execPath, ${JSON.stringify(args)}, { encoding: 'utf8' }); console.log(JSON.stringify({ status: r.status, stderr: r.stderr }))`;
  const { status, stderr } = JSON.parse(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' })) as { status: number; stderr: string }; // prettier-ignore
  if (status !== 0) throw new Error(`${args.at(-1)} ended with ${status}: ${stderr}`);
  return { stderr };
}

/** Milliseconds that importing `serve` adds to a Node process. */
function importServeMs(): number {
  const folder = join(root, 'dist/lib');
  const name = readdirSync(folder).find((file) => file.startsWith('command-serve-'))!;
  const code = `await import(${JSON.stringify(pathToFileURL(join(folder, name)).href)})`;
  return processorMs(['--input-type=module', '-e', code]) - processorMs(['--input-type=module', '-e', '0']);
}

/** Files and size of what npm publishes. */
function measurePackage(): { package_mb: number; package_files: number } {
  execFileSync(process.execPath, ['scripts/run.mjs', 'prepack'], { cwd: root, stdio: ['ignore', 'ignore', 'ignore'] });
  const text = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts', '--loglevel=silent'], { cwd: root, encoding: 'utf8' }); // prettier-ignore
  const [{ unpackedSize, entryCount }] = JSON.parse(text) as [{ unpackedSize: number; entryCount: number }];
  return { package_mb: unpackedSize / 1e6, package_files: entryCount };
}

interface Started {
  readonly seconds: number;
  stop(): Promise<void>;
}

/** Runs `npm start` in a clone until it has answered a chat. */
async function start(clone: string, home: string): Promise<Started> {
  const begin = performance.now();
  const env = { PATH: process.env['PATH'], HOME: home, LANG: 'C.UTF-8' };
  const child = spawn('npm', ['start', '--', '--port', String(PORT)], { cwd: clone, env, stdio: ['ignore', 'ignore', 'pipe'], detached: true }); // prettier-ignore
  let errors = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-4000)));
  const ended = new Promise((resolve) => child.once('exit', resolve));
  for (;;) {
    if (child.exitCode !== null) throw new Error(`npm start ended with ${child.exitCode}: ${errors}`);
    if (await answers()) break;
    await sleep(100);
  }
  const seconds = (performance.now() - begin) / 1000;
  return { seconds, stop: () => stopGroup(child, ended) };
}

async function stopGroup(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  process.kill(-child.pid!, 'SIGINT');
  const timer = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), 30_000);
  await ended;
  clearTimeout(timer);
}

async function answers(): Promise<boolean> {
  const body = JSON.stringify({ messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 1 });
  const headers = { 'content-type': 'application/json' };
  try {
    return (await fetch(`http://127.0.0.1:${PORT}/v1/chat/completions`, { method: 'POST', headers, body })).ok;
  } catch {
    return false;
  }
}

/** Seconds from nothing to an answer, with and without the download of the model, and again in the same clone. */
async function measureClones(): Promise<Record<string, number>> {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm start bänch '));
  try {
    const clone = (name: string): string => {
      execFileSync('git', ['clone', '--quiet', root, join(folder, name)]);
      return join(folder, name);
    };
    const homes = ['first', 'second'].map((name) => join(folder, name));
    for (const home of homes) mkdirSync(home);
    log('a fresh clone and a fresh home …');
    const first = await start(clone('one'), homes[0]!);
    await first.stop();
    // The second home has the model, and nothing else: neither npm's cache nor the encoder.
    const [from, to] = homes.map((home) => join(home, '.cache/huggingface/hub'));
    for (const name of readdirSync(from!).filter((entry) => entry.startsWith('models--') && !entry.includes('--@'))) {
      cpSync(join(from!, name), join(to!, name), { recursive: true, verbatimSymlinks: true });
    }
    log('a fresh clone, and a home with the model …');
    const two = clone('two');
    const second = await start(two, homes[1]!);
    await sleep(60_000); // what is built behind the first answer
    await second.stop();
    log('the same clone again …');
    const third = await start(two, homes[1]!);
    await third.stop();
    return {
      first_start_s: first.seconds,
      clone_to_answer_s: second.seconds,
      model_download_s: first.seconds - second.seconds,
      second_start_s: third.seconds,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function idleMb(embedder: readonly string[]): Promise<number> {
  const { rssMb } = await measureServerMemory({ model, flags: embedder, idleMs: isQuick ? 5000 : 60_000 });
  return rssMb;
}

const figures: Record<string, number> = {
  ...(isQuick ? {} : await measureClones()),
  version_ms: processorMs([join(root, 'bin/ruvllm.mjs'), '--version']),
  import_serve_ms: importServeMs(),
  ...measurePackage(),
};
if (existsSync(model)) {
  figures['idle_rss_mb'] = await idleMb(['--memory-embedder', 'static']);
  if (!isQuick) figures['idle_rss_encoder_mb'] = await idleMb([]);
} else log(`idle_rss_mb is left out: ${model} does not exist`);
const rounded = Object.entries(figures).map(([name, value]) => [name, Number(value.toFixed(value < 100 ? 1 : 0))]);
console.log(JSON.stringify({ arch: process.arch, node: process.versions.node, ...Object.fromEntries(rounded) }));
