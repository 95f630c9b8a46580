import { existsSync, rmSync } from 'node:fs';
import { RuvLLMError } from '../../core/errors.ts';
import { decodeCheckpoint, encodeCheckpoint, type RunIdentity } from '../../learning/training/checkpoint-file.ts';
import type { RunProgress } from '../../learning/training/training-run.ts';
import { writeWhole } from '../../platform/node/files/file-sink.ts';
import { readRegularFile } from '../../platform/node/files/json-file.ts';

/** The checkpoint of a run, beside its output. */
export interface Checkpoint {
  readonly path: string;
  /** The progress to continue from; null: the run starts. */
  readonly progress: RunProgress | null;
  save(progress: RunProgress): void;
  remove(): void;
}

/** Opens the checkpoint of a run. A new run does not overwrite one: hours of training may be in it. */
export function openCheckpoint(outputPath: string, run: RunIdentity, isResumed: boolean): Checkpoint {
  const path = `${outputPath}.checkpoint`;
  const exists = existsSync(path);
  if (isResumed && !exists) throw new RuvLLMError('not_found', `no checkpoint to resume from: ${path} does not exist`);
  if (!isResumed && exists) {
    throw new RuvLLMError(
      'conflict',
      `${path} is of a stopped run; --resume continues it. To start again, delete it or choose another --output`,
      { data: { path } },
    );
  }
  return {
    path,
    progress: isResumed ? decodeCheckpoint(readRegularFile(path), run, path) : null,
    save: (progress) => void writeWhole(path, (sink) => sink.write(encodeCheckpoint(run, progress))),
    remove: () => rmSync(path, { force: true }),
  };
}
