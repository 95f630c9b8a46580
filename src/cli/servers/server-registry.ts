import * as nodeFiles from 'node:fs';
import { join } from 'node:path';
import type { ProcessIdentity } from '../../hub/platform.ts';
import { stateFolder } from '../../platform/node/files/paths.ts';
import { isProcessAlive, ownIdentity } from '../../platform/node/process/process-identity.ts';
import { listNames, readWhole, removeQuietly, replaceFile } from '../../platform/node/sealing/atomic-files.ts';

/** A running server of this user. */
export interface ServerRecord {
  readonly url: string;
  readonly startedMs: number;
  readonly process: ProcessIdentity;
}

const MAX_BYTES = 16 * 1024;
const MAX_SERVERS = 100;
const NAME = /^\d+-\d+\.json$/;

function defaultFolder(): string {
  return join(stateFolder(), 'servers');
}

/** Registers this process as a server and returns a function that unregisters it. Ignores write errors. */
export function registerServer(url: string, startedMs: number, folder = defaultFolder()): () => void {
  const path = join(folder, `${process.pid}-${new URL(url).port || 80}.json`);
  const record: ServerRecord = { url, startedMs, process: ownIdentity() };
  try {
    replaceFile(nodeFiles, path, [new TextEncoder().encode(`${JSON.stringify(record)}\n`)], false);
  } catch {
    return () => {};
  }
  return () => removeQuietly(nodeFiles, path);
}

/** Running servers, oldest first; removes records of killed ones. */
export function listServers(folder = defaultFolder()): ServerRecord[] {
  const records: ServerRecord[] = [];
  for (const name of namesIn(folder)) {
    const path = join(folder, name);
    const record = readRecord(path);
    if (record === null) continue;
    if (isProcessAlive(record.process)) records.push(record);
    else removeQuietly(nodeFiles, path);
  }
  return records.sort((a, b) => a.startedMs - b.startedMs);
}

function namesIn(folder: string): string[] {
  try {
    return listNames(nodeFiles, folder)
      .filter((name) => NAME.test(name))
      .slice(0, MAX_SERVERS);
  } catch {
    return []; // the first server creates the folder
  }
}

function readRecord(path: string): ServerRecord | null {
  try {
    const bytes = readWhole(nodeFiles, path, MAX_BYTES);
    const value = JSON.parse(new TextDecoder().decode(bytes ?? new Uint8Array())) as Partial<ServerRecord>;
    const isValid =
      typeof value.url === 'string' &&
      /^http:\/\/[^\s]+$/.test(value.url) &&
      typeof value.startedMs === 'number' &&
      typeof value.process?.pid === 'number' &&
      typeof value.process.host === 'string' &&
      typeof value.process.startToken === 'string';
    return isValid ? (value as ServerRecord) : null;
  } catch {
    return null; // just removed, or not a record
  }
}
