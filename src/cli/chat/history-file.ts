import * as nodeFiles from 'node:fs';
import { join } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { toFileError } from '../../platform/node/files/file-errors.ts';
import { defaultMasterKeyPath } from '../../node/kept-state.ts';
import { stateFolder } from '../../platform/node/files/paths.ts';
import { readWhole, replaceFile } from '../../platform/node/sealing/atomic-files.ts';
import { readOrCreateMasterKey } from '../../platform/node/sealing/master-key.ts';
import { openFile, sealFile } from '../../platform/node/sealing/sealed-file.ts';
import { deriveKey, frame } from '../../platform/node/sealing/sealing.ts';

/** Input lines, newest first. */
export interface History {
  load(): string[];
  /** Adds lines, newest first, to the file, which another chat may have changed. */
  add(lines: readonly string[]): void;
}

export const MAX_HISTORY_LINES = 1000;
const MAX_LINE_LENGTH = 4096;
const MAX_BYTES = 64 << 20;
/** Recalled lines are written to the terminal without escaping. */
const UNSAFE = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/u;

export function defaultHistoryPath(): string {
  return join(stateFolder(), 'chat-history');
}

/** Whether a line goes into the history; as in a shell, not with a leading space. */
export function isRecorded(line: string): boolean {
  return line.trim() !== '' && !line.startsWith(' ') && line.length <= MAX_LINE_LENGTH && !UNSAFE.test(line);
}

/** The history of `chat --history`, encrypted with the user's master key so that backups do not expose it. */
export function openHistory(path = defaultHistoryPath(), keyPath = defaultMasterKeyPath()): History {
  const key = deriveKey(readOrCreateMasterKey(keyPath), new Uint8Array(), frame('chat history'));
  const kind = { kind: 'record', key, name: 'chat-history' } as const;

  function load(): string[] {
    if (!nodeFiles.existsSync(path)) return [];
    const bytes = readFile(path);
    const content = openFile(kind, bytes);
    if (content === null) {
      throw new RuvLLMError('io', `${path} was modified, or encrypted with another master key; delete it to start over`); // prettier-ignore
    }
    const lines = JSON.parse(new TextDecoder().decode(content.bytes)) as string[];
    return lines.filter(isRecorded).slice(0, MAX_HISTORY_LINES);
  }

  return {
    load,
    add(lines) {
      const newLines = lines.filter(isRecorded);
      if (newLines.length === 0) return;
      const merged = [...new Set([...newLines, ...load()])].slice(0, MAX_HISTORY_LINES);
      try {
        replaceFile(nodeFiles, path, sealFile(kind, 0, new TextEncoder().encode(JSON.stringify(merged))), true);
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
