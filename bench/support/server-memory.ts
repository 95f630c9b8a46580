// The resident memory of an idle server. Run with `MODEL [flags of serve]` it prints it.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export interface ServerMemory {
  /** Of the process, after the idle time. */
  readonly rssMb: number;
  /** V8's heaps, committed; everything else is weights, KV pages, WebAssembly, SQLite and Node itself. */
  readonly threads: readonly { readonly name: string; readonly heapMb: number; readonly usedMb: number }[];
  /** User and system time of the process until it was idle, in seconds. */
  readonly cpuSeconds: number;
}

export interface ServerMemoryOptions {
  readonly model: string;
  /** Further flags of `ruvllm serve`. */
  readonly flags?: readonly string[];
  readonly numChats?: number;
  readonly idleMs?: number;
}

const MB = 2 ** 20;
const command = fileURLToPath(new URL('../../bin/ruvllm.mjs', import.meta.url.replace('/.cache/tools/', '/')));

interface HeapReport {
  readonly header: { readonly event: string; readonly trigger: string };
  readonly javascriptHeap: { readonly totalCommittedMemory: number; readonly usedMemory: number };
  readonly resourceUsage?: { readonly userCpuSeconds: number; readonly kernelCpuSeconds: number };
  readonly workers?: readonly HeapReport[];
}

/** Starts a server with data of its own, sends chats, waits, and reads what its process has. */
export async function measureServerMemory(options: ServerMemoryOptions): Promise<ServerMemory> {
  const { model, flags = [], numChats = 10, idleMs = 60_000 } = options;
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-memory-'));
  const reports = ['--report-on-signal', '--report-signal=SIGUSR2', `--report-directory=${folder}`];
  const args = [...reports, command, 'serve', model, '--port', '0', '--json', ...flags];
  const environment = {
    ...process.env,
    RUVLLM_DATA_DIR: join(folder, 'data'),
    RUVLLM_STATE_DIR: join(folder, 'state'),
  };
  const child = spawn(process.execPath, args, { env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
  try {
    const { url, models } = await readAddress(child);
    for (let i = 0; i < numChats; i++) {
      const messages = [{ role: 'user', content: `Tell story number ${i} about a ${['dog', 'cat', 'bird'][i % 3]!}.` }];
      const body = JSON.stringify({ model: models[0], messages, max_tokens: 32 });
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body });
      const text = await response.text();
      if (!response.ok) throw new Error(`chat ${i}: ${response.status} ${text}`);
    }
    await sleep(idleMs);
    const rssMb = residentBytes(child.pid!) / MB; // before the report, which allocates
    const report = await readReport(child, folder);
    const { userCpuSeconds = 0, kernelCpuSeconds = 0 } = report.resourceUsage ?? {};
    return {
      rssMb,
      threads: [report, ...(report.workers ?? [])].map(rowOf),
      cpuSeconds: userCpuSeconds + kernelCpuSeconds,
    };
  } finally {
    child.kill('SIGTERM');
    await new Promise((resolve) => (child.exitCode === null ? child.once('exit', resolve) : resolve(null)));
    rmSync(folder, { recursive: true, force: true });
  }
}

async function readAddress(child: ChildProcess): Promise<{ url: string; models: string[] }> {
  let [output, errors] = ['', ''];
  child.stderr!.setEncoding('utf8').on('data', (part: string) => (errors += part));
  return new Promise((resolve, reject) => {
    child.stdout!.setEncoding('utf8').on('data', (part: string) => {
      output += part;
      if (output.includes('\n')) resolve(JSON.parse(output) as { url: string; models: string[] });
    });
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}: ${errors}`)));
  });
}

function residentBytes(pid: number): number {
  if (process.platform !== 'linux') return 1024 * Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)]));
  return 1024 * Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]);
}

async function readReport(child: ChildProcess, folder: string): Promise<HeapReport> {
  child.kill('SIGUSR2');
  for (;;) {
    await sleep(100);
    const name = readdirSync(folder).find((file) => file.startsWith('report.'));
    try {
      if (name !== undefined) return JSON.parse(readFileSync(join(folder, name), 'utf8')) as HeapReport;
    } catch {
      // not written to its end
    }
  }
}

const rowOf = ({ header, javascriptHeap }: HeapReport, i: number) => ({
  name: i === 0 ? 'main' : (/\[(.*)\]/.exec(header.event + header.trigger)?.[1] ?? `worker ${i}`),
  heapMb: javascriptHeap.totalCommittedMemory / MB,
  usedMb: javascriptHeap.usedMemory / MB,
});

if (process.argv[1] !== undefined && import.meta.url.endsWith(process.argv[1].split(/[\\/]/).at(-1)!)) {
  const [model, ...rest] = process.argv.slice(2);

  const { rssMb, threads, cpuSeconds } = await measureServerMemory({ model: model!, flags: rest });
  for (const { name, heapMb, usedMb } of threads)
    console.log(`${name.padEnd(24)} heap ${heapMb.toFixed(1)} MB, used ${usedMb.toFixed(1)} MB`);
  console.log(`resident ${rssMb.toFixed(0)} MB, processor time ${cpuSeconds.toFixed(1)} s`);
}
