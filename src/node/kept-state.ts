import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type ErasurePart, isWholeTenant } from '../core/erasure.ts';
import { RuvLLMError } from '../core/errors.ts';
import type { ResolvedKvSpill } from '../runtime/kv-spill-option.ts';
import type { KeptState } from '../runtime/load-model.ts';
import type { SessionRecords } from '../runtime/sessions/session-table.ts';
import { toFileError } from '../platform/node/files/file-errors.ts';
import { dataFolder, expandHome, stateFolder } from '../platform/node/files/paths.ts';
import { readOrCreateMasterKey } from '../platform/node/sealing/master-key.ts';
import { openSealedRecords, type SealedRecords } from '../platform/node/spill/sealed-records.ts';
import { openSpillFolder, whySpillRefused } from '../platform/node/spill/spill-folder.ts';

/** The key file of this user: the default master key. */
export function defaultMasterKeyPath(): string {
  return join(stateFolder(), 'master.key');
}

export const spillFolder = (folder: string): string => resolve(expandHome(folder));

/** The folder, its key and its sessions. The engine opens the pages in its own thread. */
export function openKeptState(
  spill: ResolvedKvSpill,
  warn: (message: string) => void = (message) => process.emitWarning(message, { code: 'RUVLLM_KV_SPILL' }),
): KeptState {
  const folder = spillFolder(spill.folder);
  problems.delete(folder);
  const report = (message: string): void => {
    problems.set(folder, message);
    warn(message);
  };
  const masterKey = spill.masterKey ?? readKeyFile(report);
  const records = masterKey && openRecords(folder, masterKey, report);
  if (masterKey !== null) masterKeys.set(folder, masterKey);
  return {
    erasure: createFolderErasure(folder),
    spill: masterKey && { folder, limitBytes: spill.limitBytes, masterKey },
    openSessions: (modelHash) => records && bindSessions(records, modelHash),
  };
}

/** Null: it is damaged or cannot be read. Models answer without stored pages and sessions then. */
function readKeyFile(report: (message: string) => void): Uint8Array | null {
  try {
    return readOrCreateMasterKey(defaultMasterKeyPath());
  } catch (error) {
    if (!(error instanceof RuvLLMError)) throw error;
    report(`KV pages and sessions are not stored: ${error.message}`);
    return null;
  }
}

/** A folder with another key, a damaged header or a newer version is not touched; sessions are then only in memory. */
function openRecords(folder: string, masterKey: Uint8Array, report: (message: string) => void): SealedRecords | null {
  const refused = whySpillRefused(folder, masterKey);
  try {
    const records = openSealedRecords({ folder, masterKey });
    if (refused !== null) report(`KV pages are not stored: ${refused}`);
    return records;
  } catch (error) {
    const { message } = toFileError(error, 'opening', folder);
    report(`${refused === null ? 'sessions' : 'KV pages and sessions'} are not stored: ${message}`);
    return null;
  }
}

/** Of folders that this process has opened: why their pages or sessions are not stored. */
const problems = new Map<string, string>();

export const keptStateProblem = (folder: string): string | null => problems.get(folder) ?? null;

/** Each model has its own records, because token ids differ between models. */
function bindSessions(records: SealedRecords, modelHash: string): SessionRecords {
  const kind = `session ${modelHash}`;
  return {
    put: (tenant, id, bytes) => records.put(tenant, kind, id, bytes),
    get: (tenant, id) => records.get(tenant, kind, id),
    delete: (tenant, id) => records.delete(tenant, kind, id),
    list: (tenant) => records.list(tenant, kind),
    eraseTenant: records.eraseTenant,
    countTenant: records.countTenant,
  };
}

/** Keys of the folders that this process has opened. */
const masterKeys = new Map<string, Uint8Array>();

/** Erases data of tenants in a folder of pages and sessions that no model may have open. */
export function createFolderErasure(folder: string): ErasurePart {
  const open = () => {
    const masterKey = masterKeys.get(folder) ?? readOrCreateMasterKey(defaultMasterKeyPath());
    // Nothing is dropped for lack of space.
    const pages = openSpillFolder({ folder, masterKey, limitBytes: Number.MAX_SAFE_INTEGER });
    return { pages, records: openSealedRecords({ folder, masterKey }) };
  };
  return {
    name: folderPartName(folder),
    isLast: true,
    async erase(subject) {
      if (!existsSync(folder)) return;
      const { pages, records } = open();
      pages.eraseTenant(subject.tenant, { keepsKey: !isWholeTenant(subject) });
      if (isWholeTenant(subject)) records.eraseTenant(subject.tenant);
      else records.deleteNames(subject.tenant, subject.sessionIds);
    },
    async count(subject) {
      if (!existsSync(folder)) return 0;
      const { pages, records } = open();
      if (!isWholeTenant(subject)) return records.pathsOf(subject.tenant, subject.sessionIds).length;
      return pages.numPagesOf(subject.tenant) + records.countTenant(subject.tenant);
    },
  };
}

const FOLDER_PART = 'spill folder ';
const folderPartName = (folder: string): string => FOLDER_PART + folder;

/** The part of a place that an earlier process added; null for other parts. */
export const openErasurePlace = (name: string): ErasurePart | null =>
  name.startsWith(FOLDER_PART) ? createFolderErasure(name.slice(FOLDER_PART.length)) : null;

const FEEDBACK_KIND = 'feedback';

/** Feedback that earlier versions stored in a folder of its own; null without one. */
export function openOldFeedback(): ErasurePart | null {
  const folder = join(dataFolder(), 'feedback');
  if (!existsSync(folder)) return null;
  const open = () => openSealedRecords({ folder, masterKey: readOrCreateMasterKey(defaultMasterKeyPath()) });
  return {
    name: 'feedback of earlier versions',
    async erase(subject) {
      const records = open();
      if (isWholeTenant(subject)) records.eraseTenant(subject.tenant);
      for (const id of subject.requestIds) records.delete(subject.tenant, FEEDBACK_KIND, id);
    },
    async count(subject) {
      const records = open();
      if (isWholeTenant(subject)) return records.countTenant(subject.tenant);
      return records.list(subject.tenant, FEEDBACK_KIND).filter((id) => subject.requestIds.has(id)).length;
    },
  };
}
