// A disk that fails at one call of all that a memory makes: of the driver in WebAssembly, and of our own sources (keys, indexes, segments).
import { createRequire } from 'node:module';
import * as nodeFiles from 'node:fs';
import type { Files } from '../sealing/atomic-files.ts';
import type { Fault, Persistence } from './faults.contract.ts';

type Call = (...args: never[]) => unknown;
type Calls = Record<string, Call>;
const driverFiles = createRequire(import.meta.url)('node:fs') as Calls;

/** What can fail, and which of it a full disk refuses. */
const WATCHED = ['openSync', 'writeSync', 'writevSync', 'writeFileSync', 'fsyncSync', 'fdatasyncSync', 'fdatasync', 'ftruncateSync', 'readSync', 'renameSync', 'linkSync', 'rmSync', 'unlinkSync', 'mkdirSync']; // prettier-ignore
const GROWING = new Set(['writeSync', 'writevSync', 'writeFileSync', 'mkdirSync', 'linkSync']);
const SHORTENED = new Set(['writeSync', 'writevSync']);

export interface WatchedDisk {
  readonly files: Files;
  /** By the kind of file and of call, for who wants to see that nothing is left out. */
  readonly counts: Map<string, number>;
  /** Kinds of file that met a fault. */
  readonly hits: Set<string>;
  numCalls: number;
  heal(): void;
}

/** A lock that its living process cannot remove stays until it ends: no other call is about that. */
const isLock = (name: string, target: unknown): boolean => name === 'rmSync' && String(target).includes('owner.lock');

const KINDS: readonly [RegExp, string][] = [
  [/memory\.db/, 'database'],
  [/[/\\]vectors(?:[/\\]|$)/, 'index'],
  [/[/\\]archive(?:[/\\]|$)/, 'archive'],
  [/[/\\]keys(?:[/\\]|$)/, 'keys'],
  [/memory\.json/, 'header'],
];

const concerns = (fault: Fault, name: string): boolean =>
  fault === 'I/O error' || (fault === 'full disk' ? GROWING : SHORTENED).has(name);

/** How many of the calls that were counted, all of them, a fault would meet. */
export function countConcerned(fault: Fault, counts: ReadonlyMap<string, number>): number {
  return [...counts].reduce((sum, [kind, n]) => sum + (concerns(fault, kind.split(' ')[1]!) ? n : 0), 0);
}

/** Call `n` fails (and with `from` all later ones); 0: none, they are counted. Only what is below `folder` counts. */
export function watchDisk(folder: string, n: number, fault: Fault, persistence: Persistence): WatchedDisk {
  const originals = new Map(WATCHED.map((name) => [name, driverFiles[name]!]));
  const paths = new Map<unknown, string>();
  const disk: WatchedDisk = {
    numCalls: 0,
    counts: new Map(),
    hits: new Set(),
    files: null as never,
    heal() {
      disk.numCalls = -Infinity;
      for (const [name, call] of originals) driverFiles[name] = call;
    },
  };
  const watch =
    (name: string, call: Call): Call =>
    (...args: never[]) => {
      const target = args[0] as unknown;
      const path = typeof target === 'number' ? paths.get(target) : String(target);
      const run = (): unknown => {
        const result = call(...args);
        if (name === 'openSync' && path?.startsWith(folder) === true) paths.set(result, path);
        return result;
      };
      if (path?.startsWith(folder) !== true || !concerns(fault, name) || isLock(name, target)) return run();
      disk.numCalls++;
      const kind = KINDS.find(([pattern]) => pattern.test(path))?.[1] ?? 'folder';
      disk.counts.set(`${kind} ${name}`, (disk.counts.get(`${kind} ${name}`) ?? 0) + 1);
      const isHit = n > 0 && (persistence === 'once' ? disk.numCalls === n : disk.numCalls >= n);
      if (!isHit) return run();
      disk.hits.add(kind);
      if (fault === 'short write') return writeHalf(name, call, args);
      const code = fault === 'full disk' ? 'ENOSPC' : 'EIO';
      const error = Object.assign(new Error(`${code}: planted`), { code });
      if (name !== 'fdatasync') throw error;
      (args.at(-1) as unknown as (error: Error) => void)(error);
      return undefined;
    };
  for (const [name, call] of originals) driverFiles[name] = watch(name, call);
  const own = WATCHED.map((name) => [name, watch(name, (nodeFiles as unknown as Calls)[name]!)]);
  Object.assign(disk, { files: { ...nodeFiles, ...Object.fromEntries(own) } });
  return disk;
}

function writeHalf(name: string, call: Call, args: never[]): unknown {
  if (name === 'writeSync') {
    const [handle, bytes, offset, length, position] = args as unknown as [number, Uint8Array, number, number, number];
    return call(...([handle, bytes, offset, Math.max(1, length >> 1), position] as never[]));
  }
  const [handle, [first]] = args as unknown as [number, Uint8Array[]];
  return call(...([handle, [first!.subarray(0, Math.max(1, first!.length >> 1))]] as never[]));
}
