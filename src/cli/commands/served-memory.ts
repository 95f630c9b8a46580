import { resolve } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import type { Memory } from '../../memory/memory.ts';
import { SERVE_DEFAULTS } from './serve-flags.ts';
import { defaultBackupFolder, defaultMemoryFolder } from '../../node/memory/default-folders.ts';
import type { OpenMemoryOptions } from '../../node/memory/open-memory.ts';
import { defaultMasterKeyPath } from '../../node/kept-state.ts';
import { masterSourceOf } from '../../platform/node/sealing/master-source.ts';
import type { CommandContext } from '../command.ts';
import { readEmbedderChoice } from '../memory/embedder-flag.ts';
import { describeFallback, findEmbedder } from '../memory/find-embedder.ts';
import { memoryPlace } from '../memory/memory-place.ts';
import { conflictError } from '../usage-error.ts';

export interface ServedMemory {
  readonly memory: Memory | null;
  /** One line for the startup output. */
  readonly summary: string;
  /** Location without secrets; null without a memory. */
  readonly folder: string | null;
  /** Why there is none although one was wanted; null: there is one, or none was wanted. */
  readonly whyNone: string | null;
  /** Resolves when the embedders are loaded, so that errors appear at startup and no request waits for them. */
  readonly ready: Promise<void>;
}

/** Removes credentials and parameters from a database URL. */
const withoutSecrets = (place: string): string => (/^postgres(ql)?:/.test(place) ? place.replace(/\/\/[^@/]*@/, '//').replace(/\?.*$/, '') : place); // prettier-ignore

/** Opens the memory of `--memory`, else the user's folder. If another process has the latter open, serves without memory. */
export async function openServedMemory(context: CommandContext, servedPath: string | null): Promise<ServedMemory> {
  const { output } = context;
  const { isExplicit } = readEmbedderChoice(context);
  // The parser sets `--memory` to false for `--no-memory`.
  const configuredPlace = memoryPlace(context);
  const retentionMs = context.values['--audit-retention'] as number | undefined;
  const durability = context.values['--audit-durability'] as 'batch' | 'request' | undefined;
  if (configuredPlace === false) {
    if (retentionMs !== undefined) throw conflictError('--audit-retention', '--no-memory');
    if (durability !== undefined) throw conflictError('--audit-durability', '--no-memory');
    for (const name of ['--backup-every', '--backup-keep', '--backup-dir']) {
      if (context.values[name] !== undefined) throw conflictError(name, '--no-memory');
    }
    const summary = 'memory: none (--no-memory)';
    return { memory: null, summary, folder: null, whyNone: null, ready: Promise.resolve() };
  }
  const retention = retentionMs === undefined ? {} : { retention: { maxAgeMs: retentionMs, archiveMaxAgeMs: retentionMs } }; // prettier-ignore
  const audit = durability === undefined ? {} : { audit: { durability } };
  const backups = {
    keep: (context.values['--backup-keep'] as number | undefined) ?? SERVE_DEFAULTS.backupKeep,
    folder: (context.values['--backup-dir'] as string | undefined) ?? defaultBackupFolder(),
  };
  const place = configuredPlace ?? defaultMemoryFolder();
  const { options: embedding, fallbackReason } = await findEmbedder(context, async () => servedPath);
  const report = (message: string): void => output.note(`memory: ${message}`);
  const { openNodeMemory } = await import('../../node/memory/open-memory.ts');
  // Fails here if the model has no usable token embeddings.
  const open = (options: Pick<OpenMemoryOptions, 'modelPath' | 'embedder' | 'reindex'>): Promise<Memory> =>
    openNodeMemory({ place, report, whenUnreachable: 'serve', backups, ...retention, ...audit, ...options });
  let memory: Memory;
  let limitation = '';
  try {
    memory = await open(embedding).catch((error: unknown) => {
      if (isExplicit || !isModelError(error)) throw error;
      limitation = `; similarity search is unavailable: ${error.message}`;
      return open({ modelPath: null });
    });
  } catch (error) {
    const isTaken = configuredPlace === undefined && error instanceof RuvLLMError && error.code === 'conflict';
    if (!isTaken && !isKeyFileError(error, context)) throw error;
    const summary = `memory: none (${error.message}); ${isTaken ? 'use another one with --memory FOLDER' : 'put the key back and restart'}`;
    return { memory: null, summary, folder: null, whyNone: error.message, ready: Promise.resolve() };
  }
  const { degraded, embedder } = await memory.stats(null).catch((error: unknown) => {
    if (memory.degraded() === null) throw error;
    return { degraded: memory.degraded(), embedder: memory.spaces.texts };
  });
  const state = degraded === null ? '' : ` (degraded: ${degraded})`;
  const embeddings = embedder === null ? '' : `, embeddings by ${embedder}`;
  if (fallbackReason !== null) output.note(`memory: ${describeFallback(fallbackReason)}`);
  const folder = withoutSecrets(place);
  const ready = loadEmbedders(embedder === null ? null : memory).catch((error: unknown) => {
    if (isExplicit || !isModelError(error)) throw error;
    output.note(`memory: similarity search is unavailable: ${error.message}`);
  });
  ready.catch(() => {}); // awaited after the model, which loads at the same time
  return { memory, summary: `memory: ${folder}${embeddings}${state}${limitation}`, folder, whyNone: null, ready };
}

/** The user's key file is damaged, or another one than the memory was encrypted with: models are served all the same. */
function isKeyFileError(error: unknown, { io: { environment } }: CommandContext): error is RuvLLMError {
  if (masterSourceOf(environment) !== null || !(error instanceof RuvLLMError)) return false;
  return error.data['option'] === 'masterKey' || error.data['path'] === resolve(defaultMasterKeyPath());
}

async function loadEmbedders(memory: Memory | null): Promise<void> {
  if (memory !== null) await Promise.all([memory.embed('ready'), memory.embedRequest('ready')]);
}

const MODEL_CODES: readonly string[] = ['invalid_model_file', 'unsupported', 'unknown_architecture'];

/** The model has no usable token embeddings; the memory itself is intact. */
function isModelError(error: unknown): error is RuvLLMError {
  return error instanceof RuvLLMError && MODEL_CODES.includes(error.code);
}
