// A disk that fails at the n-th call. The driver in WebAssembly calls `node:fs` for everything, so that is where it happens.
import { createRequire } from 'node:module';
import * as nodeFiles from 'node:fs';
import type { Files } from '../sealing/atomic-files.ts';

type Calls = Record<string, (...args: never[]) => unknown>;
// What `require` gives is what the driver holds; our own sources hold the exports of the module, which stay as they are.
const driverFiles = createRequire(import.meta.url)('node:fs') as Calls;

export type Fault = 'I/O error' | 'short write' | 'full disk';
/** `once`: the next call is as always. `from`: all later ones fail too. */
export type Persistence = 'once' | 'from';

const WATCHED = [
  'writeSync',
  'fsyncSync',
  'readSync',
  'ftruncateSync',
  'openSync',
  'fstatSync',
  'unlinkSync',
  'closeSync',
];
const CODES: Record<Fault, string> = { 'I/O error': 'EIO', 'short write': 'EIO', 'full disk': 'ENOSPC' };

export interface FaultyDisk {
  numCalls: number;
  /** For what the store itself asks of the disk. */
  readonly files: Files;
  heal(): void;
}

function fail(code: string): never {
  throw Object.assign(new Error(`${code}: planted`), { code });
}

/** A full disk still reads and flushes; a short write is one, and after it the disk is as ill as it is told to be. */
function concerns(fault: Fault, name: string): boolean {
  return (fault === 'I/O error' && name !== 'closeSync') || name === 'writeSync';
}

/** From call `n` on (1 is the next) the disk fails; 0: never, it only counts. */
export function breakDisk(n: number, fault: Fault, persistence: Persistence): FaultyDisk {
  const originals = new Map(WATCHED.map((name) => [name, driverFiles[name]!]));
  let isIll = false;
  /** Others in this process write too. */
  const handles = new Set<unknown>();
  const isOurs = (target: unknown): boolean =>
    typeof target === 'number' ? handles.has(target) : String(target).includes('memory.db');
  const note = (name: string, result: unknown, [target]: readonly unknown[]): unknown => {
    if (name === 'openSync' && isOurs(target)) handles.add(result);
    if (name === 'closeSync') handles.delete(target);
    return result;
  };
  const disk: FaultyDisk = {
    numCalls: 0,
    files: {
      ...nodeFiles,
      openSync: (...args) => driverFiles['openSync']!(...(args as unknown as never[])) as number,
      fdatasync: ((handle: number, done: (error: Error | null) => void) => {
        if (isHit('fdatasync', handle)) done(Object.assign(new Error('EIO: planted'), { code: CODES[fault] }));
        else nodeFiles.fdatasync(handle, done);
      }) as Files['fdatasync'],
      writeFileSync: ((...args: Parameters<Files['writeFileSync']>) => {
        if (isIll && fault === 'full disk') fail('ENOSPC');
        nodeFiles.writeFileSync(...args);
      }) as Files['writeFileSync'],
    },
    heal() {
      isIll = false;
      n = 0;
      for (const [name, call] of originals) driverFiles[name] = call;
    },
  };
  /** Counts a call that the fault concerns. */
  function isHit(name: string, target: unknown): boolean {
    if (!isOurs(target) || !concerns(fault, name)) return false;
    disk.numCalls++;
    return (isIll = n > 0 && (persistence === 'once' ? disk.numCalls === n : disk.numCalls >= n));
  }
  for (const name of WATCHED) {
    const call = originals.get(name)!;
    driverFiles[name] = (...args: never[]) => {
      if (!isHit(name, args[0]!)) return note(name, call(...args), args);
      if (fault !== 'short write') return fail(CODES[fault]);
      const [handle, bytes, offset, length, position] = args as unknown as [number, Uint8Array, number, number, number];
      return call(...([handle, bytes, offset, length >> 1, position] as never[]));
    };
  }
  return disk;
}
