import { join, resolve } from 'node:path';
import { RuvLLMError } from '../core/errors.ts';
import type { ResolvedKvSpill } from '../runtime/kv-spill-option.ts';
import type { KeptState } from '../runtime/load-model.ts';
import type { SessionRecords } from '../runtime/sessions/session-table.ts';
import { expandHome, stateFolder } from '../platform/node/files/paths.ts';
import { readOrCreateMasterKey } from '../platform/node/sealing/master-key.ts';
import { openSealedRecords, type SealedRecords } from '../platform/node/spill/sealed-records.ts';

/** The key file of this user: the default master key. */
export function defaultMasterKeyPath(): string {
  return join(stateFolder(), 'master.key');
}

/** The folder, its key and its sessions. The engine opens the pages in its own thread. */
export function openKeptState(
  spill: ResolvedKvSpill,
  warn: (message: string) => void = (message) => process.emitWarning(message, { code: 'RUVLLM_KV_SPILL' }),
): KeptState {
  const folder = resolve(expandHome(spill.folder));
  const masterKey = spill.masterKey ?? readOrCreateMasterKey(defaultMasterKeyPath());
  const records = openRecords(folder, masterKey, warn);
  return {
    spill: { folder, limitBytes: spill.limitBytes, masterKey },
    openSessions: (modelHash) => records && bindSessions(records, modelHash),
  };
}

/** A folder with another key or a newer version is not touched; sessions are then only in memory. */
function openRecords(folder: string, masterKey: Uint8Array, warn: (message: string) => void): SealedRecords | null {
  try {
    return openSealedRecords({ folder, masterKey });
  } catch (error) {
    if (!(error instanceof RuvLLMError) || error.code !== 'invalid_option') throw error;
    warn(`sessions are not stored: ${error.message}`);
    return null;
  }
}

/** Each model has its own records, because token ids differ between models. */
function bindSessions(records: SealedRecords, modelHash: string): SessionRecords {
  const kind = `session ${modelHash}`;
  return {
    put: (tenant, id, bytes) => records.put(tenant, kind, id, bytes),
    get: (tenant, id) => records.get(tenant, kind, id),
    delete: (tenant, id) => records.delete(tenant, kind, id),
    list: (tenant) => records.list(tenant, kind),
  };
}
