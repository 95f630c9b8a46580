import * as nodeFiles from 'node:fs';
import { join } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { toFileError } from '../../platform/node/file-errors.ts';
import { defaultMasterKeyPath } from '../../platform/node/kept-state.ts';
import { stateFolder } from '../../platform/node/paths.ts';
import { readWhole, replaceFile } from '../../platform/node/sealing/atomic-files.ts';
import { readOrCreateMasterKey } from '../../platform/node/sealing/master-key.ts';
import { openFile, sealFile } from '../../platform/node/sealing/sealed-file.ts';
import { deriveKey, frame } from '../../platform/node/sealing/sealing.ts';

/** What was typed before, the newest first. */
export interface History {
  load(): string[];
  /** Puts lines in front of what is kept, the newest first: a second chat may have written meanwhile. */
  add(lines: readonly string[]): void;
}

export const MAX_HISTORY_LINES = 1000;
const MAX_LINE_LENGTH = 4096;
const MAX_BYTES = 64 << 20;
/** A line of the file is written to the terminal as it is when somebody goes back to it. */
const UNSAFE = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/u;

export function defaultHistoryPath(): string {
  return join(stateFolder(), 'chat-history');
}

/** Whether a line is to be kept; one that begins with a space is not, as in a shell. */
export function isKept(line: string): boolean {
  return line.trim() !== '' && !line.startsWith(' ') && line.length <= MAX_LINE_LENGTH && !UNSAFE.test(line);
}

/**
 * The history of `chat --history`: sealed with the master key of this user and readable by its owner only. What people ask
 * is nobody else's business, and a backup is somebody else.
 */
export function openHistory(path = defaultHistoryPath(), keyPath = defaultMasterKeyPath()): History {
  const key = deriveKey(readOrCreateMasterKey(keyPath), new Uint8Array(), frame('chat history'));
  const kind = { kind: 'record', key, name: 'chat-history' } as const;

  function load(): string[] {
    if (!nodeFiles.existsSync(path)) return [];
    const bytes = readFile(path);
    const opened = openFile(kind, bytes);
    if (opened === null) {
      throw new RuvLLMError('io', `${path} was not sealed by this user's master key, or was changed; remove it to begin anew`); // prettier-ignore
    }
    const lines = JSON.parse(new TextDecoder().decode(opened.bytes)) as string[];
    return lines.filter(isKept).slice(0, MAX_HISTORY_LINES);
  }

  return {
    load,
    add(lines) {
      const fresh = lines.filter(isKept);
      if (fresh.length === 0) return;
      const all = [...new Set([...fresh, ...load()])].slice(0, MAX_HISTORY_LINES);
      try {
        replaceFile(nodeFiles, path, sealFile(kind, 0, new TextEncoder().encode(JSON.stringify(all))), true);
      } catch (error) {
        throw toFileError(error, 'writing the history', path);
      }
    },
  };
}

function readFile(path: string): Uint8Array {
  try {
    const bytes = readWhole(nodeFiles, path, MAX_BYTES);
    if (bytes !== null) return bytes;
  } catch (error) {
    throw toFileError(error, 'reading the history', path);
  }
  throw new RuvLLMError('io', `${path} has more than ${MAX_BYTES} bytes`);
}
