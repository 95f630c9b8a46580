// A disk that can lose its power. It records every call of the store and its driver below a folder, and rebuilds the folder as it
// would be after a power loss at any moment: what was not flushed is gone, or partly there, in any order and torn at sectors.
import * as nodeFiles from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import type { Random } from '../../../core/random.ts';
import type { Files } from '../sealing/atomic-files.ts';

type Call = (...args: never[]) => unknown;
type Calls = Record<string, Call>;
// The driver in WebAssembly holds the result of `require`; our own sources get `files`.
const driverFiles = createRequire(import.meta.url)('node:fs') as Calls;

/** `since`: the event at which the flush began; what was written later is not covered by it. */
type Event =
  | { readonly type: 'write'; readonly inode: number; readonly position: number; readonly bytes: Uint8Array }
  | { readonly type: 'truncate'; readonly inode: number; readonly length: number }
  | { readonly type: 'name'; readonly path: string; readonly inode: number }
  | { readonly type: 'folder'; readonly path: string }
  | { readonly type: 'rename'; readonly from: string; readonly path: string }
  | { readonly type: 'remove'; readonly path: string }
  | { readonly type: 'flush'; readonly inode: number; readonly since: number }
  | { readonly type: 'flush folder'; readonly path: string; readonly since: number }
  | { readonly type: 'acknowledged'; readonly text: string };

/** The fate of writes that were not flushed: all are lost, or each may be lost, kept or torn. */
export type Loss = 'all unflushed' | 'some unflushed';

export interface SimulatedDisk {
  readonly files: Files;
  /** The store has reported this as done. */
  acknowledge(text: string): void;
  /** Right before and right after each flush and each acknowledgement. */
  cuts(): number[];
  acknowledgedBefore(cut: number): Set<string>;
  /** Writes the folder as it is after a power loss before event `cut`. */
  rebuild(cut: number, into: string, loss: Loss, random: Random): void;
  /** Ends the recording. */
  stop(): void;
}

const SECTOR_BYTES = 512;
const WATCHED = ['openSync', 'writeSync', 'writevSync', 'writeFileSync', 'ftruncateSync', 'fsyncSync', 'fdatasyncSync', 'fdatasync', 'renameSync', 'linkSync', 'rmSync', 'unlinkSync', 'rmdirSync', 'mkdirSync'] as const; // prettier-ignore

export function recordDisk(folder: string): SimulatedDisk {
  const events: Event[] = [];
  /** The folder at present: paths relative to it. */
  const inodes = new Map<string, number>();
  const handles = new Map<number, { inode: number; path: string; isFolder: boolean; position: number }>();
  let numInodes = 0;
  const isOurs = (path: unknown): path is string => typeof path === 'string' && (path === folder || path.startsWith(`${folder}/`)); // prettier-ignore
  const short = (path: string): string => relative(folder, path);
  const copy = (bytes: Uint8Array | string): Uint8Array => Uint8Array.from(Buffer.from(bytes as Uint8Array));

  function name(path: string): number {
    const known = inodes.get(path);
    if (known !== undefined) return known;
    inodes.set(path, numInodes);
    events.push({ type: 'name', path, inode: numInodes });
    return numInodes++;
  }
  function write(handle: number, bytes: Uint8Array, position: number | null | undefined): void {
    const file = handles.get(handle);
    if (file === undefined || bytes.length === 0) return;
    events.push({ type: 'write', inode: file.inode, position: position ?? file.position, bytes: copy(bytes) });
    if (position == null) file.position += bytes.length;
  }
  const flush = (handle: number, since: number): void => {
    const file = handles.get(handle);
    if (file === undefined) return;
    events.push(file.isFolder ? { type: 'flush folder', path: file.path, since } : { type: 'flush', inode: file.inode, since }); // prettier-ignore
  };
  const removeName = (path: string): void => {
    const inside = [...inodes.keys()].filter((one) => one === path || one.startsWith(`${path}/`));
    for (const one of inside) inodes.delete(one);
    events.push({ type: 'remove', path });
  };

  /** After the call succeeded. */
  function note(call: string, args: readonly unknown[], result: unknown): void {
    const [target] = args;
    switch (call) {
      case 'openSync': {
        if (!isOurs(target)) return;
        const path = short(target);
        const isFolder = nodeFiles.fstatSync(result as number).isDirectory();
        const inode = isFolder ? -1 : name(path);
        const flags = args[1];
        const isTruncated = flags === 'w' || (typeof flags === 'number' && (flags & nodeFiles.constants.O_TRUNC) !== 0);
        if (isTruncated && !isFolder) events.push({ type: 'truncate', inode, length: 0 });
        handles.set(result as number, { inode, path, isFolder, position: 0 });
        return;
      }
      case 'writeSync': {
        const [handle, bytes, offset, , position] = args as [number, Uint8Array, number?, number?, number?];
        return write(handle, bytes.subarray(offset ?? 0, (offset ?? 0) + (result as number)), position);
      }
      case 'writevSync': {
        const [handle, parts, position] = args as [number, Uint8Array[], number?];
        return write(handle, Buffer.concat(parts).subarray(0, result as number), position);
      }
      case 'writeFileSync': {
        if (!isOurs(target)) return;
        const inode = name(short(target));
        events.push({ type: 'truncate', inode, length: 0 });
        events.push({ type: 'write', inode, position: 0, bytes: copy(args[1] as Uint8Array) });
        return;
      }
      case 'ftruncateSync': {
        const file = handles.get(target as number);
        if (file !== undefined) events.push({ type: 'truncate', inode: file.inode, length: (args[1] as number | undefined) ?? 0 }); // prettier-ignore
        return;
      }
      case 'renameSync': {
        if (!isOurs(target)) return;
        const [from, path] = [short(target), short(args[1] as string)];
        inodes.set(path, inodes.get(from)!);
        inodes.delete(from);
        events.push({ type: 'rename', from, path });
        return;
      }
      case 'linkSync': {
        if (!isOurs(target)) return;
        const path = short(args[1] as string);
        inodes.set(path, inodes.get(short(target))!);
        events.push({ type: 'name', path, inode: inodes.get(path)! });
        return;
      }
      case 'rmSync':
      case 'unlinkSync':
      case 'rmdirSync':
        if (isOurs(target)) removeName(short(target));
        return;
      case 'mkdirSync': {
        if (!isOurs(target)) return;
        const isRecursive = (args[1] as { recursive?: boolean } | undefined)?.recursive === true;
        if (!isRecursive) events.push({ type: 'folder', path: short(target) });
        else if (result !== undefined) {
          const made: string[] = [];
          for (let path = target; path.length >= (result as string).length; path = dirname(path)) made.unshift(path);
          for (const path of made) if (isOurs(path)) events.push({ type: 'folder', path: short(path) });
        }
        return;
      }
      default:
    }
  }

  const watch =
    (call: string, original: Call): Call =>
    (...args: never[]) => {
      const since = events.length;
      if (call === 'fdatasync') {
        const [handle, done] = args as unknown as [number, (error: Error | null) => void];
        return original(
          handle as never,
          ((error: Error | null) => {
            if (error === null) flush(handle, since);
            done(error);
          }) as never,
        );
      }
      const result = original(...args);
      if (call === 'fsyncSync' || call === 'fdatasyncSync') flush(args[0] as number, since);
      else note(call, args, result);
      return result;
    };
  const originals = new Map(WATCHED.map((call) => [call, driverFiles[call]!]));
  for (const [call, original] of originals) driverFiles[call] = watch(call, original);
  const own = WATCHED.map((call) => [call, watch(call, (nodeFiles as unknown as Calls)[call]!)]);

  return {
    files: { ...nodeFiles, ...Object.fromEntries(own) } as Files,
    acknowledge: (text) => void events.push({ type: 'acknowledged', text }),
    cuts() {
      const points = events.flatMap(({ type }, i) => (/flush|acknowledged/.test(type) ? [i, i + 1] : []));
      return [...new Set(points)];
    },
    acknowledgedBefore: (cut) => new Set(events.slice(0, cut).flatMap((event) => (event.type === 'acknowledged' ? [event.text] : []))), // prettier-ignore
    rebuild: (cut, into, loss, random) => rebuild(events.slice(0, cut), into, loss, random),
    stop() {
      for (const [call, original] of originals) driverFiles[call] = original;
    },
  };
}

function rebuild(events: readonly Event[], into: string, loss: Loss, random: Random): void {
  /** Up to which event a file, or the names in a folder, are on disk. */
  const flushed = new Map<number | string, number>();
  for (const event of events) {
    if (event.type === 'flush') flushed.set(event.inode, Math.max(event.since, flushed.get(event.inode) ?? 0));
    if (event.type === 'flush folder') flushed.set(event.path, Math.max(event.since, flushed.get(event.path) ?? 0));
  }
  const isFlushed = (key: number | string, index: number): boolean => index < (flushed.get(key) ?? 0);
  const parentOf = (path: string): string => (path === '' ? '..' : dirname(path) === '.' ? '' : dirname(path));
  // Names are journalled: of those that were not flushed, the first ones may be there.
  const lastName = loss === 'some unflushed' ? Math.floor(random.next() * (events.length + 1)) : 0;
  const names = new Map<string, number | 'folder'>([['', 'folder']]);
  const contents = new Map<number, Buffer>();
  events.forEach((event, index) => {
    switch (event.type) {
      case 'write':
      case 'truncate':
        if (isFlushed(event.inode, index)) change(contents, event, Infinity);
        else if (loss === 'some unflushed' && random.next() < 0.5) change(contents, event, torn(event, random));
        return;
      case 'name':
      case 'folder':
        if (event.path === '' || !(isFlushed(parentOf(event.path), index) || index < lastName)) return;
        names.set(event.path, event.type === 'folder' ? 'folder' : event.inode);
        return;
      case 'rename': {
        const moved = names.get(event.from);
        if (moved === undefined || !(isFlushed(parentOf(event.path), index) || index < lastName)) return;
        names.delete(event.from);
        names.set(event.path, moved);
        return;
      }
      case 'remove':
        if (!(isFlushed(parentOf(event.path), index) || index < lastName)) return;
        for (const path of names.keys()) if (path === event.path || path.startsWith(`${event.path}/`)) names.delete(path); // prettier-ignore
        return;
      default:
    }
  });
  nodeFiles.mkdirSync(into, { recursive: true });
  for (const [path, inode] of [...names].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (path === '' || !nodeFiles.existsSync(join(into, parentOf(path)))) continue;
    if (inode === 'folder') nodeFiles.mkdirSync(join(into, path), { recursive: true });
    else nodeFiles.writeFileSync(join(into, path), contents.get(inode) ?? Buffer.alloc(0));
  }
}

type Change = Extract<Event, { type: 'write' | 'truncate' }>;

/** How many bytes of a write reached the disk. */
const torn = (event: Change, random: Random): number =>
  event.type === 'write' && random.next() < 0.3 ? SECTOR_BYTES * Math.floor((random.next() * event.bytes.length) / SECTOR_BYTES) : Infinity; // prettier-ignore

function change(contents: Map<number, Buffer>, event: Change, maxBytes: number): void {
  const before = contents.get(event.inode) ?? Buffer.alloc(0);
  if (event.type === 'truncate') {
    const after = Buffer.alloc(event.length);
    before.copy(after, 0, 0, Math.min(before.length, event.length));
    contents.set(event.inode, after);
    return;
  }
  const bytes = event.bytes.subarray(0, maxBytes === Infinity ? undefined : maxBytes);
  const after = Buffer.alloc(Math.max(before.length, event.position + bytes.length));
  before.copy(after);
  after.set(bytes, event.position);
  contents.set(event.inode, after);
}
