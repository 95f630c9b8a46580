import * as nodeFiles from 'node:fs';
import { join } from 'node:path';
import type { ProcessIdentity } from '../../hub/platform.ts';
import { stateFolder } from '../../platform/node/paths.ts';
import { isProcessAlive, ownIdentity } from '../../platform/node/process-identity.ts';
import { listNames, readWhole, removeQuietly, replaceFile } from '../../platform/node/sealing/atomic-files.ts';

/** A server that runs here, as it wrote itself down. */
export interface ServerNote {
  readonly url: string;
  readonly startedMs: number;
  readonly process: ProcessIdentity;
}

const MAX_BYTES = 16 * 1024;
/** More have never been started by one person. */
const MAX_NOTES = 100;
const NAME = /^\d+-\d+\.json$/;

export function defaultNotesFolder(): string {
  return join(stateFolder(), 'servers');
}

/** Writes down that this process serves; the answer takes it away again. A disk that refuses is no reason not to serve. */
export function noteServer(url: string, startedMs: number, folder = defaultNotesFolder()): () => void {
  const path = join(folder, `${process.pid}-${new URL(url).port || 80}.json`);
  const note: ServerNote = { url, startedMs, process: ownIdentity() };
  try {
    replaceFile(nodeFiles, path, [new TextEncoder().encode(`${JSON.stringify(note)}\n`)], false);
  } catch {
    return () => {};
  }
  return () => removeQuietly(nodeFiles, path);
}

/** The servers that are still there; what others left behind when they were killed is taken away. */
export function readServerNotes(folder = defaultNotesFolder()): ServerNote[] {
  const notes: ServerNote[] = [];
  for (const name of namesIn(folder)) {
    const path = join(folder, name);
    const note = readNote(path);
    if (note === null) continue;
    if (isProcessAlive(note.process)) notes.push(note);
    else removeQuietly(nodeFiles, path);
  }
  return notes.sort((a, b) => a.startedMs - b.startedMs);
}

function namesIn(folder: string): string[] {
  try {
    return listNames(nodeFiles, folder)
      .filter((name) => NAME.test(name))
      .slice(0, MAX_NOTES);
  } catch {
    return []; // nobody has served yet
  }
}

function readNote(path: string): ServerNote | null {
  try {
    const bytes = readWhole(nodeFiles, path, MAX_BYTES);
    const value = JSON.parse(new TextDecoder().decode(bytes ?? new Uint8Array())) as Partial<ServerNote>;
    const isGood =
      typeof value.url === 'string' &&
      /^http:\/\/[^\s]+$/.test(value.url) &&
      typeof value.startedMs === 'number' &&
      typeof value.process?.pid === 'number' &&
      typeof value.process.host === 'string' &&
      typeof value.process.startToken === 'string';
    return isGood ? (value as ServerNote) : null;
  } catch {
    return null; // gone in this moment, or not ours
  }
}
