import { resolve } from 'node:path';
import { messageOf, RuvLLMError } from '../../core/errors.ts';
import type { Memory } from '../../memory/memory.ts';
import { SERVE_DEFAULTS } from './serve-flags.ts';
import { defaultBackupFolder, defaultMemoryFolder } from '../../node/memory/default-folders.ts';
import type { WordMemory } from '../../node/memory/open-memory.ts';
import { defaultMasterKeyPath } from '../../node/kept-state.ts';
import { masterSourceOf } from '../../platform/node/sealing/master-source.ts';
import type { CommandContext } from '../command.ts';
import type { Preparation } from '../../server/state-problems.ts';
import type { OnProgress } from '../load-model.ts';
import { readEmbedderChoice } from '../memory/embedder-flag.ts';
import { describeFallback, findEmbedder } from '../memory/find-embedder.ts';
import { memoryPlace } from '../memory/memory-place.ts';
import { conflictError } from '../usage-error.ts';

export interface ServedMemory {
  readonly memory: Memory | null;
  /** One line for the startup output; null: `prepare` writes it. */
  readonly summary: string | null;
  /** Location without secrets; null without a memory. */
  readonly folder: string | null;
  /** Why there is none although one was wanted; null: there is one, or none was wanted. */
  readonly whyNone: string | null;
  /** Resolves when the embedder that the user chose is loaded, so that its errors appear at startup. */
  readonly ready: Promise<void>;
  /** Downloads and loads the default encoder, and says so. Call it when models are served; it does not reject. */
  prepare(): Promise<void>;
  /** The encoder until `prepare` has made it ready, and after it could not. */
  preparing(): readonly Preparation[];
}

/** Removes credentials and parameters from a database URL. */
const withoutSecrets = (place: string): string => (/^postgres(ql)?:/.test(place) ? place.split('?', 1)[0]!.replace(/\/\/[^@/]*@/, '//') : place); // prettier-ignore

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
    return without(summary, null);
  }
  const retention = retentionMs === undefined ? {} : { retention: { maxAgeMs: retentionMs, archiveMaxAgeMs: retentionMs } }; // prettier-ignore
  const audit = durability === undefined ? {} : { audit: { durability } };
  const backups = {
    keep: (context.values['--backup-keep'] as number | undefined) ?? SERVE_DEFAULTS.backupKeep,
    folder: (context.values['--backup-dir'] as string | undefined) ?? defaultBackupFolder(),
  };
  const place = configuredPlace ?? defaultMemoryFolder();
  const report = (message: string): void => output.note(`memory: ${message}`);
  const options = { place, report, whenUnreachable: 'serve', backups, ...retention, ...audit } as const;
  const chosen = isExplicit ? await findEmbedder(context, async () => servedPath) : null;
  let opened: WordMemory;
  const { openNodeMemory, openWordMemory } = await import('../../node/memory/open-memory.ts');
  try {
    // Fails here if the model that the user chose has no usable token embeddings.
    opened = chosen === null ? await openWordMemory(options) : { memory: await openNodeMemory({ ...options, ...chosen.options }), useEmbedder: async () => {} }; // prettier-ignore
  } catch (error) {
    const isTaken = configuredPlace === undefined && error instanceof RuvLLMError && error.code === 'conflict';
    if (!isTaken && !isKeyFileError(error, context)) throw error;
    const summary = `memory: none (${error.message}); ${isTaken ? 'use another one with --memory FOLDER' : 'put the key back and restart'}`;
    return without(summary, error.message);
  }
  const { memory } = opened;
  const folder = withoutSecrets(place);
  const here = { memory, folder, whyNone: null };
  if (chosen === null) {
    return {
      ...here,
      summary: null,
      ready: Promise.resolve(),
      ...followStart(context, opened, { folder, servedPath }),
    };
  }
  if (chosen.fallbackReason !== null) report(describeFallback(chosen.fallbackReason));
  const ready = loadEmbedders(memory);
  ready.catch(() => {}); // awaited after the model, which loads at the same time
  return { ...here, summary: await summarize(memory, folder), ready, ...NOTHING_FOLLOWS };
}

const NOTHING_FOLLOWS = { prepare: async () => {}, preparing: () => [] } as const;

const without = (summary: string, whyNone: string | null): ServedMemory => ({
  memory: null,
  summary,
  folder: null,
  whyNone,
  ready: Promise.resolve(),
  ...NOTHING_FOLLOWS,
});

async function summarize(memory: Memory, folder: string): Promise<string> {
  const { degraded, embedder } = await memory.stats(null).catch((error: unknown) => {
    if (memory.degraded() === null) throw error;
    return { degraded: memory.degraded(), embedder: memory.spaces.texts };
  });
  const embeddings = embedder === null || memory.spaces.texts === null ? '' : `, embeddings by ${embedder}`;
  return `memory: ${folder}${embeddings}${degraded === null ? '' : ` (degraded: ${degraded})`}`;
}

/** The default encoder comes when models are served: 25 MB that no answer needs must not delay the first. */
function followStart(
  context: CommandContext,
  { memory, useEmbedder }: WordMemory,
  { folder, servedPath }: { readonly folder: string; readonly servedPath: string | null },
): Pick<ServedMemory, 'prepare' | 'preparing'> {
  const { output, io } = context;
  let state: Preparation | null = { part: 'encoder', phase: 'waiting', doneBytes: 0, totalBytes: null, reason: null };
  const update = (changes: Partial<Preparation>): void => void (state = { ...state!, ...changes });
  let isTold = false;
  const onProgress: OnProgress = ({ phase, doneBytes, totalBytes }) => {
    update({ phase, doneBytes, totalBytes });
    if (isTold || phase !== 'download') return;
    isTold = true;
    output.note(`memory: ${folder}; downloading the sentence encoder, until it is there searches find words only`);
  };
  return {
    preparing: () => (state === null ? [] : [state]),
    async prepare() {
      let reason: string | null = null;
      try {
        const found = await findEmbedder(context, async () => servedPath, onProgress);
        reason = found.fallbackReason;
        if (reason !== null) output.note(`memory: ${describeFallback(reason)}`);
        update({ phase: 'load', doneBytes: 0, totalBytes: null });
        await useEmbedder(found.options);
      } catch (error) {
        if (io.signal.aborted) return;
        reason = messageOf(error);
        output.note(`memory: similarity search is unavailable: ${reason}`);
      }
      if (reason === null) state = null;
      else update({ phase: 'unavailable', reason });
      output.note(await summarize(memory, folder).catch(() => `memory: ${folder}`));
    },
  };
}

/** The user's key file is damaged, or another one than the memory was encrypted with: models are served all the same. */
function isKeyFileError(error: unknown, { io: { environment } }: CommandContext): error is RuvLLMError {
  if (masterSourceOf(environment) !== null || !(error instanceof RuvLLMError)) return false;
  return error.data['option'] === 'masterKey' || error.data['path'] === resolve(defaultMasterKeyPath());
}

async function loadEmbedders(memory: Memory): Promise<void> {
  await Promise.all([memory.embed('ready'), memory.embedRequest('ready')]);
}
